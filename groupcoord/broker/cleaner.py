"""Log compaction: of each key the last record is kept, at its offset; a tombstone goes some time after it was met.

A log consists of what was cleaned before, of what is dirty, and of the active segment, which is never touched; nor is what
lies behind the beginning of a transaction that is still open. Sources: ``LogCleanerManager.cleanableOffsets``, ``LogToClean``,
``Cleaner``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from groupcoord.broker.cleaner_offset_map import IN_TRANSACTION, CleanerOffsetMap, PieceCounter, batches
from groupcoord.broker.log_config import INT64_MAX
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import Segment
from groupcoord.core.background_work import BackgroundWork, run_to_end
from groupcoord.protocol.batches.key_value_reader import read_key_values
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, INT32_MAX, BatchError, BatchHeader, read_header
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.batches.rewrite import delete_horizon_ms, empty_batch, filter_batch
from groupcoord.protocol.errors import ErrorCode

PRODUCER_EXPIRATION_MS = 86_400_000
"""Kafka's default of producer.id.expiration.ms."""
T = TypeVar("T")
_base_offset = attrgetter("base_offset")


class Cleanable(NamedTuple):
    """What of a log may be cleaned, in offsets, and how large the parts are, in bytes."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int

    @property
    def ratio(self) -> float:
        """How much of what is to be read is dirty."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Cleaned(NamedTuple):
    """What a cleaning did: records and bytes that were read, and those of them that were kept."""

    first_dirty_offset: int
    end_offset: int
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int


def cleanable(log: PartitionLog, now_ms: int, stable_offset: int | None = None) -> Cleanable:
    """What of ``log`` a cleaning at ``now_ms`` would read; nothing behind ``stable_offset`` is cleaned."""
    if not log.segments:
        return Cleanable(log.log_end_offset, log.log_end_offset, 0, 0)
    inactive = log.segments[:-1]
    dirty_from = (
        log.cleaned_to if log.log_start_offset <= log.cleaned_to <= log.log_end_offset else log.log_start_offset
    )
    dirty = inactive[_index_at(log, dirty_from) :]
    limits = [log.segments[-1].base_offset]
    if stable_offset is not None:
        limits.append(stable_offset)
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        limits += [each.base_offset for each in dirty if each.largest_timestamp_ms > now_ms - lag_ms]
    uncleanable = log.segments[_index_at(log, max(dirty_from, min(limits)))].base_offset
    return Cleanable(
        dirty_from,
        uncleanable,
        sum(each.size for each in inactive if each.base_offset < dirty_from),
        sum(each.size for each in dirty if each.base_offset < uncleanable),
    )


def is_due(log: PartitionLog, found: Cleanable, now_ms: int) -> bool:
    """Is there enough to clean, or something that has waited for too long?"""
    if not log.settings.compact or not found.dirty_bytes:
        return False
    return found.ratio > log.settings.min_cleanable_dirty_ratio or _waited_too_long(log, found, now_ms)


def clean(
    log: PartitionLog, found: Cleanable, now_ms: int, producer_expiration_ms: int = PRODUCER_EXPIRATION_MS
) -> Cleaned | None:
    """Compact what can be, whether it is worth it or not; None if there is nothing.

    ``found`` is what ``cleanable`` says; a producer not heard of for ``producer_expiration_ms`` is forgotten. Raises BatchError
    for a batch that cannot be read or a file that cannot be written; its segment, and those behind, are then as they were.
    """
    steps = cleaning(log, found, now_ms, producer_expiration_ms)
    try:
        work = next(steps)
        while True:
            work = steps.send(run_to_end(work))
    except StopIteration as end:
        done: Cleaned | None = end.value
        return done


def cleaning(
    log: PartitionLog, found: Cleanable, now_ms: int, producer_expiration_ms: int = PRODUCER_EXPIRATION_MS
) -> Generator[BackgroundWork[Any], Any, Cleaned | None]:
    """As ``clean``, in steps: yields what takes long, and is sent what it came to.

    That is work on closed segments, which never change, so that it may be done elsewhere while the log is used. If segments
    that it has read have left the log meanwhile, what is left to do is dropped: the next cleaning will do it.
    """
    try:
        return (yield from _cleaning(log, found, now_ms, now_ms - producer_expiration_ms))
    except _ChangedError:
        return None


def _cleaning(
    log: PartitionLog, found: Cleanable, now_ms: int, heard_since_ms: int
) -> Generator[BackgroundWork[Any], Any, Cleaned | None]:
    while found.dirty_bytes:
        count = _index_at(log, found.first_uncleanable_offset)
        segments, later = log.segments[:count], log.segments[count:-1]
        offset_map = CleanerOffsetMap((), found.first_dirty_offset, heard_since_ms)
        yield from _having(log, segments, offset_map.read_segments(segments))
        if offset_map.has_transactions:
            yield from _having(log, [*segments, *later], offset_map.read_later_segments(later))
            # The active segment is read here, in the event loop, where no append comes in between; it is read in pieces, and
            # other work is done between them.
            for _ in _readable(offset_map.read_later_segments(log.segments[-1:])):
                yield from _having(log, segments, _nothing())
        first_open = offset_map.first_open_offset
        if first_open is None or first_open >= found.first_uncleanable_offset:
            break
        found = cleanable(log, now_ms, first_open)
    else:
        return None
    run = _Run(log, offset_map, found, now_ms)
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
    """What was read is not part of the log any more."""


def _having(
    log: PartitionLog, segments: Sequence[Segment], work: BackgroundWork[T]
) -> Generator[BackgroundWork[Any], Any, T]:
    """What ``work`` comes to, if ``segments`` are still part of ``log`` then; whatever it raises is its own fault only so."""
    try:
        result: T = yield _readable(work)
    except (BatchError, OSError):
        if log.has(segments):
            raise
        raise _ChangedError from None
    if not log.has(segments):
        raise _ChangedError
    return result


def _readable(work: BackgroundWork[T]) -> BackgroundWork[T]:
    """As ``work``; records that are none are a BatchError, too."""
    try:
        return (yield from work)
    except InvalidRecordsError as problem:
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, str(problem)) from problem


def _nothing() -> BackgroundWork[None]:
    yield


class _Run:
    """One cleaning of ``log``: segments in, what is left of them out."""

    def __init__(self, log: PartitionLog, offset_map: CleanerOffsetMap, found: Cleanable, now_ms: int) -> None:
        self.records_read = self.records_kept = self.bytes_read = self.bytes_kept = 0
        self._offset_map = offset_map
        self._first_dirty_offset, self._end_offset = found.first_dirty_offset, found.first_uncleanable_offset
        self._now_ms = now_ms
        self._horizon_ms = now_ms + log.settings.delete_retention_ms
        self._last_of_producers = {
            producer_id: entry.batches[-1].last_offset
            for producer_id, entry in log.producers.items()
            if producer_id not in offset_map.markers
        }
        self._last: list[int] = []
        self._met: set[int] = set()  # the producers of whose open transaction there is a batch

    def cleaned(self, segments: Sequence[Segment], log: PartitionLog) -> BackgroundWork[LogSegment]:
        """One segment with what is left of ``segments``, and as old as the last of them; written down for ``log``."""
        if not self._last:  # of what is dirty, the records that are the last of their keys
            self._last = sorted(set(self._offset_map.last_offsets.values()))
        pieces = PieceCounter()
        made = LogSegment(segments[0].base_offset, self._now_ms)
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
        if not header.attributes & IN_TRANSACTION and self._is_known(header):
            return self._with(header, batch, self._last_of(header), delete_horizon_ms(header))
        horizon_ms = delete_horizon_ms(header)
        is_past = horizon_ms is not None and self._now_ms >= horizon_ms
        ends_nothing = header.control and header.producer_id not in self._met
        if header.control:
            self._met.discard(header.producer_id)
        elif header.transactional:
            self._met.add(header.producer_id)
        if header.base_offset in self._offset_map.aborted or (ends_nothing and is_past):
            return self._emptied(header)
        kept, tombstones = self._kept_of(header, batch, tombstones_stay=not is_past)
        # What is to go later, a tombstone or the end of a transaction of which nothing is left, gets its time.
        meets = horizon_ms is None and (tombstones or ends_nothing)
        return self._with(header, batch, kept, self._horizon_ms if meets else horizon_ms)

    def _kept_of(self, header: BatchHeader, batch: bytes, *, tombstones_stay: bool) -> tuple[list[int], bool]:
        """Which of the records stay, the first being 0, and whether there is a tombstone among them."""
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
        """Does the offset map say which records of the batch stay, so that they need not be read again?"""
        return header.base_offset >= self._first_dirty_offset and header.base_offset not in self._offset_map.unusual

    def _last_of(self, header: BatchHeader) -> list[int]:
        """Which records of a batch that is known are the last of their keys, the first being 0."""
        first = header.base_offset
        start = bisect_left(self._last, first)
        end = bisect_left(self._last, first + header.record_count, start)
        return [offset - first for offset in self._last[start:end]]

    def _with(self, header: BatchHeader, batch: bytes, kept: list[int], horizon_ms: int | None) -> bytes | None:
        """The batch with the records ``kept``, and with that delete horizon."""
        self.records_kept += len(kept)
        if not kept:
            return self._emptied(header)
        if len(kept) == header.record_count and horizon_ms == delete_horizon_ms(header):
            return batch
        return filter_batch(header, batch, kept, horizon_ms)

    def _emptied(self, header: BatchHeader) -> bytes | None:
        """The batch without its records, if it must be kept, for its producer's state or as the end of the log; else None."""
        return empty_batch(header) if self._is_needed(header) else None

    def _is_needed(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._end_offset:
            return True
        if header.control and self._offset_map.markers.get(header.producer_id) == header.producer_epoch:
            return True
        return header.has_producer_id and self._last_of_producers.get(header.producer_id) == header.last_offset


def _groups(segments: Sequence[Segment], segment_bytes: int, end_offset: int) -> Iterator[list[Segment]]:
    """Neighbours, at least one segment, that become one, so that what compaction leaves does not end up in many small ones.

    They are not too large for one segment together, and not too far apart for its index.
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


def _index_at(log: PartitionLog, offset: int) -> int:
    """Which segment ``offset`` is in."""
    return max(0, bisect_right(log.segments, offset, key=_base_offset) - 1)


def _waited_too_long(log: PartitionLog, found: Cleanable, now_ms: int) -> bool:
    """Does a dirty segment begin with a batch older than max.compaction.lag.ms?"""
    lag_ms = log.settings.max_compaction_lag_ms
    if lag_ms == INT64_MAX:  # as nearly always: no file needs to be read
        return False
    dirty = log.segments[_index_at(log, found.first_dirty_offset) : -1]
    times = (read_header(each.copy(0, HEADER_BYTES)).max_timestamp_ms for each in dirty if each.size)
    return any(0 < first_ms < now_ms - lag_ms for first_ms in times)
