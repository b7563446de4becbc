"""Partition assignors: pure functions from the subscriptions of a group to an assignment.

Range, round-robin, sticky and cooperative-sticky return exactly what Kafka's Java classes return, order included; two examples
show how to write custom ones. No server is needed:

    from groupcoord.assignors import ASSIGNORS, GroupSubscription, Subscription

    group = GroupSubscription(subscriptions={"a": Subscription(topics=["orders"])}, partitions={"orders": 3})
    ASSIGNORS.create("sticky").assign(group)  # {"a": [("orders", 0), ("orders", 1), ("orders", 2)]}
"""

from groupcoord.assignors.cooperative_adjustment import in_two_steps
from groupcoord.assignors.interface import (
    Assignment,
    Assignor,
    AssignorError,
    FunctionAssignor,
    GroupSubscription,
    JavaFailure,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from groupcoord.assignors.java_order import as_leader
from groupcoord.assignors.registry import ASSIGNORS, Registry, UnknownAssignorError
from groupcoord.assignors.serialization import read_assignment, read_subscription, write_assignment, write_subscription
from groupcoord.assignors.validation import FaultyAssignorError, check_assignment, run_assignor

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "Assignor",
    "AssignorError",
    "FaultyAssignorError",
    "FunctionAssignor",
    "GroupSubscription",
    "JavaFailure",
    "RebalanceProtocol",
    "Registry",
    "Subscription",
    "TopicPartition",
    "UnknownAssignorError",
    "as_leader",
    "check_assignment",
    "in_two_steps",
    "read_assignment",
    "read_subscription",
    "run_assignor",
    "write_assignment",
    "write_subscription",
]
