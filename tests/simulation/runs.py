"""A simulated life, lived twice."""

from coverage import Coverage

from groupcoord.simulation import SimulationPlan, SimulationResult, simulate_plan


def run(plan: SimulationPlan) -> SimulationResult:
    """A run in which all invariants hold; without skipping heartbeats it is the same.

    The second time coverage is not measured: no other lines are reached, and it takes longest.
    """
    result = simulate_plan(plan, record=True)
    assert result.ok, result.text()
    measured_by = Coverage.current()
    if measured_by is not None:
        measured_by.stop()
    try:
        assert result.lines == simulate_plan(plan, skip=False, record=True).lines
    finally:
        if measured_by is not None:
            measured_by.start()
    return result
