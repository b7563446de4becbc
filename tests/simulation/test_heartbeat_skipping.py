from types import SimpleNamespace
from typing import Any

import pytest

from groupcoord.protocol.messages import HeartbeatRequest
from groupcoord.simulation import ActionKind, MemberPlan, PlannedAction, SimulatedWorld, SimulationPlan, simulate_plan
from groupcoord.simulation.event_queue import EventQueue
from groupcoord.simulation.member_process import MARGIN_MS, HeartbeatSkipper, UnsafeSkipError


def steps(**of_member: Any) -> tuple[int, int]:
    """How many steps a run takes with skipping, and without; the stories are the same."""
    members = tuple(MemberPlan(name=name, assignors=("range",), topics=("orders",), **of_member) for name in "ab")
    paused = PlannedAction(at_ms=30_000, kind=ActionKind.PAUSE, for_ms=20_000)
    plan = SimulationPlan(members=members, topics={"orders": 4}, actions=(paused,), heal_ms=60_000)
    quick, whole = simulate_plan(plan, record=True), simulate_plan(plan, skip=False, record=True)
    assert quick.ok, quick.text()
    assert quick.lines == whole.lines
    return quick.steps, whole.steps


@pytest.mark.slow
def test_nearly_all_heartbeats_of_a_quiet_group_are_left_out() -> None:
    quick, whole = steps(session_timeout_ms=6_000, heartbeat_interval_ms=2_000, commit_interval_ms=200_000)
    assert quick < whole / 10


@pytest.mark.slow
def test_a_session_may_be_hardly_longer_than_the_time_between_heartbeats() -> None:
    quick, whole = steps(session_timeout_ms=6_050, heartbeat_interval_ms=6_000, commit_interval_ms=200_000)
    assert quick < whole / 3


def test_heartbeats_that_come_faster_than_answers_are_not_left_out() -> None:
    environment: Any = SimpleNamespace(event_queue=EventQueue(), quiet_until=lambda: 100_000)
    for interval_ms in (MARGIN_MS, MARGIN_MS - 1):
        membership: Any = SimpleNamespace(settings=SimpleNamespace(heartbeat_interval_ms=interval_ms))
        skipper = HeartbeatSkipper(environment, membership, SimpleNamespace())  # type: ignore[arg-type]
        skipper.last_success_ms = 0
        assert skipper.next_heartbeat_ms(1_000, 90_000, None) == 1_000


def test_a_skip_that_is_more_than_a_plain_heartbeat_is_unsafe() -> None:
    environment: Any = SimpleNamespace(event_queue=EventQueue(), quiet_until=lambda: 100_000)
    settings = SimpleNamespace(heartbeat_interval_ms=1_000, session_timeout_ms=10_000)
    membership: Any = SimpleNamespace(settings=settings, expire=lambda _: [])
    skipper = HeartbeatSkipper(environment, membership, SimpleNamespace())  # type: ignore[arg-type]
    skipper.last_success_ms = 0
    with pytest.raises(UnsafeSkipError):
        skipper.next_heartbeat_ms(1_000, 90_000, None)


def test_a_heartbeat_with_an_error_cannot_be_exchanged_in_advance() -> None:
    member = MemberPlan(name="a", assignors=("range",), topics=("orders",))
    world = SimulatedWorld(SimulationPlan(members=(member,), topics={"orders": 1}, actions=(), heal_ms=5_000))
    world.run()
    connection = world.network.connect(0, 0, 0, lambda *_: None)
    unknown = HeartbeatRequest(group_id="app", generation_id=1, member_id="unknown")
    with pytest.raises(UnsafeSkipError):
        world.brokers.heartbeat_in_advance(connection, 1, unknown, world.event_queue.now_ms + 1)
