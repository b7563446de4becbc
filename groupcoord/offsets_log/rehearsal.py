"""What compaction would leave of a partition, found out by the broker's own log cleaner on a copy in memory."""

from collections.abc import Iterable
from typing import NamedTuple

from groupcoord.broker.journal import IN_MEMORY_LOG, RecoveredLog, Segment
from groupcoord.broker.leader_epochs import LeaderEpochs
from groupcoord.broker.log_cleaner import clean, cleanable
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.log_settings import LogSettings
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state import ProducerStates
from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.offsets_log.source import Batch, SourceError
from groupcoord.protocol.batches.record_batch import BatchError, records_in
from groupcoord.protocol.batches.records import InvalidRecordsError, Record

OFFSETS_SEGMENT_BYTES = 104_857_600
"""Kafka's default of offsets.topic.segment.bytes."""


class Size(NamedTuple):
    """How much something is; markers of transactions are no records here."""

    bytes: int
    records: int
    keys: int

    def plus(self, other: "Size") -> "Size":
        """Both together."""
        return Size(self.bytes + other.bytes, self.records + other.records, self.keys + other.keys)


class Rehearsal(NamedTuple):
    """The records of a partition before and after, and how much that is."""

    partition: int
    before: list[Record]
    after: list[Record]
    size_before: Size
    size_after: Size


def rehearse(partition: int, batches: Iterable[Batch], now_ms: int) -> Rehearsal:
    """Compact all of ``batches``, those of the segment that is still written to included.

    Tombstones stay, as in Kafka, until delete.retention.ms (a day) after the cleaning that first met them; nothing behind the
    beginning of an open transaction is compacted. Raises SourceError for records that cannot be read.
    """
    log = _log(partition, batches, now_ms)
    try:
        before = _records(log)
        size_before = _size(log, before)
        log.roll(now_ms)
        clean(log, cleanable(log, now_ms), now_ms)
        after = _records(log)
    except (BatchError, InvalidRecordsError) as problem:
        raise SourceError(f"{log.name} cannot be compacted: {problem}") from problem
    return Rehearsal(partition, before, after, size_before, _size(log, after))


def _log(partition: int, batches: Iterable[Batch], now_ms: int) -> PartitionLog:
    name = f"{CONSUMER_OFFSETS}-{partition}"
    segments: list[Segment] = []
    producers, end = ProducerStates(name), 0
    for batch in batches:
        header = batch.header
        if not segments or segments[-1].base_offset != batch.segment:
            segments.append(LogSegment(batch.segment, now_ms))
        segments[-1].append(batch.data, header, now_ms)
        end = header.last_offset + 1
        if header.has_producer_id and not header.control:
            producers.appended(header)
    start = segments[0].base_offset if segments else 0
    settings = LogSettings(cleanup_policy=frozenset({"compact"}), segment_bytes=OFFSETS_SEGMENT_BYTES)
    kept = RecoveredLog(IN_MEMORY_LOG, segments, start, end, producers, LeaderEpochs(), 0)
    return PartitionLog.recovered(settings, name, kept)


def _records(log: PartitionLog) -> list[Record]:
    return [record for segment in log.segments for record in records_in(segment.copy(0, segment.size))]


def _size(log: PartitionLog, records: list[Record]) -> Size:
    return Size(log.size, len(records), len({record.key for record in records}))
