"""Deterministic simulation of consumer groups: members, network, brokers and time, all from one seed (docs/simulation.md).

from groupcoord.simulation import simulate

result = simulate(4711)
assert result.ok, result.text()
"""

from groupcoord.simulation.actions import ActionKind
from groupcoord.simulation.invariants import INVARIANTS
from groupcoord.simulation.invariants.base import Invariant, InvariantViolation
from groupcoord.simulation.plan import (
    CONSUMER_OPTIONS,
    DEFAULT_OPTIONS,
    FAILURE_OPTIONS,
    PRODUCER_OPTIONS,
    TRANSACTION_OPTIONS,
    MemberPlan,
    PlannedAction,
    PlanOptions,
    ProducingPlan,
    SimulationPlan,
    StandaloneProducerPlan,
    TransactionPlan,
    generate,
    plan_from_seed,
)
from groupcoord.simulation.run import SimulationResult, explain, simulate, simulate_plan
from groupcoord.simulation.world import SimulatedWorld

__all__ = [
    "CONSUMER_OPTIONS",
    "DEFAULT_OPTIONS",
    "FAILURE_OPTIONS",
    "INVARIANTS",
    "PRODUCER_OPTIONS",
    "TRANSACTION_OPTIONS",
    "ActionKind",
    "Invariant",
    "InvariantViolation",
    "MemberPlan",
    "PlanOptions",
    "PlannedAction",
    "ProducingPlan",
    "SimulatedWorld",
    "SimulationPlan",
    "SimulationResult",
    "StandaloneProducerPlan",
    "TransactionPlan",
    "explain",
    "generate",
    "plan_from_seed",
    "simulate",
    "simulate_plan",
]
