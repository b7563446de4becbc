"""Everything that can be done to a group, alone and one after the other, and runs with and without skipping."""

import pytest

from groupcoord.testing.simulation import Action, Kind, MemberPlan, Outcome, Plan, plan_of, simulate_plan
from groupcoord.testing.simulation.plan import OF_BROKERS


def plan_with(
    *actions: Action, assignor: str = "range", static: bool = False, brokers: int = 1, **of_members: int
) -> Plan:
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
    return Plan(
        members=members, topics={"orders": 4, "payments": 1}, actions=actions, heal_ms=60_000, key=11, brokers=brokers
    )


def run(plan: Plan) -> Outcome:
    outcome = simulate_plan(plan, tell=True)
    assert outcome.ok, outcome.text()
    assert outcome.lines == simulate_plan(plan, skip=False, tell=True).lines
    return outcome


def told(outcome: Outcome) -> str:
    return "\n".join(f"{line.who}: {line.what}" for line in outcome.lines)


ALONE: list[tuple[Kind, bool]] = [
    (kind, False) for kind in Kind if kind is not Kind.TWIN
]  # only static members have twins
ALONE += [(kind, True) for kind in Kind if kind not in OF_BROKERS]


@pytest.mark.parametrize(("kind", "static"), ALONE)
def test_each_thing_alone(kind: Kind, static: bool) -> None:
    first = Action(at_ms=10_000, kind=kind, for_ms=12_500, amount=700)
    again = Action(at_ms=14_000, kind=kind, for_ms=300, amount=2)
    assignor = "cooperative-sticky" if static else "range"
    run(plan_with(first, again, static=static, assignor=assignor, brokers=3 if kind is Kind.MOVE else 1))


def test_a_silent_member_is_out_and_comes_back() -> None:
    outcome = run(plan_with(Action(at_ms=20_000, kind=Kind.PAUSE, member=1, for_ms=25_000)))
    assert "is out: nothing was heard of it in its session of 10000 ms" in told(outcome)


def test_a_busy_member_leaves_and_comes_back() -> None:
    outcome = run(plan_with(Action(at_ms=19_000, kind=Kind.BUSY, for_ms=15_000)))
    assert "nobody asked for records for 10000 ms" in told(outcome)


def test_a_twin_fences() -> None:
    outcome = run(plan_with(Action(at_ms=20_000, kind=Kind.TWIN, for_ms=20_000), static=True))
    assert "FENCED_INSTANCE_ID" in told(outcome)


def test_a_static_member_keeps_what_it_has() -> None:
    outcome = run(plan_with(Action(at_ms=20_000, kind=Kind.CRASH, for_ms=2_000), static=True))
    assert "and keeps its assignment" in told(outcome)


def test_slow_callbacks_and_a_member_that_is_still_leaving_when_it_is_started_again() -> None:
    leave = Action(at_ms=20_000, kind=Kind.LEAVE, for_ms=500)
    run(plan_with(leave, callback_ms=2_000))
    run(plan_with(Action(at_ms=59_500, kind=Kind.LEAVE, for_ms=5_000), callback_ms=2_000))


@pytest.mark.slow
def test_appends_that_fail_one_after_the_other() -> None:
    held = Action(at_ms=19_900, kind=Kind.HOLD_APPEND, for_ms=3_000)
    lost = Action(at_ms=19_950, kind=Kind.LOSE_APPEND, for_ms=6_000)
    moved = Action(at_ms=21_000, kind=Kind.MOVE, for_ms=1, amount=50)
    run(plan_with(held, lost, brokers=3))
    run(plan_with(lost, held, brokers=3))
    run(plan_with(held, moved, brokers=3))


def test_a_reload_takes_its_time_and_everybody_waits() -> None:
    reload = Action(at_ms=20_000, kind=Kind.RELOAD, for_ms=1_000, amount=3_000)
    outcome = run(plan_with(reload, Action(at_ms=20_500, kind=Kind.MOVE, amount=5), brokers=3))
    assert "records of __consumer_offsets-0 in 3000 ms" in told(outcome)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_skipping_changes_nothing(seed: int) -> None:
    plan = plan_of(seed)
    quick, whole = simulate_plan(plan, tell=True), simulate_plan(plan, skip=False, tell=True)
    assert quick.ok, quick.text()
    assert quick.lines == whole.lines
    assert quick.steps < whole.steps


def test_a_run_is_a_function_of_its_plan() -> None:
    plan = plan_of(3)
    assert simulate_plan(plan, tell=True).lines == simulate_plan(plan, tell=True).lines
