"""Log compaction (``Cleaner``): keeps the last record of each key, at its offset, and removes tombstones after a delay.

A log consists of segments that were cleaned before, of dirty ones, and of the active segment, which is never cleaned; nor is
anything behind the first offset of an open transaction. Records of aborted transactions, which the transaction index lists, are
removed. A transaction marker is removed some time after the last batch of its transaction; the last batch of a producer stays
as a header without records. Sources: ``LogCleanerManager.cleanableOffsets``, ``LogToClean``, ``Cleaner``, whose
``buildOffsetMap`` and ``shouldRetainRecord`` say what is kept.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.storage_backend import Segment
from groupcoord.broker.topic_config import INT64_MAX
from groupcoord.core.background_work import BackgroundWork, run_to_end
from groupcoord.protocol.batches.key_value_reader import BatchKeyValues, collect_key_offsets, read_key_values
from groupcoord.protocol.batches.record_batch import (
    ABORT_MARKER,
    COMMIT_MARKER,
    COMPRESSION_MASK,
    HEADER_BYTES,
    INT32_MAX,
    MAGIC,
    BatchError,
    BatchHeader,
    delete_horizon_ms,
    empty_batch,
    filter_batch,
    marker_type,
    read_header,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, Record
from groupcoord.protocol.errors import ErrorCode

_SMALLEST_LENGTH = HEADER_BYTES - 12  # base offset and length, which the length does not count
PIECE_BYTES = 1 << 20
"""How many bytes are read at once, unless a batch is larger."""


def batches(segment: Segment) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """(header, the bytes read, the position of the batch in them) of each batch. Raises BatchError."""
    start, end = 0, segment.size
    data, position = b"", 0
    while start + position < end:
        if len(data) - position < HEADER_BYTES:
            start += position
            position, data = 0, segment.copy(start, PIECE_BYTES)
        header = read_header(data, position)
        if header.magic != MAGIC or header.length < _SMALLEST_LENGTH or start + position + header.size > end:
            what = f"what begins with offset {header.base_offset}, length {header.length} and magic {header.magic}"
            raise BatchError(ErrorCode.CORRUPT_MESSAGE, f"{what} is not a batch")
        if position + header.size > len(data):
            start += position
            position, data = 0, segment.copy(start, max(header.size, PIECE_BYTES))
        yield header, data, position
        position += header.size


class PieceCounter:
    """Ends a step of background work after a megabyte of batches, or after one compressed batch, however large it becomes."""

    def __init__(self) -> None:
        self._spent = 0

    def is_done(self, header: BatchHeader) -> bool:
        """Is the step complete with the batch of ``header``?"""
        self._spent += header.size
        if self._spent < PIECE_BYTES and not header.attributes & COMPRESSION_MASK:
            return False
        self._spent = 0
        return True


class CleanedTransactions:
    """Tells, of batches read in order, which belong to an aborted transaction, and which markers are no longer needed.

    ``aborted`` are the aborted transactions with a batch among those, in any order. The entry of each whose batches remain goes
    to ``index``, which can be replaced for each segment that is written. Source: ``CleanedTransactionMetadata``.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self.index: list[AbortedTransaction] = []
        self._to_come = deque(sorted(aborted, key=attrgetter("first_offset")))
        self._aborting: dict[int, AbortedTransaction] = {}  # by producer
        self._met: set[int] = set()  # the producers that have a batch of the transaction in _aborting
        self._committing: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Is the batch, which is not a marker, part of an aborted transaction?"""
        self._come_to(header.last_offset)
        if not header.transactional:
            return False
        if header.producer_id in self._aborting:
            self._met.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def can_discard(self, header: BatchHeader, marker: BatchKeyValues) -> bool:
        """Can the ``marker`` be removed: has its transaction no batch left, or is only the marker's header left?"""
        self._come_to(header.last_offset)
        if not marker.records:
            return True
        kind = marker_type(marker.records[0][1])
        producer_id = header.producer_id
        if kind == COMMIT_MARKER:
            was_met = producer_id in self._committing
            self._committing.discard(producer_id)
            return not was_met
        if kind != ABORT_MARKER:
            return False
        transaction = self._aborting.pop(producer_id, None)
        if transaction is None or producer_id not in self._met:
            return True
        self._met.discard(producer_id)
        self.index.append(transaction)
        return False

    def _come_to(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            transaction = self._to_come.popleft()
            self._aborting.setdefault(transaction.producer_id, transaction)


class CleanerOffsetMap:
    """The last offset of each key in the dirty segments from ``from_offset`` on, without records of ``aborted``
    transactions."""

    def __init__(self, from_offset: int, aborted: Iterable[AbortedTransaction]) -> None:
        self.last_offsets: dict[bytes, int] = {}
        """Key → the offset of its last record."""
        self.unusual: set[int] = set()
        """The base offsets of batches with tombstones, records without a key, or gaps in their offsets."""
        self._from_offset = from_offset
        self._transactions = CleanedTransactions(aborted)

    def read_segments(self, segments: Iterable[Segment]) -> BackgroundWork[None]:
        """Add the keys of ``segments``, a piece at a time. Raises BatchError, InvalidRecordsError."""
        pieces = PieceCounter()
        for segment in segments:
            for header, data, position in batches(segment):
                if header.control:
                    self._transactions.can_discard(header, read_key_values(data, position))
                elif not self._transactions.is_aborted(header):
                    self._enter(header, data, position)
                if pieces.is_done(header):
                    yield

    def _enter(self, header: BatchHeader, data: bytes, position: int) -> None:
        start = self._from_offset
        if header.base_offset >= start:
            if not collect_key_offsets(header, data, position, self.last_offsets):
                self.unusual.add(header.base_offset)
        elif header.last_offset >= start:
            records = read_key_values(data, position).records
            self.last_offsets.update((key, offset) for offset, key, _ in records if key is not None and offset >= start)


T = TypeVar("T")


def survivors(records: Iterable[Record]) -> list[Record]:
    """The records of a log, given in its order, that are left when all of it has been cleaned, in the same order and at their
    offsets.

    Tombstones are kept, because consumers have to see that a key was deleted. The cleaner removes them in a later run,
    ``delete.retention.ms`` after the run that first read them; see ``is_tombstone``. A record without a key cannot be
    compacted, and is removed.
    """
    records = list(records)
    last = {record.key: index for index, record in enumerate(records)}
    return [record for index, record in enumerate(records) if record.key is not None and last[record.key] == index]


def is_tombstone(record: Record) -> bool:
    """Has ``record`` a null value, which deletes its key?"""
    return record.key is not None and record.value is None


class Cleanable(NamedTuple):
    """The range of a log that can be cleaned, in offsets, and the sizes of its clean and dirty parts, in bytes."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int

    @property
    def ratio(self) -> float:
        """The dirty share of the bytes (compared with min.cleanable.dirty.ratio)."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Cleaned(NamedTuple):
    """The result of a cleaning: records and bytes that were read, and those that were kept."""

    first_dirty_offset: int
    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int


def cleanable(log: PartitionLog, now_ms: int) -> Cleanable:
    """The range of ``log`` that a cleaning at ``now_ms`` would read."""
    if not log.segments:
        return Cleanable(log.log_end_offset, log.log_end_offset, 0, 0)
    inactive = log.segments[:-1]
    dirty_from = (
        log.cleaned_to if log.log_start_offset <= log.cleaned_to <= log.log_end_offset else log.log_start_offset
    )
    dirty = inactive[log.segments.index_of(dirty_from) :]
    limits = [log.segments[-1].base_offset, log.last_stable_offset]
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        limits += [each.base_offset for each in dirty if each.largest_timestamp_ms > now_ms - lag_ms]
    uncleanable = log.segments[log.segments.index_of(max(dirty_from, min(limits)))].base_offset
    return Cleanable(
        dirty_from,
        uncleanable,
        sum(each.size for each in inactive if each.base_offset < dirty_from),
        sum(each.size for each in dirty if each.base_offset < uncleanable),
    )


def is_due(log: PartitionLog, found: Cleanable, now_ms: int) -> bool:
    """Is enough of it dirty, or a dirty record older than max.compaction.lag.ms?"""
    if not log.settings.compact or not found.dirty_bytes:
        return False
    return found.ratio > log.settings.min_cleanable_dirty_ratio or _waited_too_long(log, found, now_ms)


def clean(log: PartitionLog, found: Cleanable, now_ms: int) -> Cleaned | None:
    """Compact ``log`` even if it is not due; None if nothing can be cleaned.

    ``found`` is the result of ``cleanable``. Raises BatchError for a batch that cannot be read or a file that cannot be
    written; its segment and the later ones are then unchanged.
    """
    steps = cleaning(log, found, now_ms)
    try:
        work = next(steps)
        while True:
            work = steps.send(run_to_end(work))
    except StopIteration as end:
        done: Cleaned | None = end.value
        return done


def cleaning(log: PartitionLog, found: Cleanable, now_ms: int) -> Generator[BackgroundWork[Any], Any, Cleaned | None]:
    """As ``clean``, in steps: yields background work, and is sent its result.

    The work only reads closed segments, which never change, so the log can be used meanwhile. If segments that it has read are
    removed from the log, the rest is abandoned; the next cleaning will do it.
    """
    try:
        return (yield from _cleaning(log, found, now_ms))
    except _ChangedError:
        return None


def _cleaning(log: PartitionLog, found: Cleanable, now_ms: int) -> Generator[BackgroundWork[Any], Any, Cleaned | None]:
    if not found.dirty_bytes:
        return None
    segments = log.segments[: log.segments.index_of(found.first_uncleanable_offset)]
    try:
        aborted = log.segments.aborted_transactions(segments[0].base_offset, found.first_uncleanable_offset)
    except OSError as error:
        raise log.backend.failed(error) from error
    dirty = segments[log.segments.index_of(found.first_dirty_offset) :]
    ending_there = [each for each in aborted if each.last_offset >= dirty[0].base_offset]
    offset_map = CleanerOffsetMap(found.first_dirty_offset, ending_there)
    yield from _having(log, segments, offset_map.read_segments(dirty))
    run = _Run(log, offset_map, found, now_ms, aborted)
    for group in _groups(segments, log.settings.segment_bytes, found.first_uncleanable_offset):
        try:
            made = yield from _having(log, group, run.cleaned(group, log))
        except _ChangedError:
            log.backend.discard(group[0].base_offset)
            raise
        except OSError as error:
            raise log.backend.failed(error) from error
        log.replace_segments(group, [made], written=True)
    log.cleaned_to = found.first_uncleanable_offset
    return Cleaned(
        found.first_dirty_offset,
        found.first_uncleanable_offset,
        run.records_read,
        run.records_kept,
        run.bytes_read,
        run.bytes_kept,
    )


class _ChangedError(Exception):
    """The log no longer has the segments that were read."""


def _having(
    log: PartitionLog, segments: Sequence[Segment], work: BackgroundWork[T]
) -> Generator[BackgroundWork[Any], Any, T]:
    """The result of ``work``. If ``segments`` have left ``log`` by then, _ChangedError, even if ``work`` has failed."""
    try:
        result: T = yield _readable(work)
    except (BatchError, OSError):
        if log.segments.has(segments):
            raise
        raise _ChangedError from None
    if not log.segments.has(segments):
        raise _ChangedError
    return result


def _readable(work: BackgroundWork[T]) -> BackgroundWork[T]:
    """As ``work``, but malformed records raise BatchError, too."""
    try:
        return (yield from work)
    except InvalidRecordsError as problem:
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, str(problem)) from problem


class _Run:
    """One cleaning of ``log``."""

    def __init__(
        self,
        log: PartitionLog,
        offset_map: CleanerOffsetMap,
        found: Cleanable,
        now_ms: int,
        aborted: Iterable[AbortedTransaction],
    ) -> None:
        self.records_read = self.records_kept = self.bytes_read = self.bytes_kept = 0
        self._offset_map = offset_map
        self._first_dirty_offset, self._end_offset = found.first_dirty_offset, found.first_uncleanable_offset
        self._now_ms = now_ms
        self._horizon_ms = now_ms + log.settings.delete_retention_ms
        self._transactions = CleanedTransactions(aborted)
        self._last_of_producers = {
            producer_id: (entry.last_data_offset, entry.epoch) for producer_id, entry in log.producers.items()
        }
        self._last: list[int] = []

    def cleaned(self, segments: Sequence[Segment], log: PartitionLog) -> BackgroundWork[LogSegment]:
        """One segment with what is left of ``segments``, as old as the last of them; written for ``log``."""
        if not self._last:  # of what is dirty, the records that are the last of their keys
            self._last = sorted(set(self._offset_map.last_offsets.values()))
        pieces = PieceCounter()
        interval = log.settings.index_interval_bytes
        made = LogSegment(segments[0].base_offset, self._now_ms, index_interval_bytes=interval)
        self._transactions.index = made.aborted
        for segment in segments:
            self.bytes_read += segment.size
            for header, data, position in batches(segment):
                self.records_read += header.record_count
                batch = data[position : position + header.size]
                kept = self._left_of(header, batch)
                if kept is not None:
                    made.append(kept, header if kept is batch else read_header(kept), self._now_ms)
                if pieces.is_done(header):
                    yield
        self.bytes_kept += made.size
        made.modified_ms = segments[-1].largest_timestamp_ms
        yield from log.backend.writing(log, made)
        return made

    def _left_of(self, header: BatchHeader, batch: bytes) -> bytes | None:
        horizon_ms = delete_horizon_ms(header)
        is_past = horizon_ms is not None and self._now_ms >= horizon_ms
        can_discard = False
        if header.control:
            can_discard = self._transactions.can_discard(header, read_key_values(batch))
            if can_discard and is_past:
                return self._emptied(header)
        elif self._transactions.is_aborted(header):
            return self._emptied(header)
        kept, tombstones = self._kept_of(header, batch, tombstones_stay=not is_past)
        # A tombstone, or a marker whose transaction has no batch left, gets its delete horizon when it is first read.
        meets = horizon_ms is None and (tombstones or can_discard)
        return self._with(header, batch, kept, self._horizon_ms if meets else horizon_ms)

    def _kept_of(self, header: BatchHeader, batch: bytes, *, tombstones_stay: bool) -> tuple[list[int], bool]:
        """The indexes in the batch of the records that stay, and whether there is a tombstone among them."""
        if header.control:
            return list(range(header.record_count)), False
        if self._is_known(header):
            return self._last_of(header), False
        last = self._offset_map.last_offsets
        kept, tombstones = [], False
        for index, (offset, key, value) in enumerate(read_key_values(batch).records):
            if key is None or offset < last.get(key, -1):
                continue
            if value is None:
                if not tombstones_stay:
                    continue
                tombstones = True
            kept.append(index)
        return kept, tombstones

    def _is_known(self, header: BatchHeader) -> bool:
        """Does the offset map tell which records of the batch stay, so that they need not be parsed again?"""
        return header.base_offset >= self._first_dirty_offset and header.base_offset not in self._offset_map.unusual

    def _last_of(self, header: BatchHeader) -> list[int]:
        """The indexes of the records in a batch that are the last of their keys; for a batch that ``_is_known``."""
        first = header.base_offset
        start = bisect_left(self._last, first)
        end = bisect_left(self._last, first + header.record_count, start)
        return [offset - first for offset in self._last[start:end]]

    def _with(self, header: BatchHeader, batch: bytes, kept: list[int], horizon_ms: int | None) -> bytes | None:
        """The batch with only the records ``kept``, and with that delete horizon."""
        self.records_kept += len(kept)
        if not kept:
            return self._emptied(header)
        if len(kept) == header.record_count and horizon_ms == delete_horizon_ms(header):
            return batch
        return filter_batch(header, batch, kept, horizon_ms)

    def _emptied(self, header: BatchHeader) -> bytes | None:
        """The batch without records, if it is kept for its producer's state or as the last batch of the log; else None."""
        return empty_batch(header) if self._is_needed(header) else None

    def _is_needed(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._end_offset:
            return True
        last = self._last_of_producers.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        last_data_offset, epoch = last
        if last_data_offset >= 0:
            return header.last_offset == last_data_offset
        return header.control and header.producer_epoch == epoch


def _groups(segments: Sequence[Segment], segment_bytes: int, end_offset: int) -> Iterator[list[Segment]]:
    """Groups of adjacent segments that are merged into one, so that compaction does not leave many small segments.

    A group does not exceed the size of a segment, nor the offset range of its index. Source: ``Cleaner.groupSegmentsBySize``.
    """
    group: list[Segment] = []
    ends = [*(each.base_offset for each in segments[1:]), end_offset]
    for segment, end in zip(segments, ends, strict=True):
        if group and (
            sum(each.size for each in group) + segment.size > segment_bytes
            or (segment.size and end - 1 - group[0].base_offset > INT32_MAX)
        ):
            yield group
            group = []
        group.append(segment)
    yield group


def _waited_too_long(log: PartitionLog, found: Cleanable, now_ms: int) -> bool:
    """Is the first batch of a dirty segment older than max.compaction.lag.ms?"""
    lag_ms = log.settings.max_compaction_lag_ms
    if lag_ms == INT64_MAX:  # as nearly always: no file needs to be read
        return False
    dirty = log.segments[log.segments.index_of(found.first_dirty_offset) : -1]
    times = (read_header(each.copy(0, HEADER_BYTES)).max_timestamp_ms for each in dirty if each.size)
    return any(0 < first_ms < now_ms - lag_ms for first_ms in times)
