"""What the leader of a group does besides running the assignor: read what the members want, and write down what they get.

Source: ``ConsumerCoordinator.onLeaderElected``.
"""

from collections.abc import Iterable, Mapping

from groupcoord.assignors import (
    Assignment,
    Group,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
    read_subscription,
    write_assignment,
)
from groupcoord.protocol.messages.join_group import JoinGroupResponseMember
from groupcoord.protocol.messages.sync_group import SyncGroupRequestAssignment


def subscriptions_of(members: Iterable[JoinGroupResponseMember]) -> dict[str, Subscription]:
    """What each member said. Raises WireError for bytes that are no subscription."""
    return {member.member_id: read_subscription(member.metadata, member.group_instance_id) for member in members}


def withheld(group: Group, assignment: Assignment) -> tuple[TopicPartition, ...]:
    """What is owned, exists, and goes to nobody this time, so that its owner gives it up first (KIP-429)."""
    owned = {
        (topic, number)
        for subscription in group.subscriptions.values()
        for topic, number in subscription.owned_partitions
        if number < group.partitions.get(topic, 0)
    }
    return tuple(sorted(owned.difference(*assignment.values())))


def written(assignment: Assignment) -> tuple[SyncGroupRequestAssignment, ...]:
    """The assignment as it goes to the coordinator."""
    return tuple(
        SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
        for member_id, partitions in assignment.items()
    )


def common_protocol(supported: Mapping[str, Iterable[RebalanceProtocol]]) -> RebalanceProtocol:
    """The rebalance protocol of a member with these assignors: the highest that all of them support.

    Raises ValueError if there is none. Whichever assignor the group chooses, this is what the member does (KIP-429).
    """
    common = set(RebalanceProtocol).intersection(*map(set, supported.values()))
    if not supported or not common:
        raise ValueError(f"the assignors {', '.join(supported) or '(none)'} have no rebalance protocol in common")
    return max(common)
