"""A simulated life, lived twice."""

import sys

from groupcoord.simulation import SimulationPlan, SimulationResult, simulate_plan


def run(plan: SimulationPlan) -> SimulationResult:
    """A run in which all invariants hold; without skipping heartbeats it is the same.

    The second time is not traced for coverage, with which it takes three times as long: no other lines are reached.
    """
    result = simulate_plan(plan, record=True)
    assert result.ok, result.text()
    tracer = sys.gettrace()  # a worker of pytest-xdist has two measurements: to stop one of them resumes the other
    sys.settrace(None)
    try:
        assert result.lines == simulate_plan(plan, skip=False, record=True).lines
    finally:
        sys.settrace(tracer)
    return result
