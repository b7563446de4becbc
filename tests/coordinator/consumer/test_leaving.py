"""Leaving for good, leaving for now as a static member, coming back, and being out of time."""

from typing import Any

import pytest

from groupcoord.coordinator.consumer.member import MemberState
from groupcoord.coordinator.events import (
    Departure,
    GroupEpochBumped,
    MemberRemoved,
    StaticMemberAway,
    StaticMemberReplaced,
)
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.consumer.consumers import ConsumerWorld, settle

SESSION_MS = 45_000


# --- leaving


def test_leaving() -> None:
    """The next epoch begins; the target assignment follows with the next heartbeat of another."""
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab")
    answer = b.leave().answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, answer.assignment) == (
        "b",
        -1,
        0,
        None,
    )
    assert w.last() == "-current:b -target:b -member:b group"
    assert w.state == "Assigning"
    (removed,) = w.seen(MemberRemoved)
    assert (removed.member, removed.how, removed.reason) == ("b", Departure.LEFT, "it left")
    assert w.seen(GroupEpochBumped)[-1].reason == "b is out: it left"
    settle([a])
    assert a.assigned == {"t": [0, 1, 2]}
    a.leave()
    assert (w.state, w.consumers.epochs.metadata_hash) == ("Empty", 0)
    assert repr(w.consumers) == "<ConsumerGroup g Empty epoch=5 members=0>"
    assert not [timer for timer in w.coordinator.timers.pending() if timer.key.kind != "retention"]


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"member_id": "z"}, ErrorCode.UNKNOWN_MEMBER_ID, "Member z is not a member of group g."),
        ({"instance_id": "j"}, ErrorCode.UNKNOWN_MEMBER_ID, "Instance id j is unknown."),
        (
            {"member_id": "z", "instance_id": "i"},
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member z with instance id i was fenced by member a.",
        ),
    ],
)
@pytest.mark.parametrize("epoch", [-1, -2, 2])
def test_who_is_not_known(changes: dict[str, Any], error: ErrorCode, says: str, epoch: int) -> None:
    if epoch == -2 and "instance_id" not in changes:
        changes = {"instance_id": "j", **changes}
        says = "Instance id j is unknown."
    w = ConsumerWorld()
    w.consumer("a", instance="i").join()
    asked = w.consumer("a").heartbeat(member_epoch=epoch, **changes)
    assert (asked.error, asked.answer.error_message) == (error, says)


# --- static members


def static_pair() -> tuple[ConsumerWorld, Any, Any]:
    """A static member and one that is not."""
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a", instance="i"), w.consumer("b")
    a.join()
    b.join()
    settle([a, b])
    return w, a, b


def test_away_and_back_with_another_id() -> None:
    """The others notice nothing: no epoch, no target."""
    w, a, b = static_pair()
    assert a.away().answer.member_epoch == -2
    assert w.last() == "current:a"
    assert [each.instance_id for each in w.seen(StaticMemberAway)] == ["i"]
    before = len(w.batches)
    b.heartbeat()
    assert (len(w.batches), b.epoch) == (before, 3)
    back = w.consumer("a2", instance="i")
    back.join()
    assert (back.epoch, back.assigned) == (3, {"t": [0, 1]})
    assert w.last() == "-current:a -target:a -member:a member:a2 target:a2 current:a2 member:a2 current:a2"
    (replaced,) = w.seen(StaticMemberReplaced)
    assert (replaced.old_member, replaced.new_member, replaced.rebalances) == ("a", "a2", False)
    assert a.heartbeat(member_epoch=3).error is ErrorCode.FENCED_INSTANCE_ID
    assert w.state == "Stable"
    for _ in range(2):  # nothing becomes of the session of the old id
        w.advance(SESSION_MS // 2 + 1)
        b.heartbeat()
        back.heartbeat()
    assert not w.seen(MemberRemoved)


def test_back_with_the_same_id() -> None:
    _, a, _ = static_pair()
    a.away()
    a.join()
    assert (a.epoch, a.assigned) == (3, {"t": [0, 1]})


def test_back_with_other_topics() -> None:
    """Then it is a change like others, and the target is computed from what it had."""
    w, a, b = static_pair()
    w.topics.create("u", 1)
    a.away()
    back = w.consumer("a2", "t", "u", instance="i")
    back.join()
    assert (back.epoch, back.assigned) == (4, {"t": [0, 1], "u": [0]})
    assert w.seen(StaticMemberReplaced)[0].rebalances
    settle([back, b])
    assert b.assigned == {"t": [2, 3]}


def test_an_instance_id_that_is_taken() -> None:
    w, a, _ = static_pair()
    for member_id in ("z", "a"):
        asked = w.consumer(member_id, instance="i").join()
        assert asked.error is ErrorCode.UNRELEASED_INSTANCE_ID
        assert asked.answer.error_message == (
            f"Static member {member_id} with instance id i cannot join the group because the instance id is owned by a member."
        )
    assert a.heartbeat().error is ErrorCode.NONE


def test_a_static_member_that_is_gone_for_good() -> None:
    _, a, b = static_pair()
    assert a.leave().answer.member_epoch == -1
    settle([b])
    assert b.assigned == {"t": [0, 1, 2, 3]}


def test_a_static_member_that_leaves_as_a_dynamic_one() -> None:
    """Without its instance id it is gone, also while it is away."""
    w, a, _ = static_pair()
    a.away()
    a.leave(instance_id=None)
    assert "a" not in w.consumers.members


def test_a_static_member_that_is_away_while_it_gives_back() -> None:
    """What it had to give back is free at once."""
    w = ConsumerWorld(topics={"t": 4})
    a, b = w.consumer("a", instance="i"), w.consumer("b")
    a.join()
    b.join()
    a.heartbeat()
    a.away()
    assert (a.stored.assigned[w.topics.ids["t"]], a.stored.revoking) == ({0: 0, 1: 0}, {})
    b.heartbeat()
    assert b.assigned == {"t": [2, 3]}


# --- out of time


def test_a_silent_member_is_removed() -> None:
    w = ConsumerWorld()
    a, b = w.joined_consumers("ab")
    w.advance(SESSION_MS - 1)
    b.heartbeat()
    w.advance(1)
    (removed,) = w.seen(MemberRemoved)
    assert (removed.member, removed.how, removed.reason) == ("a", Departure.SESSION_OVER, "its session timed out")
    assert removed.timeout_ms == SESSION_MS
    w.advance(SESSION_MS - 2)
    assert b.heartbeat().error is ErrorCode.NONE
    assert a.heartbeat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_away_too_long() -> None:
    w, a, _ = static_pair()
    a.away()
    w.advance(SESSION_MS)
    assert w.state == "Empty"


@pytest.mark.parametrize("gives_back", [True, False])
def test_who_does_not_give_back_in_time_is_removed(gives_back: bool) -> None:
    w = ConsumerWorld(topics={"t": 2})
    a, b = w.consumer("a", rebalance_ms=10_000), w.consumer("b")
    a.join()
    b.join()
    a.heartbeat()
    assert w.deadline("rebalance", "a") == 10_000
    w.advance(5_000)
    a.heartbeat()  # an ordinary heartbeat gains no time
    assert w.deadline("rebalance", "a") == 5_000
    if gives_back:
        a.owns()
        assert w.deadline("rebalance", "a") is None
    w.advance(5_000)
    assert [each.how for each in w.seen(MemberRemoved)] == ([] if gives_back else [Departure.NOT_REVOKED])
    settle([b])
    assert b.assigned == ({"t": [1]} if gives_back else {"t": [0, 1]})


def test_a_removal_that_cannot_be_stored_is_tried_again() -> None:
    w = ConsumerWorld()
    w.joined_consumers("a")
    w.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    w.advance(SESSION_MS)
    assert "a" in w.consumers.members
    w.fail_appends(None)
    w.advance(499)
    assert "a" in w.consumers.members
    w.advance(1)
    assert "a" not in w.consumers.members


def test_a_late_member_whose_removal_cannot_be_stored_stays_for_now() -> None:
    w = ConsumerWorld(topics={"t": 2})
    a = w.consumer("a", rebalance_ms=10_000)
    a.join()
    w.consumer("b").join()
    a.heartbeat()
    w.hold_appends()
    w.advance(10_000)
    while w.held:
        w.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert w.deadline("rebalance", "a") == 500
    assert a.stored.state is MemberState.UNREVOKED_PARTITIONS
