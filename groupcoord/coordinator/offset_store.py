"""The committed offsets of one partition of ``__consumer_offsets``, as the last stored record has them."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from groupcoord.core.timeline import TimelineMap


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset. Times are milliseconds; ``expire_timestamp_ms`` is None unless the client asked for a retention.

    ``topic_id`` is the id of the topic at the time of the commit, where it was known (KIP-848, OffsetCommit v10).
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: uuid.UUID | None = None


class OffsetStore:
    """Group → topic → partition → offset."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, TimelineMap[str, TimelineMap[int, CommittedOffset]]] = {}

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset, or None."""
        topics = self._groups.get(group)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, group: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """Store ``committed`` in place of what was there."""
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = TimelineMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = TimelineMap()
            topics.put(topic, partitions)
        partitions.put(partition, committed)

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Forget the offset, if there is one."""
        topics = self._groups.get(group)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return
        partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self._groups[group]

    def of_group(self, group: str) -> list[tuple[str, list[tuple[int, CommittedOffset]]]]:
        """(topic, [(partition, offset)]) of ``group``, in Kafka's order."""
        topics = self._groups.get(group)
        return [] if topics is None else [(name, found.in_order()) for name, found in topics.in_order()]

    def groups(self) -> Iterator[str]:
        """The groups that have offsets."""
        return iter(list(self._groups))
