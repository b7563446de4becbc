"""Where chance comes in: a seed becomes a plan. Nothing behind this rolls dice."""

import random
from collections.abc import Sequence

from groupcoord.testing.simulation.generate import USUAL, Mix, generate
from groupcoord.testing.simulation.plan import Plan
from groupcoord.testing.simulation.simulating import Outcome, explain, simulate_plan


def plan_of(seed: int, *, mix: Mix = USUAL, keep: Sequence[int] | None = None) -> Plan:
    """The plan of ``seed``; with ``keep`` only these of its actions. Raises ValueError for actions that there are none of."""
    plan = generate(random.Random(seed), mix)  # noqa: S311 - nobody has to be unable to guess it
    return plan if keep is None else plan.keep(keep)


def simulate(seed: int = 0, *, plan: Plan | None = None, mix: Mix = USUAL, shrink: bool = True) -> Outcome:
    """Run what ``seed`` makes of ``mix``, or ``plan``. A failure comes shrunk and with its story, unless that is not wanted."""
    outcome = simulate_plan(plan_of(seed, mix=mix) if plan is None else plan)
    return explain(outcome) if shrink and not outcome.ok else outcome
