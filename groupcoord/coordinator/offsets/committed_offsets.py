"""OffsetManager: the committed and pending transactional offsets of one partition of ``__consumer_offsets``.

Source: ``OffsetMetadataManager``.
"""

import struct
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

from groupcoord.coordinator.runtime.undo import UndoableMap, UndoRecorder
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_PRODUCER
from groupcoord.core.java_hash_order import TimelineMap
from groupcoord.protocol.batches.key_value_reader import PARTITION_BYTES
from groupcoord.protocol.coordinator_records.commit_fast_path import (
    CommitReader,
    CommitSink,
    RecordSink,
    ScanResult,
    group_and_topic,
    is_plain_commit,
    scan_offset_commits,
)
from groupcoord.protocol.coordinator_records.group_records import OffsetCommitKey
from groupcoord.protocol.errors import ErrorCode

V = TypeVar("V")

OffsetKey = tuple[str, str, int]
"""(group, topic, partition) of an offset."""

_PendingKey = tuple[int, str, str, int]
"""(producer id, group, topic, partition) of a pending offset."""


class CommittedOffset(NamedTuple):
    """A committed offset. Times are milliseconds; ``expire_timestamp_ms`` is None unless the request had a retention time.

    ``topic_id`` is the id of the topic at the time of the commit, if it was known (KIP-848, OffsetCommit v10).
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: uuid.UUID | None = None


CommittedOrBytes = CommittedOffset | bytes
"""A committed offset, or its encoded bytes, which are decoded lazily: see OffsetStore."""


class OffsetMap(Generic[V]):
    """A map from group, topic and partition to a value, in Kafka's order."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, TimelineMap[str, TimelineMap[int, V]]] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def get(self, group: str, topic: str, partition: int) -> V | None:
        """The value, or None."""
        topics = self._groups.get(group)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, group: str, topic: str, partition: int, value: V) -> None:
        """Set the value."""
        self.partitions_of(group, topic).put(partition, value)

    def partitions_of(self, group: str, topic: str) -> TimelineMap[int, V]:
        """The map from partition to value of a topic. Put into it at once: a ``remove`` may detach it."""
        topics = self._groups.get(group)
        if topics is None:
            topics = self._groups[group] = TimelineMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = TimelineMap()
            topics.put(topic, partitions)
        return partitions

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Remove the value, if there is one."""
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
        """The groups with values."""
        return iter(list(self._groups))


class OffsetStore(OffsetMap[CommittedOffset | bytes]):
    """The committed offsets. Loaded offsets stay encoded until they are read.

    Few of the millions of offsets in a log are read soon, and bytes take a fraction of the time and the memory.
    Only bytes for which ``is_plain_commit`` is true may be stored.
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
        """Set the offset; the current write can undo it."""
        partitions = self.partitions_of(group, topic)
        undo = self._undo
        if undo.is_open:
            before = partitions.get(partition)
            undo.save(self, (group, topic, partition), self._read(before) if isinstance(before, bytes) else before)
        partitions.put(partition, value)

    def remove(self, group: str, topic: str, partition: int) -> None:
        """Remove the offset, if there is one; the current write can undo it."""
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


class PendingOffset(NamedTuple):
    """A pending offset of an open transaction, and the log offset (``position``) of its record."""

    position: int
    value: CommittedOrBytes


class PendingOffsets:
    """The pending offsets of open transactions, by producer id.

    If several commits concern a partition, the last record in the log wins, whichever transaction ends last.
    Sources: ``OffsetMetadataManager.pendingTransactionalOffsets`` and ``OpenTransactions``.
    """

    def __init__(self, undo: UndoRecorder) -> None:
        self._undo = undo
        self._by_producer: TimelineMap[int, OffsetMap[PendingOffset]] = TimelineMap()
        self._producers: OffsetMap[set[int]] = OffsetMap()
        # For partitions with pending offsets that were committed meanwhile: the log offset of that commit.
        self._committed_at: UndoableMap[OffsetKey, int] = UndoableMap(undo)

    def __bool__(self) -> bool:
        return bool(self._producers)

    def has(self, group: str, topic: str, partition: int) -> bool:
        """Is an offset of that partition pending?"""
        return self._producers.get(group, topic, partition) is not None

    def of_group(self, group: str) -> Iterator[tuple[str, int]]:
        """The (topic, partition) pairs of ``group`` with a pending offset, in Kafka's order."""
        return ((topic, partition) for topic, found in self._producers.of_group(group) for partition, _ in found)

    def by_producer(self) -> Iterator[Iterator[OffsetKey]]:
        """The pending offsets of each producer, in Kafka's order."""
        for _, offsets in self._by_producer.in_order():
            yield (key for key, _ in _items(offsets))

    def of_producer(self, producer_id: int) -> Sequence[tuple[OffsetKey, PendingOffset]]:
        """The pending offsets of one producer, in Kafka's order."""
        found = self._by_producer.get(producer_id)
        return () if found is None else tuple(_items(found))

    def put(self, producer_id: int, key: OffsetKey, value: PendingOffset) -> None:
        """Set the pending offset of a partition in a transaction."""
        self._set((producer_id, *key), value)

    def committed(self, key: OffsetKey, position: int) -> None:
        """The commit at log offset ``position`` overrides earlier pending offsets of the partition."""
        if self._by_producer and self.has(*key):
            self._committed_at[key] = position

    def counts(self, key: OffsetKey, pending: PendingOffset) -> bool:
        """Does ``pending`` take effect on commit: was no later offset committed?"""
        return pending.position > (self._committed_at.get(key) or -1)

    def remove(self, producer_id: int, key: OffsetKey) -> None:
        """Remove the pending offset of a partition from a transaction."""
        self._set((producer_id, *key), None)
        if not self.has(*key) and key in self._committed_at:
            del self._committed_at[key]

    def remove_all(self, key: OffsetKey) -> None:
        """Remove the pending offsets of a partition from all transactions."""
        for producer_id in tuple(self._producers.get(*key) or ()):
            self.remove(producer_id, key)

    def restore(self, _: HandlerContext, key: _PendingKey, before: PendingOffset | None, __: ErrorCode) -> None:
        """See UndoTable."""
        self._set(key, before)

    def _set(self, pending_key: _PendingKey, value: PendingOffset | None) -> None:
        producer_id, key = pending_key[0], pending_key[1:]
        offsets = self._by_producer.get(producer_id) or OffsetMap()
        self._undo.save(self, pending_key, offsets.get(*key))
        if value is not None:
            offsets.put(*key, value)
            self._by_producer.put(producer_id, offsets)
            self._producers.put(*key, (self._producers.get(*key) or set()) | {producer_id})
            return
        offsets.remove(*key)
        if not offsets:
            self._by_producer.pop(producer_id, None)
        others = (self._producers.get(*key) or set()) - {producer_id}
        if others:
            self._producers.put(*key, others)
        else:
            self._producers.remove(*key)


def _items(offsets: OffsetMap[V]) -> Iterator[tuple[OffsetKey, V]]:
    for group in offsets.groups():
        for topic, partitions in offsets.of_group(group):
            for partition, value in partitions:
                yield (group, topic, partition), value


_partition_of = struct.Struct(">i").unpack_from


class EndedOffset(NamedTuple):
    """An offset whose transaction has ended; ``counts``: it takes effect."""

    key: OffsetKey
    value: CommittedOrBytes
    counts: bool


class OffsetManager:
    """The offsets of one shard, and the replay of their records."""

    def __init__(self, undo: UndoRecorder) -> None:
        self.store = OffsetStore(undo)
        self.pending = PendingOffsets(undo)
        self._read = CommitReader(CommittedOffset).read
        # While loading: the function that stores an offset, by its key without the partition; and these keys of each group.
        self._puts: dict[bytes, CommitSink] = {}
        self._prefixes: defaultdict[str, list[bytes]] = defaultdict(list)

    def read_key(self, key: bytes) -> OffsetCommitKey | None:
        """Decode an OffsetCommit key of the version that Kafka writes; None for any other."""
        found = group_and_topic(key[:-PARTITION_BYTES])
        if found is None:
            return None
        return OffsetCommitKey(
            group=found[0], topic=found[1], partition=_partition_of(key, len(key) - PARTITION_BYTES)[0]
        )

    def apply(
        self, group: str, topic: str, partition: int, value: CommittedOrBytes | None, offset: int, producer_id: int
    ) -> None:
        """Apply the record at ``offset`` of the log; None: a tombstone. Raises WireError."""
        if value is None:
            self.store.remove(group, topic, partition)
            self.forget_puts(group)  # it may have been the last offset of its topic
            self.pending.remove_all((group, topic, partition))
            return
        if isinstance(value, bytes) and not is_plain_commit(value):
            value = self._read(value)
        if producer_id == NO_PRODUCER:
            self.store.put(group, topic, partition, value)
            self.pending.committed((group, topic, partition), offset)
        else:
            self.pending.put(producer_id, (group, topic, partition), PendingOffset(offset, value))

    def end_transaction(self, producer_id: int, *, committed: bool) -> Sequence[EndedOffset]:
        """Commit or discard the pending offsets of a transaction; those with a later committed offset are discarded, too."""
        ended = []
        for key, found in self.pending.of_producer(producer_id):
            counts = committed and self.pending.counts(key, found)
            self.pending.remove(producer_id, key)
            if counts:
                self.store.put(*key, found.value)
                self.pending.committed(key, found.position)
            ended.append(EndedOffset(key, found.value, counts))
        return ended

    def offset_of(self, value: CommittedOrBytes) -> int:
        """The number in ``value``."""
        return (self._read(value) if isinstance(value, bytes) else value).offset

    # --- loading

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """The fast path for plain commits: see commit_fast_path.py."""
        # While a transaction is open, the order of commits matters, so there is no fast path.
        return scan_offset_commits(data, position, {} if self.pending else self._puts, other)

    def apply_first(self, key: bytes, value: bytes) -> str | None:
        """Apply the first plain commit of a topic, and prepare the fast path for the next ones; returns its group.

        Returns None, without applying it, if it is not a plain commit or a transaction is open.
        """
        prefix = key[:-PARTITION_BYTES]
        found = group_and_topic(prefix)
        if found is None or self.pending or not is_plain_commit(value):
            return None
        group, topic = found
        put = self._puts[prefix] = self.store.partitions_of(group, topic).put
        self._prefixes[group].append(prefix)
        put(_partition_of(key, len(prefix))[0], value)
        return group

    def forget_puts(self, group: str) -> None:
        """Take ``group`` off the fast path."""
        for prefix in self._prefixes.pop(group, ()):
            del self._puts[prefix]

    def end_loading(self) -> None:
        """End the fast path: from now on records are applied one by one."""
        self._puts.clear()
        self._prefixes.clear()
