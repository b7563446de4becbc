"""Seeded simulation: members, network, brokers and time derived from one number. See docs/simulation.md.

from groupcoord.simulation import simulate

result = simulate(4711)
assert result.ok, result.text()
"""

from groupcoord.simulation.invariants import INVARIANTS
from groupcoord.simulation.invariants.base import Invariant, InvariantViolation
from groupcoord.simulation.plan import ActionKind, MemberPlan, PlannedAction, SimulationPlan
from groupcoord.simulation.plan_generator import DEFAULT_OPTIONS, PlanOptions, generate, plan_from_seed
from groupcoord.simulation.run import SimulationResult, explain, simulate, simulate_plan
from groupcoord.simulation.world import SimulatedWorld

__all__ = [
    "DEFAULT_OPTIONS",
    "INVARIANTS",
    "ActionKind",
    "Invariant",
    "InvariantViolation",
    "MemberPlan",
    "PlanOptions",
    "PlannedAction",
    "SimulatedWorld",
    "SimulationPlan",
    "SimulationResult",
    "explain",
    "generate",
    "plan_from_seed",
    "simulate",
    "simulate_plan",
]
