import pytest

from groupcoord.assignors import Assignment, GroupSubscription, RebalanceProtocol
from groupcoord.assignors.group_simulator import MOST_REBALANCES, GroupSimulationError, GroupSimulator
from groupcoord.assignors.registry import Registry, UnknownAssignorError
from groupcoord.assignors.validation import FaultyAssignorError


def rehearsal(name: str, members: str = "ABC", partitions: int = 6) -> GroupSimulator:
    group = GroupSimulator(name, {"orders": partitions})
    for member_id in members:
        group.join(member_id)
    return group


def test_an_eager_group_moves_partitions_in_one_rebalance() -> None:
    group = rehearsal("sticky", "AB")
    group.rebalance()
    group.join("C")
    outcome = group.rebalance()
    assert (len(outcome.rounds), outcome.moved, outcome.spread) == (1, 2, 0)
    assert outcome.changes["C"].gained == outcome.assignment["C"]


def test_a_cooperative_group_needs_two_and_keeps_the_rest_in_between() -> None:
    group = rehearsal("cooperative-sticky", "AB")
    before = group.rebalance().assignment
    group.join("C")
    outcome = group.rebalance()
    first, second = outcome.rounds
    assert first["C"] == []
    assert len(second["C"]) == 2
    for member_id in "AB":
        assert first[member_id] == second[member_id] == before[member_id][:2]


def test_a_partition_of_somebody_who_left_moves_at_once() -> None:
    group = rehearsal("cooperative-sticky")
    group.rebalance()
    group.leave("B")
    assert len(group.rebalance().rounds) == 1


def test_what_the_assignor_has_to_say() -> None:
    assert "more than an even share" in (rehearsal("rendezvous").rebalance().remark or "")
    assert rehearsal("range").rebalance().remark is None


def test_a_member_wants_some_topics_only() -> None:
    group = GroupSimulator("range", {"orders": 1, "payments": 1})
    group.join("A", ["payments"])
    group.join("B")
    assert group.rebalance().assignment == {"A": [("payments", 0)], "B": [("orders", 0)]}


def test_what_cannot_happen() -> None:
    group = rehearsal("range", "A")
    with pytest.raises(GroupSimulationError, match="A is a member already"):
        group.join("A")
    with pytest.raises(GroupSimulationError, match="B cannot leave: there is no such member"):
        group.leave("B")
    group.leave("A")
    with pytest.raises(GroupSimulationError, match="the group has no members"):
        group.rebalance()
    with pytest.raises(UnknownAssignorError):
        rehearsal("rnage")


def test_an_assignor_that_never_comes_to_rest_is_given_up() -> None:
    """It always gives what is free and takes back what is owned."""

    def restless(group: GroupSubscription) -> Assignment:
        both = [("orders", 0), ("orders", 1)]
        owned = group.subscriptions["A"].owned_partitions
        return {"A": [partition for partition in both if partition not in owned] or both[:1]}

    registry = Registry(list)
    registry.register("restless", restless, protocols=[RebalanceProtocol.COOPERATIVE])
    group = GroupSimulator("restless", {"orders": 2}, registry)
    group.join("A")
    group.rebalance()
    assert len(group.rebalance().rounds) == MOST_REBALANCES


def test_a_faulty_assignor_is_named() -> None:
    registry = Registry(list)
    registry.register("nothing", lambda _: {})
    group = GroupSimulator("nothing", {"orders": 1}, registry)
    group.join("A")
    with pytest.raises(FaultyAssignorError, match="assignor nothing: forgets member A"):
        group.rebalance()
