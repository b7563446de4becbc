import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from groupcoord.assignors.json_cases import topic_id
from groupcoord.assignors.server_side import (
    SERVER_ASSIGNORS,
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
    assign_range,
    assign_simple,
    assign_uniform,
    subscription_type,
)
from groupcoord.assignors.server_side.group_spec import uuid_order
from groupcoord.assignors.server_side.uniform_assignor import MemberAssignmentBalancer
from groupcoord.core.java_hash_order import hash_map_order, uuid_hash

HOMOGENEOUS, HETEROGENEOUS = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS
ONE, TWO = UUID(int=1), UUID(int=2)


def spec(kind: SubscriptionType, **members: MemberSubscription) -> GroupSpec:
    return GroupSpec(members=members, subscription_type=kind, partitions={ONE: 4, TWO: 2})


@pytest.mark.parametrize("name", SERVER_ASSIGNORS)
@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_nobody_is_there(name: str, kind: SubscriptionType) -> None:
    assert SERVER_ASSIGNORS[name](spec(kind)) == {}


@pytest.mark.parametrize("name", SERVER_ASSIGNORS)
@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_nobody_wants_anything(name: str, kind: SubscriptionType) -> None:
    assert SERVER_ASSIGNORS[name](spec(kind, a=MemberSubscription(), b=MemberSubscription(assigned={ONE: [1]}))) == {
        "a": {},
        "b": {},
    }


def test_uniform_keeps_what_fits() -> None:
    members = {
        "a": MemberSubscription(topic_ids=[ONE], assigned={ONE: [0, 1, 2, 3], TWO: [0]}),
        "b": MemberSubscription(topic_ids=[ONE]),
    }
    for kind in SubscriptionType:
        target = assign_uniform(spec(kind, **members))
        assert sorted([*target["a"][ONE], *target["b"][ONE]]) == [0, 1, 2, 3]
        assert len(target["a"][ONE]) == 2


def test_a_partition_too_many() -> None:
    """Two members are meant to have the same partition, as a coordinator never has it."""
    members = {
        "a": MemberSubscription(topic_ids=[TWO], assigned={TWO: [0, 1, 2]}),
        "b": MemberSubscription(topic_ids=[TWO]),
    }
    with pytest.raises(PartitionAssignorError, match="Partitions were left unassigned"):
        assign_uniform(spec(HOMOGENEOUS, **members, c=MemberSubscription(topic_ids=[TWO], assigned={TWO: [0]})))


@pytest.mark.parametrize("partition", [-1, 2])
def test_uniform_fails_over_a_partition_that_does_not_exist(partition: int) -> None:
    """A leader of the classic protocol may have given it to a member."""
    members = {
        "a": MemberSubscription(topic_ids=[TWO], assigned={TWO: [0, partition]}),
        "b": MemberSubscription(topic_ids=[ONE]),
    }
    with pytest.raises(PartitionAssignorError, match=f"a has partition {partition} of 2"):
        assign_uniform(spec(HETEROGENEOUS, **members))


def test_range_puts_static_members_first() -> None:
    members = {"a": MemberSubscription(topic_ids=[ONE]), "z": MemberSubscription(topic_ids=[ONE], instance_id="i")}
    assert assign_range(spec(HOMOGENEOUS, **members)) == {"z": {ONE: range(2)}, "a": {ONE: range(2, 4)}}


def test_range_gives_nothing_to_those_for_whom_nothing_is_left() -> None:
    members = {name: MemberSubscription(topic_ids=[TWO]) for name in "abc"}
    assert assign_range(spec(HETEROGENEOUS, **members))["c"] == {}


def test_who_has_one_more_keeps_it() -> None:
    """One partition, three members: Kafka 4.0 gave it to the first of the map, whoever had it."""
    members = {name: MemberSubscription(topic_ids=[ONE]) for name in ("c0", "c1", "c2")}
    members["c1"] = MemberSubscription(topic_ids=[ONE], assigned={ONE: [0]})
    one = GroupSpec(members=members, subscription_type=HOMOGENEOUS, partitions={ONE: 1})
    assert assign_uniform(one) == {"c0": {}, "c1": {ONE: [0]}, "c2": {}}
    nobodys = replace(one, members=dict.fromkeys(members, MemberSubscription(topic_ids=[ONE])))
    assert assign_uniform(nobodys) == {"c0": {}, "c1": {}, "c2": {ONE: [0]}}


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_simple_lets_members_share_only_where_there_are_too_few_partitions(kind: SubscriptionType) -> None:
    enough = {name: MemberSubscription(topic_ids=[ONE]) for name in "ab"}
    assert sorted(partition for given in assign_simple(spec(kind, **enough)).values() for partition in given[ONE]) == [
        *range(4)
    ]
    few = {name: MemberSubscription(topic_ids=[TWO]) for name in "abcd"}
    assert sorted(partition for given in assign_simple(spec(kind, **few)).values() for partition in given[TWO]) == [
        0,
        0,
        1,
        1,
    ]


def test_simple_gives_out_only_what_may_be_given_out() -> None:
    group = replace(spec(HOMOGENEOUS, a=MemberSubscription(topic_ids=[ONE, TWO])), assignable={ONE: {1, 3}})
    assert assign_simple(group) == {"a": {ONE: [1, 3]}}


@pytest.mark.parametrize("assign", SERVER_ASSIGNORS.values(), ids=SERVER_ASSIGNORS)
@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_a_topic_that_is_wanted_must_exist(
    assign: Callable[[GroupSpec], TargetAssignment], kind: SubscriptionType
) -> None:
    with pytest.raises(PartitionAssignorError, match="exist"):
        assign(spec(kind, a=MemberSubscription(topic_ids=[UUID(int=3)])))


def test_those_with_least_are_served_in_waves() -> None:
    loads = [2, 0, 1]
    balancer = MemberAssignmentBalancer(range(3), loads)
    served = []
    for _ in range(7):
        member = balancer.next_least()
        loads[member] += 1
        served.append(member)
    assert served == [1, 1, 2, 1, 2, 0, 1]


def test_those_with_most_give_in_waves() -> None:
    balancer = MemberAssignmentBalancer(range(3), [2, 0, 3])
    assert [balancer.next_most() for _ in range(3)] == [2, 2, 0]
    assert balancer.imbalance == 3


def test_who_has_nothing_to_give_leaves_the_range() -> None:
    balancer = MemberAssignmentBalancer(range(3), [3, 3, 1])
    assert balancer.next_most() == 1
    balancer.exclude_most()
    assert balancer.next_most() == 0
    balancer.exclude_most()
    assert balancer.next_most() == 2
    balancer.exclude_most()
    assert balancer.next_most() is None


def test_it_is_balanced_when_the_ranges_meet() -> None:
    balancer = MemberAssignmentBalancer(range(2), [0, 2])
    assert not balancer.is_balanced
    balancer.next_most()
    balancer.next_least()
    assert not balancer.is_balanced
    balancer.next_most()
    assert balancer.is_balanced


FILE = Path(__file__).parents[1] / "partitioners" / "partitioner-placement-vectors.json"
KNOWN: list[dict[str, Any]] = json.loads(FILE.read_text())["uuid_hash"]
ONE, TWO = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize("case", KNOWN)
def test_ids_hash_as_in_java(case: dict[str, Any]) -> None:
    if "uuid" in case:
        assert uuid_hash(topic_id(case["uuid"])) == case["hash"] & 0xFFFFFFFF
    else:
        inserted = [topic_id(text) for text in case["inserted"]]
        assert hash_map_order(inserted, uuid_hash) == [topic_id(text) for text in case["hashset_iteration"]]


def test_ids_sort_as_two_signed_halves() -> None:
    ids = [UUID(int=1 << 127), UUID(int=1 << 63), UUID(int=0), UUID(int=1)]
    assert sorted({*ids}, key=uuid_order) == ids


def test_the_kind_of_a_group() -> None:
    def kind(*wanted: list[UUID]) -> SubscriptionType:
        return subscription_type(
            {str(number): MemberSubscription(topic_ids=topics) for number, topics in enumerate(wanted)}
        )

    assert kind([ONE, TWO], [TWO, ONE]) is SubscriptionType.HOMOGENEOUS
    assert kind([], []) is SubscriptionType.HOMOGENEOUS
    assert kind([ONE], [ONE, TWO]) is SubscriptionType.HETEROGENEOUS


def test_a_topic_that_is_not_there() -> None:
    spec = GroupSpec(members={}, subscription_type=HOMOGENEOUS, partitions={ONE: 1})
    assert spec.partition_count(ONE) == 1
    with pytest.raises(PartitionAssignorError, match="topic AAAAAAAAAAAAAAAAAAAAAg which doesn't exist"):
        spec.partition_count(TWO)
