"""The assignors that run on the broker in the consumer protocol of KIP-848, as of Kafka 4.0: uniform, range, and simple.

They see topics by id and what each member is meant to have, and answer what it is to be meant to have next. There are no
racks in them and no second rounds: how members get from one target to the next is not their concern.
"""

from groupcoord.assignors.server_side.assignors import SERVER_ASSIGNORS, assign_range, assign_simple, assign_uniform
from groupcoord.assignors.server_side.spec import (
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
    subscription_type,
)

__all__ = [
    "SERVER_ASSIGNORS",
    "GroupSpec",
    "MemberSubscription",
    "PartitionAssignorError",
    "SubscriptionType",
    "TargetAssignment",
    "assign_range",
    "assign_simple",
    "assign_uniform",
    "subscription_type",
]
