"""Racks as the sticky assignors see them: once for the whole group. Source: ``AbstractStickyAssignor.RackInfo``."""

from collections import Counter
from collections.abc import Mapping

from groupcoord.assignors.model import Group, Subscription, TopicPartition
from groupcoord.assignors.racks import Racks, rack_of, racks_count, racks_of_topic

_NOWHERE: Racks = frozenset()


class RackInfo:
    """Who runs where, and where the replicas are; ``matter`` says whether that has any influence."""

    def __init__(self, group: Group, members: Mapping[str, Subscription], table: Mapping[str, int]) -> None:
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
        """Would the member have to read ``partition`` from another rack?"""
        return (
            self.matter and member_id in self.member_racks and self.member_racks[member_id] not in self.racks(partition)
        )

    def sort_by_crowd(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those first that fewest members have nearby; as in Kafka even if racks do not matter, if only somebody has one."""
        if not self.member_racks:
            return partitions
        crowds = self._crowds
        return sorted(partitions, key=lambda partition: sum(crowds[rack] for rack in self.racks(partition)))
