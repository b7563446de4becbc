"""Fault injection by rules, which refuse, delay, drop, hold, replace or damage requests and responses, or stop brokers.

``kafka.faults.when("Heartbeat", group="app").refuse("REBALANCE_IN_PROGRESS")``: docs/faults.md has the grammar.
"""

from groupcoord.testing.faults.actions import Damage, FaultAction
from groupcoord.testing.faults.api import AsyncRule, Barrier, Faults, HoldRule
from groupcoord.testing.faults.layer import FaultEnded, FaultInjected, FaultLayer
from groupcoord.testing.faults.matching import RequestMatcher, RuleProblems, TopicResolver
from groupcoord.testing.faults.rule import Rule, when
from groupcoord.testing.faults.rule_file import NamedRule, RuleFileError, load_rules
from groupcoord.testing.faults.rulebook import ActiveRule, FaultRulesFailed, HeldRequest, Rulebook

__all__ = [
    "ActiveRule",
    "AsyncRule",
    "Barrier",
    "Damage",
    "FaultAction",
    "FaultEnded",
    "FaultInjected",
    "FaultLayer",
    "FaultRulesFailed",
    "Faults",
    "HeldRequest",
    "HoldRule",
    "NamedRule",
    "RequestMatcher",
    "Rule",
    "RuleFileError",
    "RuleProblems",
    "Rulebook",
    "TopicResolver",
    "load_rules",
    "when",
]
