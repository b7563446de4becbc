"""Seeded simulation: members, network, brokers and time from one number. docs/simulation.md is the way in.

from groupcoord.testing.simulation import simulate

outcome = simulate(4711)
assert outcome.ok, outcome.text()
"""

from groupcoord.testing.simulation.front import plan_of, simulate
from groupcoord.testing.simulation.generate import USUAL, Mix, generate
from groupcoord.testing.simulation.invariants.base import Broken, Invariant
from groupcoord.testing.simulation.invariants.judge import INVARIANTS
from groupcoord.testing.simulation.plan import Action, Kind, MemberPlan, Plan
from groupcoord.testing.simulation.simulating import Outcome, explain, simulate_plan
from groupcoord.testing.simulation.world import World

__all__ = [
    "INVARIANTS",
    "USUAL",
    "Action",
    "Broken",
    "Invariant",
    "Kind",
    "MemberPlan",
    "Mix",
    "Outcome",
    "Plan",
    "World",
    "explain",
    "generate",
    "plan_of",
    "simulate",
    "simulate_plan",
]
