from groupcoord.protocol.errors import ErrorCode
from tests.coordinator.world import INITIAL_DELAY_MS, World


def test_an_empty_group_id_is_invalid() -> None:
    """Gotcha 39."""
    assert World().member("a", member_id="a-1").heartbeat(group="").error is ErrorCode.INVALID_GROUP_ID


def test_an_empty_group_id_is_invalid_even_if_there_is_such_a_group() -> None:
    """Gotcha 39: offsets can be committed to it; seen on a real 4.3.1."""
    world = World()
    world.commit(group="")
    assert world.member("a", member_id="a-1").heartbeat(group="").error is ErrorCode.INVALID_GROUP_ID


def test_a_member_of_a_stable_group_keeps_its_session() -> None:
    world = World()
    (a,) = world.stable("a")
    world.advance(9_999)
    assert a.heartbeat().error is ErrorCode.NONE
    assert world.deadline("session", "a-1") == 10_000


def test_a_member_that_waits_for_its_assignment_keeps_its_session() -> None:
    world = World()
    a = world.member("a")
    world.joined(a)
    world.advance(5_000)
    assert a.heartbeat().error is ErrorCode.NONE
    assert world.deadline("session", "a-1") == 10_000


def test_during_a_rebalance_a_member_is_told_so_and_keeps_its_session() -> None:
    world = World()
    a, b = world.stable("a", "b")
    world.advance(5_000)
    a.join()
    assert b.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.deadline("session", "b-2") == 10_000


def test_even_a_member_whose_join_is_parked() -> None:
    world = World()
    a, _ = world.stable("a", "b")
    a.join()
    world.advance(1_000)
    assert a.heartbeat().error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.deadline("session", "a-1") == 10_000


def test_a_refused_heartbeat_keeps_no_session() -> None:
    world = World()
    (a,) = world.stable("a")
    world.advance(1_000)
    a.heartbeat(generation=7)
    assert world.deadline("session", "a-1") == 9_000


def test_who_one_is_is_checked_before_the_generation() -> None:
    world = World()
    (a,) = world.stable(world.member("a", instance="i"))
    assert a.heartbeat(member_id="i-0", generation=7).error is ErrorCode.FENCED_INSTANCE_ID
    assert a.heartbeat(instance="other", generation=7).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert a.heartbeat(member_id="x", instance=None, generation=7).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_need_not_say_its_instance_id() -> None:
    world = World()
    (a,) = world.stable(world.member("a", instance="i"))
    assert a.heartbeat(instance=None).error is ErrorCode.NONE


def test_a_heartbeat_does_not_overtake_what_is_being_stored() -> None:
    world = World()
    (a,) = world.stable("a")
    world.hold_appends()
    a.commit()
    beat = a.heartbeat()
    assert beat.parked
    world.confirm()
    assert beat.error is ErrorCode.NONE


def test_a_heartbeat_behind_an_append_that_fails() -> None:
    """Gotcha 43: while a partition loads, heartbeats are fine; any other failure reaches the member."""
    world = World()
    (a,) = world.stable("a")
    world.hold_appends()
    a.commit()
    first = a.heartbeat()
    world.fail(ErrorCode.NETWORK_EXCEPTION)
    assert first.error is ErrorCode.NONE
    a.commit()
    second = a.heartbeat()
    world.fail(ErrorCode.REQUEST_TIMED_OUT)
    assert second.error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_new_member_that_is_parked_may_beat_and_then_has_only_its_session() -> None:
    world = World()
    a = world.member("a")
    a.enter()
    assert a.heartbeat(generation=0).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.deadline("session", "a-1") == 10_000
    world.advance(INITIAL_DELAY_MS)
    assert a.generation == 1
