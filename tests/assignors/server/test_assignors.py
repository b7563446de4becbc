from uuid import UUID

import pytest

from groupcoord.assignors.server import (
    SERVER_ASSIGNORS,
    Member,
    PartitionAssignorError,
    Spec,
    SubscriptionType,
    assign_range,
    assign_simple,
    assign_uniform,
)

HOMOGENEOUS, HETEROGENEOUS = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS
ONE, TWO = UUID(int=1), UUID(int=2)


def spec(**members: Member) -> Spec:
    return Spec(members=members, partitions={ONE: 4, TWO: 2})


@pytest.mark.parametrize("name", SERVER_ASSIGNORS)
@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_nobody_is_there(name: str, kind: SubscriptionType) -> None:
    assert SERVER_ASSIGNORS[name](spec(), kind) == {}


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_nobody_wants_anything(kind: SubscriptionType) -> None:
    assert assign_uniform(spec(a=Member(), b=Member()), kind) == {"a": {}, "b": {}}


def test_uniform_keeps_what_fits() -> None:
    members = {"a": Member(topic_ids=[ONE], assigned={ONE: [0, 1, 2, 3], TWO: [0]}), "b": Member(topic_ids=[ONE])}
    for kind in SubscriptionType:
        target = assign_uniform(spec(**members), kind)
        assert sorted([*target["a"][ONE], *target["b"][ONE]]) == [0, 1, 2, 3]
        assert len(target["a"][ONE]) == 2


def test_a_partition_too_many() -> None:
    """Two members are meant to have the same partition, as a coordinator never has it."""
    members = {"a": Member(topic_ids=[TWO], assigned={TWO: [0, 1, 2]}), "b": Member(topic_ids=[TWO])}
    with pytest.raises(PartitionAssignorError, match="Partitions were left unassigned"):
        assign_uniform(spec(**members, c=Member(topic_ids=[TWO], assigned={TWO: [0]})), HOMOGENEOUS)


def test_range_puts_static_members_first() -> None:
    members = {"a": Member(topic_ids=[ONE]), "z": Member(topic_ids=[ONE], instance_id="i")}
    assert assign_range(spec(**members), HOMOGENEOUS) == {"z": {ONE: range(2)}, "a": {ONE: range(2, 4)}}


def test_range_gives_nothing_to_those_for_whom_nothing_is_left() -> None:
    members = {name: Member(topic_ids=[TWO]) for name in "abc"}
    assert assign_range(spec(**members), HETEROGENEOUS)["c"] == {}


def test_simple_gives_everything_to_everybody() -> None:
    members = {"a": Member(topic_ids=[TWO]), "b": Member(topic_ids=[ONE, TWO])}
    assert assign_simple(spec(**members), HETEROGENEOUS) == {"a": {TWO: range(2)}, "b": {ONE: range(4), TWO: range(2)}}


def test_members_are_walked_through_as_listed_if_asked_to() -> None:
    members = {name: Member(topic_ids=[TWO]) for name in ("b", "a")}
    listed = Spec(members=members, partitions={TWO: 1}, as_listed=True)
    assert assign_uniform(listed, HOMOGENEOUS) == {"b": {TWO: [0]}, "a": {}}
    assert assign_uniform(spec(**members), HOMOGENEOUS)["a"] == {TWO: [0]}
