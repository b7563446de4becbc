"""Each deliberate fault is found by some seed, and by the promise that is meant."""

import pytest

from groupcoord.testing.simulation import INVARIANTS, plan_of, simulate_plan
from groupcoord.testing.simulation.ablations import ABLATIONS

SEEDS = 25


@pytest.mark.slow
@pytest.mark.parametrize("name", ABLATIONS)
def test_is_found(name: str) -> None:
    ablation = ABLATIONS[name]
    found = []
    with ablation.applied():
        for seed in range(SEEDS):
            broken = simulate_plan(plan_of(seed, mix=ablation.mix)).broken
            if broken is not None:
                found.append(broken.name)
                if broken.name == ablation.breaks:
                    return
    pytest.fail(f"{ablation.breaks} was not broken, but {sorted(set(found)) or 'nothing'}")


def test_every_promise_can_be_broken() -> None:
    assert {ablation.breaks for ablation in ABLATIONS.values()} == {invariant.name for invariant in INVARIANTS}


def test_faults_are_gone_afterwards() -> None:
    plan = plan_of(0, keep=[])
    with ABLATIONS["answered-again"].applied():
        assert not simulate_plan(plan).ok
    assert simulate_plan(plan).ok
