"""Static members that come back (KIP-345, KIP-814). ``back`` is the next life of a member: same instance id, no member id."""

from typing import Any

import pytest

from groupcoord.coordinator.events import RebalanceStarted, StaticMemberReplaced
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import INITIAL_DELAY_MS, Member, World, subscription


def two(**terms: Any) -> tuple[World, Member, Member]:
    """Static leader a (instance i) and static follower b (instance j), stable."""
    world = World()
    a, b = world.member("a", instance="i", **terms), world.member("b", instance="j", **terms)
    world.stable(a, b)
    assert a.leads
    return world, a, b


def back(member: Member, **terms: Any) -> Member:
    same = {"instance": member.instance, "protocols": member.protocols, "session_ms": member.session_ms}
    return member.world.member(member.name, **(same | terms))


# --- in a stable group


def test_a_follower_that_comes_back_keeps_its_assignment_and_nobody_rebalances() -> None:
    world, a, b = two()
    again = back(b)
    answer = again.join().answer
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, 1, "j-3")
    assert (answer.leader, answer.members, answer.skip_assignment) == ("i-1", (), False)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert world.group.state == "Stable"
    assert again.sync().answer.assignment == b"for j-2"
    assert a.heartbeat().error is ErrorCode.NONE


def test_from_version_9_a_leader_that_comes_back_gets_the_members_and_skips_the_assignment() -> None:
    """Gotcha 24, KIP-814."""
    _, a, _ = two()
    answer = back(a).join(version=9).answer
    assert (answer.leader, answer.member_id, answer.skip_assignment) == ("i-3", "i-3", True)
    assert {member.member_id for member in answer.members} == {"i-3", "j-2"}


@pytest.mark.parametrize("version", [5, 8])
def test_before_version_9_a_leader_that_comes_back_takes_itself_for_a_follower(version: int) -> None:
    """Gotcha 24: it is told the leader's old id."""
    world, a, _ = two()
    answer = back(a).join(version=version).answer
    assert (answer.leader, answer.member_id, answer.members) == ("i-1", "i-3", ())
    assert not answer.skip_assignment
    assert world.group.leader_id == "i-3"


def test_another_subscription_alone_does_not_rebalance() -> None:
    """Gotcha 23: the protocol that is voted for is the same."""
    world, _, b = two()
    assert back(b, protocols={"range": subscription("u")}).join().error is ErrorCode.NONE
    assert world.group.state == "Stable"


def test_another_voted_protocol_does() -> None:
    world, _a, b = two(protocols={"sticky": b"", "range": b""})
    assert back(b, protocols={"range": b""}).join().parked
    assert world.group.state == "PreparingRebalance"
    assert world.seen(RebalanceStarted)[-1].reason == "static member j is back as j-3 and the voted protocol changes"


def test_client_id_and_host_are_those_of_the_first_life() -> None:
    """Gotcha 25: also in the log."""
    world, _, b = two()
    b.name = "renamed"
    back(b, host="/9.9.9.9").join()
    described = {m.member_id: m for m in world.describe().answer.groups[0].members}["j-3"]
    assert (described.client_id, described.client_host) == ("b", "/127.0.0.1")
    assert {m.member_id: m.client_id for m in world.group_values[-1].members} == {"i-1": "a", "j-3": "b"}


def test_what_it_offers_and_its_timeouts_are_those_of_the_new_life() -> None:
    world, _, b = two()
    back(b, protocols={"range": b"new"}, session_ms=20_000, rebalance_ms=5).join()
    member = world.group.members["j-3"]
    assert (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms) == (
        (("range", b"new"),),
        20_000,
        5,
    )


def test_its_first_session_is_that_of_the_old_life() -> None:
    world, _, b = two()
    back(b, session_ms=20_000).join()
    assert world.deadline("session", "j-3") == 10_000
    assert world.deadline("session", "j-2") is None


def test_one_record_is_written_with_the_same_generation_and_assignments() -> None:
    world, _, b = two()
    stable_since = world.now_ms
    before = len(world.records)
    world.advance(100)
    back(b).join()
    assert len(world.records) == before + 1
    value = world.group_values[-1]
    assert (value.generation, value.leader, value.current_state_timestamp_ms) == (1, "i-1", stable_since)
    assert {m.member_id: m.assignment for m in value.members} == {"i-1": b"for i-1", "j-3": b"for j-2"}


def test_the_answer_waits_until_that_is_stored() -> None:
    world, _, b = two()
    world.hold_appends()
    waiting = back(b).join()
    assert waiting.parked
    world.confirm()
    assert waiting.error is ErrorCode.NONE


def test_the_old_member_id_is_fenced_or_unknown() -> None:
    """Gotcha 26: fenced only if the request carries the instance id."""
    _, _, b = two()
    back(b).join()
    assert b.heartbeat().error is ErrorCode.FENCED_INSTANCE_ID
    assert b.heartbeat(instance=None).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert b.sync().error is ErrorCode.FENCED_INSTANCE_ID
    assert b.join().error is ErrorCode.FENCED_INSTANCE_ID
    assert set(b.commit().partition_errors.values()) == {ErrorCode.FENCED_INSTANCE_ID}


def test_a_known_static_member_joins_again_like_anybody() -> None:
    world, a, b = two()
    assert b.join().answer.members == ()
    assert a.join().parked
    assert world.group.state == "PreparingRebalance"


def test_if_the_old_life_never_asked_for_its_assignment_the_group_still_rebalances() -> None:
    """The old id stays among those that are missing: seen on a real 4.3.1."""
    world = World()
    a = world.member("a", instance="i", session_ms=200_000)
    b = world.member("b", instance="j", session_ms=200_000)
    world.joined(a, b)
    a.sync()
    back(b).enter()
    assert world.group.state == "Stable"
    world.advance(60_000)
    assert world.group.state == "PreparingRebalance"
    assert set(world.group.members) == {"i-1", "j-3"}
    assert world.seen(RebalanceStarted)[-1].reason == "j-2 did not send SyncGroup within 60000 ms"


# --- in other states


def test_before_the_assignment_it_always_rebalances() -> None:
    world = World()
    a, b = world.member("a", instance="i"), world.member("b", instance="j")
    world.joined(a, b)
    waiting = b.sync()
    assert back(b).join().parked
    assert (waiting.error, waiting.answer.assignment) == (ErrorCode.FENCED_INSTANCE_ID, b"")
    assert world.group.state == "PreparingRebalance"
    assert world.seen(RebalanceStarted)[-1].reason == "static member j is back as j-3"


def test_a_parked_join_of_the_old_life_is_fenced() -> None:
    world = World()
    a = world.member("a", instance="i")
    waiting = a.join()
    again = back(a)
    assert again.join().parked
    answer = waiting.answer
    assert (answer.error_code, answer.member_id, answer.generation_id) == (ErrorCode.FENCED_INSTANCE_ID, "i-1", -1)
    assert (answer.leader, answer.protocol_type, answer.protocol_name, answer.members) == ("", None, None, ())
    world.advance(INITIAL_DELAY_MS)
    assert again.leads


def test_coming_back_can_be_what_a_rebalance_waited_for() -> None:
    _, a, b = two()
    waiting = a.join()
    again = back(b)
    assert again.join().error is ErrorCode.NONE
    assert waiting.answer.generation_id == 2
    assert {member.member_id for member in a.told.members} == {"i-1", "j-3"}


def test_coming_back_during_the_initial_delay_neither_ends_nor_extends_it() -> None:
    world = World()
    a = world.member("a", instance="i")
    a.join()
    world.advance(1_000)
    again = back(a)
    waiting = again.join()
    world.advance(1_999)
    assert waiting.parked
    world.advance(1)
    assert waiting.error is ErrorCode.NONE


def test_in_an_empty_group_it_is_a_member_like_any_other() -> None:
    world, a, b = two()
    a.leave()
    b.leave()
    again = back(b)
    assert again.join().parked
    assert world.seen(StaticMemberReplaced) == []


def test_after_its_session_it_is_new() -> None:
    world, a, b = two()
    world.advance(9_000)
    a.heartbeat()
    world.advance(1_000)
    assert set(world.group.members) == {"i-1"}
    assert back(b).join().parked
    assert world.seen(StaticMemberReplaced) == []


# --- when it cannot be stored


def test_if_it_cannot_be_stored_the_old_life_is_put_back() -> None:
    world, _a, b = two()
    world.fail_appends(ErrorCode.REQUEST_TIMED_OUT)
    again = back(b, protocols={"range": b"new"}, session_ms=20_000, rebalance_ms=5)
    answer = again.join().answer
    assert (answer.error_code, answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert (answer.generation_id, answer.protocol_type, answer.protocol_name) == (1, "consumer", "range")
    assert (answer.leader, answer.members) == ("i-1", ())
    member = world.group.members["j-2"]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 60_000)
    assert (member.protocols, member.assignment) == ((("range", subscription("t")),), b"for j-2")
    assert b.heartbeat().error is ErrorCode.NONE


def test_if_it_cannot_be_stored_the_leader_is_the_old_one_again() -> None:
    world, a, _ = two()
    world.fail_appends(ErrorCode.REQUEST_TIMED_OUT)
    assert back(a).join().answer.leader == "i-1"
    assert world.group.leader_id == "i-1"
    assert world.deadline("session", "i-1") == 10_000
    assert world.deadline("session", "i-3") is None


def test_if_neither_of_two_lives_can_be_stored_the_one_before_the_last_is_put_back() -> None:
    """As in Kafka, where the first of them finds that it is gone already."""
    world, _, b = two()
    world.hold_appends()
    first, second = back(b).join(), back(b).join()
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    world.fail(ErrorCode.KAFKA_STORAGE_ERROR)
    assert second.error is ErrorCode.NOT_COORDINATOR
    assert set(world.group.members) == {"i-1", "j-3"}


def test_a_life_whose_record_takes_too_long_and_is_followed_by_another_changes_nothing() -> None:
    world, _, b = two()
    world.hold_appends()
    first = back(b).join()
    world.advance(4_999)
    second = back(b).join()
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    world.advance(1)
    assert set(world.group.members) == {"i-1", "j-4"}
    world.confirm()
    world.confirm()
    assert second.error is ErrorCode.NONE


def test_a_success_after_the_next_life_has_come_answers_only_that() -> None:
    world, _, b = two()
    world.hold_appends()
    first, second = back(b).join(), back(b).join()
    world.confirm()
    assert second.parked
    world.confirm()
    assert (first.error, second.error) == (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.NONE)


def test_a_failure_after_a_rebalance_answers_nobody_twice() -> None:
    """The group went on while the record was on its way, so the new life has its answer; then it is put back all the same."""
    world, a, b = two()
    world.hold_appends()
    again = back(b)
    waiting = again.join()
    a.join()
    assert waiting.answer.generation_id == 2
    parked = again.sync()
    world.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert parked.error is ErrorCode.FENCED_INSTANCE_ID
    assert set(world.group.members) == {"i-1", "j-2"}
    assert again.heartbeat().error is ErrorCode.FENCED_INSTANCE_ID


# --- what is said of it


@pytest.mark.parametrize(("quiet", "effect"), [(True, "and keeps its assignment"), (False, "which starts a rebalance")])
def test_a_replacement_says_who_is_who(quiet: bool, effect: str) -> None:
    world, _, b = two(protocols={"sticky": b"", "range": b""})
    back(b, protocols=b.protocols if quiet else {"range": b""}).join()
    (replaced,) = world.seen(StaticMemberReplaced)
    assert replaced.text() == f"static member j is back as j-3, was j-2, {effect}"
