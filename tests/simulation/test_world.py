"""Everything that can be done to a group, alone and one after the other, and runs with and without skipping."""

import pytest

from groupcoord.simulation import (
    ActionKind,
    MemberPlan,
    PlannedAction,
    SimulationPlan,
    SimulationResult,
    plan_from_seed,
    simulate_plan,
)
from groupcoord.simulation.actions import BROKER_ACTIONS, GROUP_KINDS
from tests.simulation.runs import run

pytestmark = pytest.mark.slow


def plan_with(
    *actions: PlannedAction, assignor: str = "range", static: bool = False, brokers: int = 1, **of_members: int
) -> SimulationPlan:
    members = tuple(
        MemberPlan(
            name=name,
            assignors=(assignor,),
            topics=("orders",),
            instance_id=f"instance-{name}" if static and name == "a" else None,
            session_timeout_ms=10_000,
            max_poll_interval_ms=10_000,
            commit_interval_ms=of_members.get("commit_interval_ms", 20_000),
            callback_ms=of_members.get("callback_ms", 0),
        )
        for name in "ab"
    )
    return SimulationPlan(
        members=members,
        topics={"orders": 4, "payments": 1, "refunds": 1},
        actions=actions,
        heal_ms=60_000,
        key=11,
        brokers=brokers,
    )


def told(result: SimulationResult) -> str:
    return "\n".join(f"{line.source}: {line.text}" for line in result.lines)


ALONE: list[tuple[ActionKind, bool]] = [
    (kind, False) for kind in GROUP_KINDS if kind is not ActionKind.TWIN
]  # only static members have twins
ALONE += [(kind, True) for kind in GROUP_KINDS if kind not in BROKER_ACTIONS]


@pytest.mark.parametrize(("kind", "static"), ALONE)
def test_each_thing_alone(kind: ActionKind, static: bool) -> None:
    first = PlannedAction(at_ms=10_000, kind=kind, for_ms=12_500, amount=700)
    again = PlannedAction(at_ms=14_000, kind=kind, for_ms=300, amount=2)
    assignor = "cooperative-sticky" if static else "range"
    run(plan_with(first, again, static=static, assignor=assignor, brokers=3 if kind is ActionKind.MOVE else 1))


def test_a_silent_member_is_out_and_comes_back() -> None:
    result = run(plan_with(PlannedAction(at_ms=20_000, kind=ActionKind.PAUSE, member=1, for_ms=25_000)))
    assert "is out: nothing was heard of it in its session of 10000 ms" in told(result)


def test_a_busy_member_leaves_and_comes_back() -> None:
    result = run(plan_with(PlannedAction(at_ms=19_000, kind=ActionKind.BUSY, for_ms=15_000)))
    assert "nobody asked for records for 10000 ms" in told(result)


def test_a_twin_fences() -> None:
    result = run(plan_with(PlannedAction(at_ms=20_000, kind=ActionKind.TWIN, for_ms=20_000), static=True))
    assert "FENCED_INSTANCE_ID" in told(result)


def test_a_static_member_keeps_what_it_has() -> None:
    result = run(plan_with(PlannedAction(at_ms=20_000, kind=ActionKind.CRASH, for_ms=2_000), static=True))
    assert "and keeps its assignment" in told(result)


def test_slow_callbacks_and_a_member_that_is_still_leaving_when_it_is_started_again() -> None:
    leave = PlannedAction(at_ms=20_000, kind=ActionKind.LEAVE, for_ms=500)
    run(plan_with(leave, callback_ms=2_000))
    run(plan_with(PlannedAction(at_ms=59_500, kind=ActionKind.LEAVE, for_ms=5_000), callback_ms=2_000))


def test_appends_that_fail_one_after_the_other() -> None:
    held = PlannedAction(at_ms=19_900, kind=ActionKind.HOLD_APPEND, for_ms=3_000)
    lost = PlannedAction(at_ms=19_950, kind=ActionKind.LOSE_APPEND, for_ms=6_000)
    moved = PlannedAction(at_ms=21_000, kind=ActionKind.MOVE, for_ms=1, amount=50)
    run(plan_with(held, lost, brokers=3))
    run(plan_with(lost, held, brokers=3))
    run(plan_with(held, moved, brokers=3))


def test_all_members_wait_while_the_coordinator_loads() -> None:
    reload = PlannedAction(at_ms=20_000, kind=ActionKind.RELOAD, for_ms=1_000, amount=3_000)
    result = run(plan_with(reload, PlannedAction(at_ms=20_500, kind=ActionKind.MOVE, amount=5), brokers=3))
    assert "records of __consumer_offsets-0 in 3000 ms" in told(result)


@pytest.mark.untraced  # plans that are written for one thing each reach every line
@pytest.mark.parametrize("seed", range(12))
def test_skipping_changes_nothing(seed: int) -> None:
    plan = plan_from_seed(seed)
    quick, whole = simulate_plan(plan, record=True), simulate_plan(plan, skip=False, record=True)
    assert quick.ok, quick.text()
    assert quick.lines == whole.lines
    assert quick.steps < whole.steps


def test_a_run_is_a_function_of_its_plan() -> None:
    plan = plan_from_seed(3)
    assert simulate_plan(plan, record=True).lines == simulate_plan(plan, record=True).lines
