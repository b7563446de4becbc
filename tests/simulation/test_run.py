from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatResponse
from groupcoord.simulation import (
    ActionKind,
    MemberPlan,
    PlannedAction,
    SimulationPlan,
    explain,
    simulate,
    simulate_plan,
)
from groupcoord.simulation.brokers import SimulatedBrokers
from groupcoord.simulation.plan import plan_from_seed
from groupcoord.simulation.run import TimelineLine, minimize, plan_text, timeline_text
from tests.simulation.planted_defects import PLANTED_DEFECTS

pytestmark = pytest.mark.slow

MEMBERS = tuple(
    MemberPlan(name=name, assignors=("range",), topics=("orders",), max_poll_interval_ms=10_000) for name in "ab"
)
ACTIONS = (
    PlannedAction(at_ms=15_000, kind=ActionKind.REJOIN),
    PlannedAction(at_ms=20_000, kind=ActionKind.CRASH, member=0, for_ms=300),
    PlannedAction(at_ms=25_000, kind=ActionKind.REJOIN, member=1),
    PlannedAction(at_ms=100_000, kind=ActionKind.RESET),
)
PLAN = SimulationPlan(members=MEMBERS, topics={"orders": 2}, actions=ACTIONS, heal_ms=110_000)


def test_what_is_well_has_nothing_to_explain() -> None:
    result = simulate(plan=PLAN)
    assert result.ok
    assert "all invariants held" in result.text()
    with pytest.raises(ValueError, match="nothing to explain"):
        explain(result)


def test_a_failure_is_told_with_what_it_needs() -> None:
    with PLANTED_DEFECTS["leader-stays"].applied():
        result = simulate(plan=PLAN)
        assert not simulate(plan=PLAN, shrink=False).ok
        text = result.text(max_lines=5)
    assert result.violation is not None
    assert result.violation.name == "leader-is-member"
    assert [number for number, _ in result.plan.numbered()] == [1]
    assert "lines before)" in text
    assert text.count("\n") < 20
    assert "violated: leader-is-member at " in text


def test_code_that_raises_breaks_a_promise() -> None:
    with patch.object(SimulatedBrokers, "reload", side_effect=KeyError("oh")):
        result = simulate(
            plan=SimulationPlan(
                members=MEMBERS,
                topics={"orders": 2},
                actions=(PlannedAction(at_ms=9, kind=ActionKind.RELOAD),),
                heal_ms=50,
            )
        )
    assert str(result.violation) == "no-crash at 0.009 s: KeyError: 'oh'"


def test_an_unsafe_skip_is_repeated_without_skipping() -> None:
    refuse = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    with patch.object(SimulatedBrokers, "heartbeat_in_advance", return_value=refuse) as asked:
        result = simulate_plan(PLAN, record=True)
    assert asked.called
    assert result.ok
    assert result.lines == simulate_plan(PLAN, skip=False, record=True).lines


def test_a_failure_of_skipping_itself_is_a_violation() -> None:
    with patch.object(SimulatedBrokers, "heartbeat_in_advance", side_effect=KeyError("ahead")):
        result = simulate(plan=PLAN)
    assert str(result.violation).endswith("KeyError: 'ahead'")


@given(st.integers(1, 25), st.data())
def test_what_is_left_is_what_is_needed(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, count - 1), max_size=4))
    assert minimize(range(count), lambda some: needed <= set(some), max_runs=10_000) == sorted(needed)


@given(st.integers(1, 40), st.integers(0, 12))
def test_no_more_runs_than_allowed_and_what_is_left_fails(count: int, runs: int) -> None:
    tried = 0

    def fails(some: Sequence[int]) -> bool:
        nonlocal tried
        tried += 1
        return {0, count - 1} <= set(some)

    assert {0, count - 1} <= set(minimize(range(count), fails, max_runs=runs))
    assert tried <= runs


def test_nothing_is_left_of_nothing() -> None:
    assert minimize([], lambda _: True, max_runs=5) == []


ID = "-00000000-1111-2222-3333-444444444444"


def test_member_ids_become_short() -> None:
    text = f"a{ID} joins, instance-b{ID} too, then a{ID.replace('4', '5')}, and a{ID} again"
    shown = timeline_text([TimelineLine(1_500, "coordinator", text)])
    assert shown == "     1.500  coordinator  a#1 joins, instance-b#1 too, then a#2, and a#1 again"
    assert timeline_text([]) == ""


def test_the_text_of_a_plan_has_all_members_and_actions() -> None:
    plan = plan_from_seed(2)
    text = plan_text(plan)
    assert all(member.text() in text for member in plan.members)
    assert all(f"({number}) " in text for number, _ in plan.numbered())
    assert {plan_text(plan_from_seed(seed)).split(";")[0] for seed in range(20)} == {"1 broker", "3 brokers"}
