"""The server-side assignors of Kafka 4.3.1: uniform and range (KIP-848), and simple for share groups (KIP-932).

They take topic ids and the current target assignment, and return the next target assignment. They ignore racks, and the
transition of members from one target to the next is not their task.
"""

from collections.abc import Callable

from groupcoord.assignors.server_side.group_spec import (
    GroupSpec,
    MemberSubscription,
    MemberTarget,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
    subscription_type,
)
from groupcoord.assignors.server_side.range_assignor import assign_range
from groupcoord.assignors.server_side.simple_assignor import assign_simple
from groupcoord.assignors.server_side.uniform_assignor import assign_uniform

__all__ = [
    "SERVER_ASSIGNORS",
    "GroupSpec",
    "MemberSubscription",
    "MemberTarget",
    "PartitionAssignorError",
    "SubscriptionType",
    "TargetAssignment",
    "assign_range",
    "assign_simple",
    "assign_uniform",
    "subscription_type",
]

SERVER_ASSIGNORS: dict[str, Callable[[GroupSpec], TargetAssignment]] = {
    "uniform": assign_uniform,
    "range": assign_range,
    "simple": assign_simple,
}
"""The assignors by Kafka's names: uniform and range are for ``group.consumer.assignors``, simple is for share groups."""
