"""Rack-aware assignment (KIP-881): the racks of members and replicas, and whether they matter. Source:
``AbstractStickyAssignor.RackInfo``."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from groupcoord.assignors.interface import GroupSubscription, Subscription, TopicPartition

Racks = frozenset[str]


def rack_of(subscription: Subscription) -> str | None:
    """The member's rack; an empty name counts as none."""
    return subscription.rack_id or None


def racks_of_topic(group: GroupSubscription, topic: str) -> list[Racks]:
    """For each partition of ``topic`` the racks of all its replicas, in sync or not, alive or not."""
    known: Sequence[Collection[str | None]] = group.racks.get(topic, ())
    count = group.partitions[topic]
    racks = [frozenset([rack for rack in of_partition if rack is not None]) for of_partition in known[:count]]
    return racks + [frozenset()] * (count - len(racks))


def racks_count(member_racks: Collection[str], partition_racks: Iterable[Racks], prefer: bool) -> bool:
    """Can matching racks improve anything? (``AbstractPartitionAssignor.useRackAwareAssignment``)

    Racks matter if a replica is on the rack of a member, and not every partition is on every rack.
    """
    distinct = set(partition_racks)
    union = frozenset[str]().union(*distinct)
    if union.isdisjoint(member_racks):
        return False
    return prefer or any(racks != union for racks in distinct)


_NOWHERE: Racks = frozenset()


class RackInfo:
    """The racks of members and replicas; ``matter`` tells whether they influence the assignment."""

    def __init__(self, group: GroupSubscription, members: Mapping[str, Subscription], table: Mapping[str, int]) -> None:
        self.member_racks = {member_id: rack for member_id in members if (rack := rack_of(members[member_id]))}
        self._crowds = Counter(self.member_racks.values())
        self._racks = {topic: racks_of_topic(group, topic) for topic in table} if self.member_racks else {}
        everywhere = (racks for of_topic in self._racks.values() for racks in of_topic)
        self.matter = bool(self.member_racks) and racks_count(self._crowds, everywhere, group.prefer_rack_aware)

    def racks(self, partition: TopicPartition) -> Racks:
        """The racks of the replicas of ``partition``."""
        of_topic, number = self._racks[partition[0]], partition[1]
        return of_topic[number] if 0 <= number < len(of_topic) else _NOWHERE

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Is no replica of ``partition`` on the member's rack?"""
        return (
            self.matter and member_id in self.member_racks and self.member_racks[member_id] not in self.racks(partition)
        )

    def sort_by_crowd(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """``partitions`` by the number of members on a rack of a replica, fewest first; as in Kafka, also if racks do not
        matter."""
        if not self.member_racks:
            return partitions
        crowds = self._crowds
        return sorted(partitions, key=lambda partition: sum(crowds[rack] for rack in self.racks(partition)))
