import pytest

from groupcoord.coordinator.events import (
    GenerationStarted,
    InitialDelayExtended,
    LeaderElected,
    MemberRemoved,
    RebalanceStarted,
)
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import World, subscription

# --- the initial delay (KIP-134)


def test_the_first_member_waits_three_seconds() -> None:
    world = World()
    waiting = world.member("a").enter()
    world.advance(2_999)
    assert waiting.parked
    world.advance(1)
    assert waiting.answer.generation_id == 1


def test_the_first_member_alone_does_not_extend_the_delay() -> None:
    """Gotcha 15."""
    world = World()
    world.member("a").enter()
    world.advance(3_000)
    assert world.seen(InitialDelayExtended) == []


def test_each_slice_in_which_somebody_comes_is_followed_by_another() -> None:
    world = World()
    waiting = world.member("a").enter()
    world.at(2_999)
    world.member("b").enter()
    world.at(3_000)
    assert world.deadline("join") == 3_000
    world.at(5_000)
    world.member("c").enter()
    world.at(8_999)
    assert waiting.parked
    world.at(9_000)
    assert len(waiting.answer.members) == 3


def test_two_that_come_in_one_slice_extend_it_once() -> None:
    world = World()
    for name in "abc":
        world.member(name).enter()
    world.at(6_000)
    assert world.group.state == "CompletingRebalance"
    assert [event.text() for event in world.seen(InitialDelayExtended)] == [
        "somebody new came: waiting 3000 ms more (54000 ms left after that)"
    ]


def test_a_member_that_only_sends_again_extends_nothing() -> None:
    world = World()
    a = world.member("a")
    a.enter()
    a.join()
    world.at(3_000)
    assert world.group.state == "CompletingRebalance"


def test_the_first_members_rebalance_timeout_bounds_the_delay() -> None:
    """Gotcha 16: 7 s are slices of 3, 3 and 1; later members with more patience change nothing."""
    world = World()
    waiting = world.member("a", rebalance_ms=7_000).enter()
    for index, moment in enumerate((1_000, 4_000, 6_500)):
        world.at(moment)
        world.member(f"b{index}", rebalance_ms=100_000).enter()
    world.at(6_999)
    assert waiting.parked
    world.at(7_000)
    assert len(waiting.answer.members) == 4
    assert [(e.by_ms, e.remaining_ms) for e in world.seen(InitialDelayExtended)] == [(3_000, 1_000), (1_000, 0)]


def test_a_rebalance_timeout_shorter_than_the_delay_allows_no_extension() -> None:
    world = World()
    world.member("a", rebalance_ms=1_000).enter()
    world.member("b").enter()
    world.at(3_000)
    assert world.group.state == "CompletingRebalance"


def test_a_late_newcomer_of_one_initial_delay_extends_the_next() -> None:
    """The mark that somebody came is only wiped out by an extension; in Kafka too it outlives its rebalance."""
    world = World()
    a, b = world.member("a", rebalance_ms=1_000), world.member("b", rebalance_ms=1_000)
    a.enter()
    b.enter()
    world.at(3_000)
    a.leave()
    b.leave()
    assert world.group.state == "Empty"
    waiting = world.member("c").enter()
    world.at(6_000)
    assert waiting.parked
    world.at(9_000)
    assert waiting.error is ErrorCode.NONE


def test_a_group_that_has_become_empty_waits_again() -> None:
    """Gotcha 15."""
    world = World()
    (a,) = world.stable("a")
    a.leave()
    assert world.member("b").enter().parked
    assert world.deadline("join") == 3_000


def test_if_all_leave_during_the_delay_the_group_is_empty_when_it_ends() -> None:
    """Gotcha 18."""
    world = World()
    a = world.member("a")
    a.enter()
    world.at(1_000)
    a.leave()
    assert world.group.state == "PreparingRebalance"
    world.at(3_000)
    assert (world.group.state, world.group.generation_id) == ("Empty", 1)
    assert world.group_values[-1].generation == 1


def test_without_delay_two_that_come_at_once_still_share_a_generation() -> None:
    world = World(group_initial_rebalance_delay_ms=0)
    a, b = world.member("a"), world.member("b")
    waiting = [a.enter(), b.enter()]
    assert all(asked.parked for asked in waiting)
    world.advance(0)
    assert [asked.answer.generation_id for asked in waiting] == [1, 1]


# --- a rebalance of a group that has members


def test_a_rebalance_ends_when_all_have_joined() -> None:
    world = World()
    a, b = world.stable("a", "b")
    c = world.member("c")
    waiting = [c.enter(), a.join()]
    assert all(asked.parked for asked in waiting)
    b.join()
    assert [asked.answer.generation_id for asked in waiting] == [2, 2]


def test_a_group_of_one_rebalances_at_once() -> None:
    world = World()
    (a,) = world.stable("a")
    assert a.join().answer.generation_id == 2


def test_a_rebalance_waits_as_long_as_the_most_patient_member() -> None:
    """Gotcha 19."""
    world = World()
    a, b = world.stable(
        world.member("a", rebalance_ms=20_000, session_ms=100_000),
        world.member("b", rebalance_ms=30_000, session_ms=100_000),
    )
    waiting = a.join()
    world.advance(29_999)
    assert waiting.parked
    world.advance(1)
    assert len(waiting.answer.members) == 1
    assert world.seen(MemberRemoved)[0].text() == "b-2 is out: it did not join again within the rebalance timeout"
    assert b.heartbeat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_comes_later_does_not_lengthen_the_rebalance() -> None:
    """Gotcha 19: the timeout is that of the moment when the timer is set."""
    world = World()
    a, _ = world.stable(
        world.member("a", rebalance_ms=20_000, session_ms=100_000),
        world.member("b", rebalance_ms=20_000, session_ms=100_000),
    )
    waiting = a.join()
    world.member("c", rebalance_ms=500_000).enter()
    world.advance(20_000)
    assert waiting.error is ErrorCode.NONE


def test_a_rebalance_from_stable_keeps_assignments_until_the_next() -> None:
    """Gotcha 45."""
    world = World()
    a, _ = world.stable("a", "b")
    a.join()
    assert {m.member_assignment for m in world.describe().answer.groups[0].members} == {b"for a-1", b"for b-2"}


def test_a_rebalance_before_the_assignment_wipes_the_old_one_out() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.join()
    b.join()
    assert world.group.state == "CompletingRebalance"
    b.join(protocols={"range": b"new"})
    assert {member.assignment for member in world.group.members.values()} == {b""}


def test_a_rebalance_answers_parked_syncs_and_starts_their_sessions_anew() -> None:
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    waiting = b.sync()
    world.advance(3_000)
    world.member("c").enter()
    answer = waiting.answer
    assert (answer.error_code, answer.assignment) == (ErrorCode.REBALANCE_IN_PROGRESS, b"")
    assert (answer.protocol_type, answer.protocol_name) == (None, None)
    assert (world.deadline("session", "a-1"), world.deadline("session", "b-2")) == (7_000, 10_000)


def test_a_rebalance_stops_the_timer_for_the_assignment() -> None:
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    assert world.deadline("sync") == 60_000
    world.member("c").enter()
    assert world.deadline("sync") is None


def test_all_sessions_start_anew_with_a_generation() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.join()
    world.advance(9_000)
    b.join()
    assert (world.deadline("session", "a-1"), world.deadline("session", "b-2")) == (10_000, 10_000)


def test_the_first_generation_is_1_and_emptiness_is_one_too() -> None:
    """Gotcha 13."""
    world = World()
    (a,) = world.stable("a")
    assert a.generation == 1
    a.leave()
    (b,) = world.stable("b")
    assert b.generation == 3


# --- protocol and leader


def test_the_protocol_is_voted_for_anew_in_each_generation() -> None:
    world = World()
    both = {"sticky": b"", "range": b""}
    (a,) = world.stable(world.member("a", protocols=both))
    assert world.group.protocol_name == "sticky"
    b = world.member("b", protocols={"range": b""})
    b.enter()
    a.join()
    assert (a.told.protocol_name, b.told.protocol_name) == ("range", "range")
    assert world.seen(GenerationStarted)[-1].votes == {"range": 2}


def test_a_leader_that_joins_again_still_leads() -> None:
    world = World()
    a, b = world.stable("a", "b")
    a.join()
    b.join()
    assert a.leads


def test_a_leader_that_stays_away_is_succeeded_by_the_first_of_the_others() -> None:
    world = World()
    _a, b = world.stable("a", "b")
    b.join(protocols={"range": b"new"})
    world.advance(10_000)
    assert b.leads
    assert world.seen(LeaderElected)[-1].leader == "b-2"


def test_a_static_leader_that_does_not_return_is_succeeded_but_stays_a_member() -> None:
    """Gotchas 20 and 21."""
    world = World()
    terms = {"session_ms": 100_000, "rebalance_ms": 20_000}
    _, b = world.stable(world.member("a", instance="i", **terms), world.member("b", **terms))
    b.join(protocols={"range": b"new"})
    world.advance(20_000)
    assert b.leads
    assert {member.member_id for member in b.told.members} == {"i-1", "b-2"}
    assert world.seen(LeaderElected)[-1].text() == "leader is b-2: the leader before, i-1, did not join again in time"


def test_the_sync_timeout_removes_unreturned_static_members_too() -> None:
    """Gotcha 20."""
    world = World()
    terms = {"session_ms": 1_000_000, "rebalance_ms": 20_000}
    _, b = world.stable(world.member("a", instance="i", **terms), world.member("b", **terms))
    b.join(protocols={"range": b"new"})
    world.advance(20_000)
    b.sync()
    world.advance(20_000)
    assert set(world.group.members) == {"b-2"}
    assert world.group.static_members == {}


def test_if_only_unreturned_static_members_are_left_the_group_goes_on_waiting() -> None:
    """Gotcha 22: until their sessions run out."""
    world = World()
    terms = {"session_ms": 50_000, "rebalance_ms": 20_000}
    world.stable(world.member("a", instance="i", **terms), world.member("b", instance="j", **terms))
    c = world.member("c", rebalance_ms=20_000)
    c.enter()
    c.leave()
    started = world.now_ms
    world.advance(20_000)
    assert (world.group.state, world.group.generation_id) == ("PreparingRebalance", 1)
    assert world.deadline("join") == 20_000
    world.at(started + 50_000)
    assert (world.group.state, world.group.generation_id) == ("Empty", 2)


@pytest.mark.parametrize("rebalance_ms", [0, -1, -(2**31)])
def test_a_rebalance_timeout_that_is_none_lets_time_go_on(rebalance_ms: int) -> None:
    """Nothing forbids it. Here only an unreturned static member is left, for which the group would wait again and again."""
    world = World(group_min_session_timeout_ms=100)
    (a,) = world.stable(world.member("a", instance="i", session_ms=100))
    a.join(rebalance_ms=rebalance_ms)
    a.sync()
    c = world.member("c", rebalance_ms=rebalance_ms)
    c.enter()
    c.leave()
    world.advance(99)
    assert world.group.state == "PreparingRebalance"
    world.advance(1)
    assert world.group.state == "Empty"


# --- subscriptions


def test_the_subscribed_topics_are_those_of_the_generation() -> None:
    world = World()
    a, b = world.stable(
        world.member("a", protocols={"range": subscription("t")}),
        world.member("b", protocols={"range": subscription("u")}),
    )
    assert world.group.subscribed_topics == frozenset({"t", "u"})
    b.leave()
    a.join()
    assert world.group.subscribed_topics == frozenset({"t"})
    a.leave()
    assert world.group.subscribed_topics == frozenset()


# --- what is said of it


def test_a_generation_says_how_it_came_about() -> None:
    world = World()
    a = world.member("a", protocols={"range": b"", "sticky": b""})
    b = world.member("b", protocols={"sticky": b"", "range": b""})
    world.joined(a, b)
    (started,) = world.seen(GenerationStarted)
    assert started.text() == "generation 1: 2 members, protocol sticky (votes: range 1, sticky 1), leader a-1"
    assert str(started.cause) == "join timer of g"


def test_a_generation_of_one() -> None:
    world = World()
    world.stable("a")
    assert (
        world.seen(GenerationStarted)[0].text() == "generation 1: 1 member, protocol range (votes: range 1), leader a-1"
    )


@pytest.mark.parametrize("reason", ["", "rebalance enforced by user"])
def test_a_rebalance_says_why(reason: str) -> None:
    world = World()
    a, _ = world.stable("a", "b")
    a.join(reason=reason)
    first, second = world.seen(RebalanceStarted)
    assert first.text() == (
        "rebalance because member a-1 is new; nobody else was there, so it waits 3000 ms for others"
    )
    said = f" ({reason})" if reason else ""
    assert second.text() == (
        f"rebalance of generation 1 because leader a-1 joins again{said}; the members have 60000 ms to join again"
    )
