"""Every answer of Kafka's own classes that is known."""

from dataclasses import replace
from typing import Any

import pytest

from groupcoord.assignors import JavaFailure, as_leader
from groupcoord.assignors.interface import Assignor, RebalanceProtocol
from groupcoord.assignors.java_order import members_in_hash_order
from groupcoord.assignors.json_cases import answer_case, group_of
from groupcoord.assignors.range_assignor import RangeAssignor
from groupcoord.assignors.round_robin_assignor import RoundRobinAssignor
from groupcoord.assignors.sticky.sticky_assignors import (
    CooperativeStickyAssignor,
    StickyAssignor,
    assign_cooperative,
    assign_sticky,
)
from groupcoord.assignors.validation import check_assignment
from groupcoord.core.java_hash_order import hash_map_order, string_hash
from tests.assignors.known import JAVA_ANSWERS, VECTORS, check_each, expected, named

STICKY = [case for case in VECTORS if case["assignor"].endswith("sticky")]
ASSIGNORS: dict[str, type[Assignor]] = {
    kind.name: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def test_there_are_as_many_as_there_should_be() -> None:
    assert len(VECTORS) == 461
    assert len({named(case) for case in VECTORS}) == 461


@pytest.mark.slow
def test_a_case_is_answered_as_by_kafka() -> None:
    """Of the one case marked ``properties`` only sizes are promised; Kafka's answer is what is expected all the same."""

    def check(case: dict[str, Any]) -> None:
        given = answer_case(case)
        if "expected_error" in case:
            assert given["error"] == case["expected_error"]
            return
        assert given["assignment"] == case["expected"]
        if "expected_transferring" in case:
            assert given["transferring"] == sorted(case["expected_transferring"])
            assert given["path"] == case["path"]

    check_each(VECTORS, check)


def test_the_leader_walks_through_its_members_in_javas_order() -> None:

    def check(case: dict[str, Any]) -> None:
        assert list(members_in_hash_order(group_of(case))) == case["java_member_order"]

    check_each(VECTORS, check)


def test_what_members_had_is_read_from_what_they_send() -> None:
    """The cases also say what the subscriptions are on the wire: read from there the answer is the same."""

    def check(case: dict[str, Any]) -> None:
        assign = assign_sticky if case["assignor"] == "sticky" else assign_cooperative
        group = group_of(case)
        if "expected_error" in case:
            with pytest.raises(JavaFailure, match=case["expected_error"]):
                assign(group)
            return
        assert assign(group, max_generation=case.get("max_generation", -1)).assignment == expected(case)

    check_each(STICKY, check)


@pytest.mark.slow
def test_random_groups_are_answered_as_by_kafka_4_3() -> None:
    """Groups that no sane coordinator would let come about are among them, and so are those where Kafka fails."""

    def check(case: dict[str, Any]) -> None:
        group = as_leader(group_of(case))
        assignor = ASSIGNORS[case["assignor"]]()
        if "max_generation" in case:
            assignor._max_generation = case["max_generation"]  # type: ignore[attr-defined]
        if "expected_error" in case:
            with pytest.raises(JavaFailure) as failure:
                assignor.assign(group)
            assert failure.value.exception == case["expected_error"]
            return
        assert assignor.assign(group) == expected(case)

    check_each(JAVA_ANSWERS, check)


def test_the_rule_where_kafka_fails_can_be_passed_over() -> None:

    def check(case: dict[str, Any]) -> None:
        group = group_of(case)
        given = StickyAssignor(strict=False).assign(group)
        assert set(given) == set(group.subscriptions)
        # Two members claim what one of them does not want any more, which is how Kafka comes to fail.
        check_assignment("sticky", group, given, RebalanceProtocol.EAGER)

    check_each([case for case in VECTORS if "NullPointer" in case.get("expected_error", "")], check)


def test_only_the_order_of_topics_depends_on_how_the_leader_learnt_of_them() -> None:

    def check(case: dict[str, Any]) -> None:
        group = group_of(case)
        backwards = replace(group, partitions=dict(list(group.partitions.items())[::-1]))
        one, other = RangeAssignor().assign(group), RangeAssignor().assign(backwards)
        assert {member: sorted(given) for member, given in one.items()} == {
            member: sorted(given) for member, given in other.items()
        }
        assert list(as_leader(backwards).partitions) == list(as_leader(group).partitions)

    check_each([case for case in VECTORS if case["assignor"] == "range"][:20], check)


def test_a_case_lists_members_as_java_would() -> None:
    for case in VECTORS:
        assert hash_map_order([member["id"] for member in case["members"]], string_hash) == case["java_member_order"]


def test_a_case_that_fails_is_named() -> None:
    def check(case: dict[str, Any]) -> None:
        assert case["id"] != "b"

    with pytest.raises(BaseExceptionGroup, match="1 cases") as failed:
        check_each([{"id": "a"}, {"id": "b"}, {"id": "c"}], check)
    assert failed.value.exceptions[0].__notes__ == ["case b"]
