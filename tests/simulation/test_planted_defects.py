"""Each deliberate fault is found by some seed, and by the promise that is meant."""

import pytest

from groupcoord.simulation import INVARIANTS, plan_from_seed, simulate_plan
from tests.simulation.planted_defects import PLANTED_DEFECTS, SEEDS, found
from tests.untraced import untraced


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED_DEFECTS)
def test_is_found(name: str) -> None:
    defect = PLANTED_DEFECTS[name]
    names = []
    with defect.applied():
        for seed in range(defect.first_seed, defect.first_seed + SEEDS):
            plan = plan_from_seed(seed, options=defect.options)
            with untraced():  # most lives find nothing
                violation = simulate_plan(plan).violation
            if violation is not None:
                names.append(violation.name)
                if violation.name == defect.found_by:
                    assert str(simulate_plan(plan).violation) == str(violation)
                    return
    pytest.fail(f"{defect.found_by} was not broken, but {sorted(set(names)) or 'nothing'}")


def test_every_promise_can_be_broken() -> None:
    assert {defect.found_by for defect in PLANTED_DEFECTS.values()} == {invariant.name for invariant in INVARIANTS}


@pytest.mark.slow
def test_a_defect_is_shown_with_what_it_needs() -> None:
    assert "violated: leader-is-member at " in found("leader-stays").text()


def test_faults_are_gone_afterwards() -> None:
    plan = plan_from_seed(0, keep=[])
    with PLANTED_DEFECTS["answered-again"].applied():
        assert not simulate_plan(plan).ok
    assert simulate_plan(plan).ok
