from typing import Any

import pytest

from groupcoord.coordinator.events import AssignmentReceived, RebalanceStarted
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import Member, World, assignment


def completing(**terms: Any) -> tuple[World, Member, Member]:
    """Leader a and follower b have their generation and not yet their assignment."""
    world = World()
    a, b = world.member("a", **terms), world.member("b", **terms)
    world.joined(a, b)
    return world, a, b


# --- what is checked, in Kafka's order


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_version_5_needs_both_protocol_fields_before_anything_else(field: str) -> None:
    """Gotcha 56: even before the group id is looked at."""
    changes: dict[str, Any] = {field: None}
    assert World().member("a").sync(group="", **changes).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_id_is_invalid() -> None:
    """Gotcha 39."""
    assert World().member("a").sync(group="").error is ErrorCode.INVALID_GROUP_ID


def test_a_fenced_member_is_told_so_before_its_generation_is_looked_at() -> None:
    world = World()
    world.stable(world.member("a", instance="i"))
    old = world.member("a", instance="i", member_id="i-0")
    assert old.sync(generation=99).error is ErrorCode.FENCED_INSTANCE_ID


def test_an_old_generation_is_told_so_before_the_protocols_are_looked_at() -> None:
    _, a, _ = completing()
    assert a.sync(generation=0, protocol_type="connect").error is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_the_protocols_must_be_those_of_the_group(field: str) -> None:
    _, a, _ = completing()
    changes: dict[str, Any] = {field: "other"}
    asked = a.sync(**changes)
    assert (asked.error, asked.answer.assignment) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, b"")


def test_the_protocols_are_looked_at_before_the_rebalance() -> None:
    _world, a, b = completing()
    a.sync()
    a.join()
    assert b.sync(protocol_name="other").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert b.sync().error is ErrorCode.REBALANCE_IN_PROGRESS


def test_versions_without_protocol_fields_need_none() -> None:
    _, a, _ = completing()
    assert a.sync(version=4).error is ErrorCode.NONE


def test_an_error_has_an_empty_assignment_and_no_protocols() -> None:
    _, a, _ = completing()
    answer = a.sync(generation=0).answer
    assert (answer.assignment, answer.protocol_type, answer.protocol_name) == (b"", None, None)


# --- the assignment


def test_followers_wait_for_the_leader() -> None:
    _, a, b = completing()
    waiting = b.sync()
    assert waiting.parked
    assert a.sync({a: b"mine", b: b"yours"}).answer.assignment == b"mine"
    answer = waiting.answer
    assert (answer.assignment, answer.protocol_type, answer.protocol_name) == (b"yours", "consumer", "range")


def test_all_wait_until_the_assignment_is_stored() -> None:
    world, a, b = completing()
    world.hold_appends()
    waiting = [b.sync(), a.sync()]
    assert all(asked.parked for asked in waiting)
    assert world.group.state == "CompletingRebalance"
    world.confirm()
    assert [asked.error for asked in waiting] == [ErrorCode.NONE] * 2
    assert world.group.state == "Stable"


def test_whoever_the_leader_forgets_gets_nothing() -> None:
    world, a, b = completing()
    a.sync({a: b"all"})
    assert b.sync().answer.assignment == b""
    assert {m.member_id: m.assignment for m in world.group_values[-1].members} == {"a-1": b"all", "b-2": b""}


def test_what_the_leader_gives_to_strangers_is_dropped() -> None:
    world, a, _ = completing()
    a.sync({a: b"x", "nobody": b"y"})
    assert {member.member_id for member in world.group_values[-1].members} == {"a-1", "b-2"}


def test_of_two_assignments_for_one_member_the_last_counts() -> None:
    _, a, _ = completing()
    twice: dict[Member | str, bytes] = {"a-1": b"first", a: b"second"}
    assert a.sync(twice).answer.assignment == b"second"


def test_what_a_follower_assigns_is_ignored() -> None:
    _world, a, b = completing()
    b.sync({a: b"stolen", b: b"stolen"})
    a.sync({a: b"1", b: b"2"})
    assert (a.assigned, b.assigned) == (b"1", b"2")


def test_in_a_stable_group_even_the_leader_only_asks_for_its_own() -> None:
    world, a, b = completing()
    a.sync({a: b"1", b: b"2"})
    assert a.sync({a: b"other", b: b"other"}).answer.assignment == b"1"
    assert b.sync().answer.assignment == b"2"
    assert len(world.group_values) == 2


def test_the_record_of_the_assignment_has_the_time_when_the_generation_began() -> None:
    """Gotcha 52: the group is not stable yet when the record is made."""
    world, a, _ = completing()
    began = world.now_ms
    world.advance(500)
    a.sync()
    assert world.group_values[-1].current_state_timestamp_ms == began


def test_the_record_of_the_assignment_holds_the_generation() -> None:
    world, a, b = completing()
    b.sync()
    a.sync({a: b"1", b: b"2"})
    value = world.group_values[-1]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", "a-1")
    record = {m.member_id: m for m in value.members}["b-2"]
    assert (record.client_id, record.client_host, record.group_instance_id) == ("b", "/127.0.0.1", None)
    assert (record.session_timeout_ms, record.rebalance_timeout_ms) == (10_000, 60_000)
    assert (record.subscription, record.assignment) == (b.protocols["range"], b"2")  # type: ignore[call-overload]


def test_a_generation_writes_nothing_before_its_assignment() -> None:
    world, _, b = completing()
    b.sync()
    assert len(world.records) == 1


def test_a_parked_sync_that_is_sent_again_is_never_answered() -> None:
    """Gotcha 42."""
    _, a, b = completing()
    first, second = b.sync(), b.sync()
    a.sync()
    assert first.parked
    assert second.error is ErrorCode.NONE


def test_a_join_while_the_assignment_is_on_its_way_makes_it_void() -> None:
    world, a, b = completing()
    world.hold_appends()
    waiting = [a.sync(), b.sync()]
    world.member("c", instance="i").join()
    assert [asked.error for asked in waiting] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    world.confirm()
    assert world.group.state == "PreparingRebalance"
    assert {member.assignment for member in world.group.members.values()} == {b""}


def test_a_second_assignment_on_its_way_changes_nothing_any_more() -> None:
    world, a, _b = completing()
    world.hold_appends()
    a.sync({a: b"1"})
    a.sync({a: b"2"})
    world.confirm()
    world.confirm()
    assert world.group.members["a-1"].assignment == b"1"
    assert a.assigned == b"1"


def test_if_the_assignment_cannot_be_stored_all_join_again() -> None:
    world, a, b = completing()
    waiting = b.sync()
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert a.sync().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.answer.assignment == b""
    assert world.group.state == "PreparingRebalance"
    assert world.seen(RebalanceStarted)[-1].reason == "the assignment could not be stored: NOT_ENOUGH_REPLICAS"


def test_an_assignment_that_cannot_be_stored_does_not_bring_the_old_one_back() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.join()
    b.join()
    waiting = b.sync()
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert (a.sync().answer.assignment, waiting.answer.assignment) == (b"", b"")


def test_an_assignment_of_an_older_generation_is_void() -> None:
    world, a, b = completing()
    world.hold_appends()
    a.sync()
    b.join(protocols={"range": b"new"})
    a.join()
    assert (world.group.state, a.generation) == ("CompletingRebalance", 2)
    waiting = b.sync()
    world.confirm()
    assert waiting.parked
    assert world.group.state == "CompletingRebalance"


def test_a_failure_that_comes_too_late_means_nothing() -> None:
    world, a, b = completing()
    world.hold_appends()
    a.sync()
    b.join(protocols={"range": b"new"})
    world.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert len(world.seen(RebalanceStarted)) == 2


# --- timers


def test_a_sync_in_a_stable_group_does_not_keep_the_session() -> None:
    """Gotcha 27."""
    world, a, b = completing()
    a.sync()
    world.advance(4_000)
    b.sync()
    assert world.deadline("session", "b-2") == 6_000


def test_the_session_starts_anew_when_a_parked_sync_is_answered() -> None:
    """Gotcha 28."""
    world, a, b = completing()
    b.sync()
    world.advance(9_999)
    a.sync()
    assert world.deadline("session", "b-2") == 10_000


def test_the_timer_for_the_assignment_stops_when_all_have_asked() -> None:
    world, a, b = completing()
    assert world.deadline("sync") == 60_000
    a.sync()
    assert world.deadline("sync") == 60_000
    b.sync()
    assert world.deadline("sync") is None


def test_a_follower_that_never_asks_for_its_assignment_is_out() -> None:
    """Even of a stable group."""
    world, a, b = completing()
    a.sync()
    for _ in range(60):
        world.advance(1_000)
        a.heartbeat()
        b.heartbeat()
    assert set(world.group.members) == {"a-1"}
    assert world.group.state == "PreparingRebalance"
    assert "did not send SyncGroup within 60000 ms" in world.seen(RebalanceStarted)[-1].text()


def test_if_the_leader_never_assigns_it_is_out_and_who_waited_joins_again() -> None:
    world, _a, b = completing(session_ms=100_000)
    waiting = b.sync()
    world.advance(60_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(world.group.members) == {"b-2"}
    assert world.group.leader_id == "b-2"


# --- what is said of it


def test_the_assignment_of_consumers_is_readable() -> None:
    world, a, b = completing()
    a.sync({a: assignment("t", 0, 2), b: assignment("t", 1)})
    (received,) = world.seen(AssignmentReceived)
    assert received.owners == {"a-1": (("t", 0), ("t", 2)), "b-2": (("t", 1),)}
    assert "a-1 t-0, t-2" in received.text()
    assert "b-2 t-1" in received.text()


def test_an_assignment_that_is_none_stays_opaque() -> None:
    world, a, _ = completing()
    a.sync({a: b"\xff"})
    (received,) = world.seen(AssignmentReceived)
    assert received.owners is None
    assert received.text() == "leader a-1 assigns generation 1"


def test_an_empty_assignment_owns_nothing() -> None:
    world, a, _ = completing()
    a.sync({a: assignment("t", 0)})
    assert world.seen(AssignmentReceived)[0].text().endswith("b-2 nothing")


def test_the_assignment_of_others_than_consumers_is_not_looked_into() -> None:
    world, a, _ = completing(protocol_type="connect")
    a.sync({a: assignment("t", 0)}, protocol_type="connect")
    assert world.seen(AssignmentReceived)[0].owners is None
