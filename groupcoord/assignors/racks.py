"""When racks count, and where the replicas of a partition are (KIP-881)."""

from collections.abc import Collection, Iterable, Sequence

from groupcoord.assignors.model import Group, Subscription

Racks = frozenset[str]


def rack_of(subscription: Subscription) -> str | None:
    """Where the member runs; an empty name is none."""
    return subscription.rack_id or None


def racks_of_topic(group: Group, topic: str) -> list[Racks]:
    """For each partition of ``topic`` the racks of all its replicas, in or out of sync, alive or not."""
    known: Sequence[Collection[str | None]] = group.racks.get(topic, ())
    count = group.partitions[topic]
    racks = [frozenset([rack for rack in of_partition if rack is not None]) for of_partition in known[:count]]
    return racks + [frozenset()] * (count - len(racks))


def racks_count(member_racks: Collection[str], partition_racks: Iterable[Racks], prefer: bool) -> bool:
    """Is there anything to gain by matching racks? (``AbstractPartitionAssignor.useRackAwareAssignment``)

    Somebody says where it runs, some replica is on such a rack, and not every partition is on every rack.
    """
    distinct = set(partition_racks)
    union = frozenset[str]().union(*distinct)
    if union.isdisjoint(member_racks):
        return False
    return prefer or any(racks != union for racks in distinct)
