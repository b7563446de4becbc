"""The assignors that run on the broker, as of Kafka 4.3.1: uniform and range (KIP-848), and simple, of share groups (KIP-932).

They see topics by id and what each member is meant to have, and answer what it is to be meant to have next. They look at no
racks and have no second rounds: how members get from one target to the next is not their concern.
"""

from groupcoord.assignors.server_side.range_assignor import SERVER_ASSIGNORS, assign_range
from groupcoord.assignors.server_side.simple import assign_simple
from groupcoord.assignors.server_side.spec import (
    GroupSpec,
    MemberSubscription,
    MemberTarget,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
    subscription_type,
)
from groupcoord.assignors.server_side.uniform import assign_uniform

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
