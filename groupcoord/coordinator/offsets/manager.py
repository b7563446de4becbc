"""How records of offsets change the offsets of a shard, transactions included. Source: ``OffsetMetadataManager.replay``."""

import struct
from collections import defaultdict

from groupcoord.coordinator.offsets.store import CommittedOffset, OffsetKey, OffsetMap, OffsetStore
from groupcoord.coordinator.runtime.state_machine import NO_PRODUCER
from groupcoord.coordinator.runtime.undo import UndoRecorder
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
from groupcoord.protocol.coordinator_records.typed import OffsetCommitKey

CommittedOrBytes = CommittedOffset | bytes
"""A committed offset, or the bytes of one that are read later: see OffsetStore."""

_partition_of = struct.Struct(">i").unpack_from


class OffsetManager:
    """The offsets of one shard."""

    def __init__(self, undo: UndoRecorder) -> None:
        self.store = OffsetStore(undo)
        self._read = CommitReader(CommittedOffset).read
        # While loading: what stores an offset, by its key less the partition; and the keys of each group.
        self._puts: dict[bytes, CommitSink] = {}
        self._prefixes: defaultdict[str, list[bytes]] = defaultdict(list)
        # By producer id; with the record's offset.
        self._in_transactions: dict[int, OffsetMap[tuple[int, CommittedOrBytes]]] = {}
        # Of the offsets that came while a transaction was open: those of their records.
        self._while_open: dict[OffsetKey, int] = {}

    def read_key(self, key: bytes) -> OffsetCommitKey | None:
        """The key of a commit in the form that Kafka writes; None for any other."""
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
            self.forget_puts(group)  # it was perhaps the last one of its topic
            for pending in self._in_transactions.values():
                pending.remove(group, topic, partition)
            return
        if isinstance(value, bytes) and not is_plain_commit(value):
            value = self._read(value)
        if producer_id == NO_PRODUCER:
            self.store.put(group, topic, partition, value)
            if self._in_transactions:
                self._while_open[group, topic, partition] = offset
        else:
            self._in_transactions.setdefault(producer_id, OffsetMap()).put(group, topic, partition, (offset, value))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The offsets of that transaction count, where none was committed after them, or they are forgotten."""
        pending = self._in_transactions.pop(producer_id, None)
        if pending is not None and committed:
            for group in pending.groups():
                for topic, partitions in pending.of_group(group):
                    for partition, (offset, value) in partitions:
                        if offset > self._while_open.get((group, topic, partition), -1):
                            self.store.put(group, topic, partition, value)
                            if self._in_transactions:
                                self._while_open[group, topic, partition] = offset
        if not self._in_transactions:
            self._while_open.clear()

    # --- loading

    def apply_run(self, data: bytes, position: int, other: RecordSink) -> ScanResult:
        """Apply plain commits by the million: see commit_fast_path.py."""

        def apply_other(offset: int, key: bytes | None, value: bytes | None) -> bool:
            if not other(offset, key, value):
                return False
            if key and value is not None and key[:-PARTITION_BYTES] not in self._puts:
                self._remember_put(key[:-PARTITION_BYTES])
            return True

        # While a transaction is open, it matters what was committed when.
        return scan_offset_commits(data, position, {} if self._in_transactions else self._puts, apply_other)

    def _remember_put(self, prefix: bytes) -> None:
        found = group_and_topic(prefix)
        if found is not None:
            group, topic = found
            self._puts[prefix] = self.store.partitions_of(group, topic).put
            self._prefixes[group].append(prefix)

    def forget_puts(self, group: str) -> None:
        """The next commit of ``group`` is applied as a record of its own."""
        for prefix in self._prefixes.pop(group, ()):
            del self._puts[prefix]

    def end_loading(self) -> None:
        """From now on records are applied one by one."""
        self._puts.clear()
        self._prefixes.clear()
