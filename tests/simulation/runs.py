"""Runs a simulation twice, the second time without skipping quiet heartbeats, and compares the results."""

from groupcoord.simulation import SimulationPlan, SimulationResult, simulate_plan
from tests.untraced import untraced


def run(plan: SimulationPlan) -> SimulationResult:
    """A run in which all invariants hold; without skipping heartbeats it is the same.

    The second time reaches no other lines, and is not measured.
    """
    result = simulate_plan(plan, record=True)
    assert result.ok, result.text()
    with untraced():
        assert result.lines == simulate_plan(plan, skip=False, record=True).lines
    return result
