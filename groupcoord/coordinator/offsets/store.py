"""The committed offsets of one partition of ``__consumer_offsets``, as the last stored record has them."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

from groupcoord.coordinator.runtime.undo import UndoRecorder
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timeline import TimelineMap
from groupcoord.protocol.coordinator_records.commit_fast_path import CommitReader
from groupcoord.protocol.errors import ErrorCode

V = TypeVar("V")

OffsetKey = tuple[str, str, int]
"""(group, topic, partition) of an offset."""


class CommittedOffset(NamedTuple):
    """A committed offset. Times are milliseconds; ``expire_timestamp_ms`` is None unless the client asked for a retention.

    ``topic_id`` is the id of the topic at the time of the commit, where it was known (KIP-848, OffsetCommit v10).
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: uuid.UUID | None = None


class OffsetMap(Generic[V]):
    """Group → topic → partition → whatever is known of the offset."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, TimelineMap[str, TimelineMap[int, V]]] = {}

    def get(self, group: str, topic: str, partition: int) -> V | None:
        """What is known, or None."""
        topics = self._groups.get(group)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, group: str, topic: str, partition: int, value: V) -> None:
        """Store ``value`` in place of what was there."""
        self.partitions_of(group, topic).put(partition, value)

    def partitions_of(self, group: str, topic: str) -> TimelineMap[int, V]:
        """Partition → value, for who puts something there at once; after a ``remove`` it may not be the one any more."""
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = TimelineMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = TimelineMap()
            topics.put(topic, partitions)
        return partitions

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

    def of_group(self, group: str) -> Sequence[tuple[str, Sequence[tuple[int, V]]]]:
        """(topic, [(partition, value)]) of ``group``, in Kafka's order."""
        topics = self._groups.get(group)
        return [] if topics is None else [(name, found.in_order()) for name, found in topics.in_order()]

    def groups(self) -> Iterator[str]:
        """The groups that have offsets."""
        return iter(list(self._groups))


class OffsetStore(OffsetMap[CommittedOffset | bytes]):
    """The committed offsets. Those that were loaded are the bytes of their records until they are read.

    Of millions of offsets in a log few are read soon, and bytes take a fraction of the time and the memory.
    Only bytes that ``is_plain_commit`` may be put here.
    """

    __slots__ = ("_read", "_undo")

    def __init__(self, undo: UndoRecorder) -> None:
        super().__init__()
        self._undo = undo
        self._read = CommitReader(CommittedOffset).read

    def get(self, group: str, topic: str, partition: int) -> CommittedOffset | None:
        """The committed offset, or None."""
        found = super().get(group, topic, partition)
        if isinstance(found, bytes):
            found = self.partitions_of(group, topic)[partition] = self._read(found)
        return found

    def put(self, group: str, topic: str, partition: int, value: CommittedOffset | bytes) -> None:
        """Store ``value`` in place of what was there; a write that runs can undo it."""
        if self._undo.is_open:
            self._undo.save(self, (group, topic, partition), self.get(group, topic, partition))
        self.partitions_of(group, topic).put(partition, value)

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Forget the offset, if there is one; a write that runs can undo it."""
        if self._undo.is_open:
            self._undo.save(self, (group, topic, partition), self.get(group, topic, partition))
        super().remove(group, topic, partition)

    def restore(self, _: HandlerContext, key: OffsetKey, before: CommittedOffset | bytes | None, __: ErrorCode) -> None:
        """See UndoTable."""
        if before is None:
            super().remove(*key)
        else:
            super().put(*key, before)

    def of_group(self, group: str) -> Sequence[tuple[str, Sequence[tuple[int, CommittedOffset]]]]:
        """(topic, [(partition, committed offset)]) of ``group``, in Kafka's order."""
        for partitions in self._groups.get(group, _NOTHING).values():
            for partition, found in partitions.items():
                if isinstance(found, bytes):
                    partitions[partition] = self._read(found)
        return cast("Sequence[tuple[str, Sequence[tuple[int, CommittedOffset]]]]", super().of_group(group))


_NOTHING: TimelineMap[str, TimelineMap[int, CommittedOffset | bytes]] = TimelineMap()
