import pytest

from groupcoord.coordinator.events import MemberRemoved
from groupcoord.core.events import TimerFired
from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import INITIAL_DELAY_MS, NEW_MEMBER_MS, World, subscription


def test_a_silent_member_of_a_stable_group_is_out_after_its_session() -> None:
    world = World()
    _a, b = world.stable(world.member("a"), world.member("b", session_ms=20_000))
    world.advance(9_999)
    assert len(world.group.members) == 2
    world.advance(1)
    assert set(world.group.members) == {b.member_id}
    assert world.group.state == "PreparingRebalance"
    (removed,) = world.seen(MemberRemoved)
    assert removed.text() == "a-1 is out: nothing was heard of it in its session of 10000 ms"
    assert removed.cause == TimerFired("session", "g", "a-1", world.now_ms)


def test_the_last_silent_member_leaves_an_empty_group() -> None:
    world = World()
    world.stable("a")
    world.advance(10_000)
    assert (world.group.state, world.group.generation_id) == ("Empty", 2)
    assert world.group_values[-1].members == ()


def test_a_silent_member_that_has_no_assignment_yet_is_out_and_the_others_join_again() -> None:
    world = World()
    a, b = world.member("a"), world.member("b")
    world.joined(a, b)
    world.advance(5_000)
    waiting = b.sync()
    world.advance(5_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert set(world.group.members) == {"b-2"}


def test_a_parked_sync_keeps_a_member_in() -> None:
    """Gotcha 28: the timer fires and is dropped; the answer starts it again."""
    world = World()
    a, b = world.member("a", session_ms=30_000), world.member("b")
    world.joined(a, b)
    b.sync()
    world.advance(20_000)
    assert world.deadline("session", "b-2") is None
    a.sync()
    assert world.deadline("session", "b-2") == 10_000


def test_a_parked_rejoin_keeps_a_member_in() -> None:
    """Gotcha 28."""
    world = World()
    a, b = world.stable(world.member("a"), world.member("b", session_ms=40_000))
    waiting = a.join()
    world.advance(30_000)
    assert world.deadline("session", "a-1") is None
    b.join()
    assert waiting.error is ErrorCode.NONE
    assert world.deadline("session", "a-1") == 10_000


def test_a_new_member_is_thrown_out_after_five_minutes_of_waiting() -> None:
    """Gotcha 8: as if it had never been, but told so."""
    world = World()
    a = world.member("a", rebalance_ms=1_000_000, session_ms=1_800_000)
    world.stable(a)
    b = world.member("b")
    waiting = b.enter()
    world.advance(NEW_MEMBER_MS - 1)
    assert waiting.parked
    world.advance(1)
    assert (waiting.error, waiting.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert "its first JoinGroup waited for 300000 ms" in world.seen(MemberRemoved)[-1].reason


def test_once_in_a_generation_a_member_is_new_no_more() -> None:
    world = World()
    (_a,) = world.stable("a")
    assert world.deadline("session", "a-1") == 10_000


def test_a_member_that_does_not_rejoin_is_out_at_its_session_or_the_rebalance_timeout() -> None:
    """Whichever comes first; either ends the join phase for those who wait."""
    world = World()
    a, _b = world.stable(world.member("a", session_ms=30_000), world.member("b"))
    waiting = a.join()
    world.advance(10_000)
    assert waiting.error is ErrorCode.NONE
    assert set(world.group.members) == {"a-1"}


def test_a_handed_out_id_that_nobody_comes_back_with_is_gone() -> None:
    world = World()
    a = world.member("a")
    a.join()
    world.advance(10_000)
    assert a.join().error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.seen(MemberRemoved)[0].reason == "it did not come back with its new id within 10000 ms"


def test_a_handed_out_id_that_runs_out_lets_the_others_go_on() -> None:
    """Gotcha 5."""
    world = World()
    a, b = world.stable(world.member("a", session_ms=60_000), world.member("b", session_ms=60_000))
    world.member("c").join()
    waiting = [a.join(), b.join(protocols={"range": b"new"})]
    assert all(asked.parked for asked in waiting)
    world.advance(10_000)
    assert [asked.error for asked in waiting] == [ErrorCode.NONE] * 2


@pytest.mark.parametrize("newcomer", ["handed out", "joined"])
def test_an_expiry_may_end_the_initial_delay_early(newcomer: str) -> None:
    """Gotcha 17: unlike a leave."""
    world = World(group_initial_rebalance_delay_ms=20_000)
    a, b = world.member("a"), world.member("b")
    waiting = a.enter()
    b.join()
    if newcomer == "joined":
        b.join()
        b.heartbeat(generation=0)
    assert waiting.parked
    world.advance(10_000)
    assert waiting.error is ErrorCode.NONE
    assert set(world.group.members) == {"a-1"}


def test_an_expiry_does_not_end_the_initial_delay_while_an_id_is_still_out() -> None:
    world = World(group_initial_rebalance_delay_ms=20_000)
    waiting = world.member("a").enter()
    world.member("b").join()
    world.advance(5_000)
    world.member("c").join()
    world.advance(9_999)
    assert waiting.parked
    world.advance(1)
    assert waiting.error is ErrorCode.NONE


def test_a_heartbeat_in_the_last_moment_is_in_time() -> None:
    world = World()
    (a,) = world.stable("a")
    for _ in range(5):
        world.advance(9_999)
        assert a.heartbeat().error is ErrorCode.NONE
    world.advance(INITIAL_DELAY_MS)
    assert world.group.state == "Stable"


def test_an_expiry_after_which_the_join_phase_cannot_end_tells_nobody() -> None:
    """As a real 4.3.1 does."""
    world = World()
    a, b = world.stable("a", world.member("b", session_ms=30_000))
    waiting = b.join(protocols={"range": subscription("t")[:8]})
    world.advance(10_000)
    assert a.member_id not in world.group.members
    assert (world.group.state, world.group.generation_id) == ("PreparingRebalance", 2)
    assert waiting.parked


def test_nor_does_the_end_of_somebody_who_never_came_back() -> None:
    world = World()
    (a,) = world.stable("a")
    world.member("b", session_ms=6_000).join()
    waiting = a.join(protocols={"range": subscription("t")[:8]})
    world.advance(6_000)
    assert not world.group.pending_join_members
    assert world.group.generation_id == 2
    assert waiting.parked
