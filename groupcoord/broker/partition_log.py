"""The log of one partition: append, read, look up, and forget what is old. Its storage says where the batches are kept.

There is one replica, so that a record is committed as soon as it is appended: high watermark and last stable offset are the
end of the log. Source: ``UnifiedLog`` and ``LocalLog``.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET, LeaderEpochCache
from groupcoord.broker.log_config import LogConfig
from groupcoord.broker.log_segment import LogSegment
from groupcoord.broker.log_validator import CheckedBatch, LogValidator
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.record_slices import DELETED_SEGMENTS, RecordSlice
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND, LogBackend, RecoveredLog, Segment
from groupcoord.broker.timestamp_search import BatchSearch, find_first_since
from groupcoord.core.effects import LogRecord
from groupcoord.protocol.batches.record_batch import NO_TIMESTAMP, BatchError, BatchHeader, build_batch, read_header
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.codec.primitives import LazyBytes
from groupcoord.protocol.errors import ErrorCode

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6

_SEGMENTS_IN_MEMORY = 8  # of a log whose memory is bounded, at least
_base_offset = attrgetter("base_offset")


class LogAppendInfo(NamedTuple):
    """What came of an append: where the records are. ``log_append_time_ms`` is -1 unless the topic's records have it.

    ``duplicate``: they had been appended before, there, and this time nothing was.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class LogOffsetMetadata(NamedTuple):
    """A place in a log: offset, the base offset of its segment, and bytes from the segment's beginning."""

    offset: int
    segment: int
    byte: int


class FetchDataInfo(NamedTuple):
    """What a read found, without a copy of it: ``length`` bytes of ``segment`` from ``start`` on.

    ``cut_short``: there is a batch at the offset, and not one byte of it could be given.
    """

    start: LogOffsetMetadata
    segment: Segment | None
    length: int
    cut_short: bool

    def data(self) -> bytes:
        """The bytes."""
        return self.segment.copy(self.start.byte, self.length) if self.segment and self.length else b""

    def record_slice(self) -> LazyBytes:
        """The bytes where they lie; they can be read even if the log deletes them meanwhile."""
        return RecordSlice(self.segment, self.start.byte, self.length) if self.segment and self.length else b""


class FoundOffset(NamedTuple):
    """The answer to a search by time; -1 for a timestamp (ms) or an epoch that does not matter."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class PartitionLog:
    """The batches of one partition. ``name`` is ``topic-0``, for messages; ``settings`` may be replaced at any time."""

    def __init__(self, settings: LogConfig, name: str = "", backend: LogBackend = IN_MEMORY_LOG_BACKEND) -> None:
        self.settings = settings
        self.name = name
        self.backend = backend
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.producers = ProducerStateManager(name)
        self.epochs = LeaderEpochCache()
        self.cleaned_to = 0
        """What lies before this offset has been compacted, if anything is."""
        self._segments: list[Segment] = []

    @classmethod
    def recovered(cls, settings: LogConfig, name: str, kept: RecoveredLog) -> "PartitionLog":
        """The log as it was kept."""
        log = cls(settings, name, kept.backend)
        log.log_start_offset, log.log_end_offset = kept.log_start_offset, kept.log_end_offset
        log.producers, log.epochs, log.cleaned_to = kept.producers, kept.epochs, kept.cleaned_to
        log._segments = kept.segments
        return log

    def __repr__(self) -> str:
        return f"<PartitionLog {self.name} offsets={self.log_start_offset}–{self.log_end_offset} bytes={self.size}>"

    @property
    def leader_epoch(self) -> int:
        """The epoch of the leader, which what is appended gets."""
        return self.epochs.latest

    @property
    def high_watermark(self) -> int:
        """The offset up to which records are committed."""
        return self.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which no transaction is open."""
        return self.log_end_offset

    @property
    def size(self) -> int:
        """Bytes of all batches that are kept."""
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """What the log consists of, oldest first; only the last is appended to."""
        return self._segments

    # --- appending

    @property
    def validator(self) -> LogValidator:
        """Checks what is to be appended, by the settings as they are now."""
        return LogValidator(self.settings, self.name)

    def append(self, records: bytes, now_ms: int, outcome: CheckedBatch | BatchError | None = None) -> LogAppendInfo:
        """Append the batch a client produced. Raises BatchError, and then nothing has changed.

        ``outcome`` is what checking the batch came to, if that has been done already.
        """
        checked = self.validator.check(records, now_ms) if outcome is None else outcome
        if isinstance(checked, BatchError):
            raise checked
        batch, header = checked.placed(self.log_end_offset, self.leader_epoch, now_ms)
        self._check_segment_size(header)
        if header.has_producer_id:
            kept = self.producers.duplicate_of(header)
            if kept is not None:
                return LogAppendInfo(
                    kept.first_offset, kept.last_offset, kept.timestamp_ms, self.log_start_offset, duplicate=True
                )
            self.producers.check(header)
        self._store(batch, header, now_ms)
        if header.has_producer_id:
            self.producers.appended(header)
        append_time = now_ms if checked.log_append_time else NO_TIMESTAMP
        return LogAppendInfo(
            header.base_offset, header.last_offset, append_time, self.log_start_offset, duplicate=False
        )

    def append_own(self, records: Sequence[LogRecord], now_ms: int) -> LogAppendInfo:
        """Append records of the broker itself, as one batch with ``now_ms`` as their time.

        Raises BatchError(MESSAGE_TOO_LARGE or RECORD_LIST_TOO_LARGE), and then nothing has changed.
        """
        base = self.log_end_offset
        batch = build_batch(
            [Record(base + index, now_ms, record.key, record.value) for index, record in enumerate(records)],
            leader_epoch=self.leader_epoch,
        )
        header = read_header(batch)
        if header.size > self.settings.max_message_bytes:
            reason = f"{header.size} bytes in one batch, where max.message.bytes is {self.settings.max_message_bytes}"
            raise BatchError(ErrorCode.MESSAGE_TOO_LARGE, reason)
        self._check_segment_size(header)
        self._store(batch, header, now_ms)
        return LogAppendInfo(base, header.last_offset, NO_TIMESTAMP, self.log_start_offset, duplicate=False)

    def _check_segment_size(self, header: BatchHeader) -> None:
        if header.size > self.settings.segment_bytes:
            raise BatchError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {header.size} bytes in append to partition {self.name}, "
                f"which exceeds the maximum configured segment size of {self.settings.segment_bytes}.",
            )

    def _store(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        segment = self._active_segment(now_ms)
        if segment.size and (
            segment.size > self._segment_bytes - header.size
            or segment.age_ms(now_ms, header.max_timestamp_ms) > self.settings.segment_ms
            or segment.is_full_for(header.last_offset)
        ):
            segment = self._roll(now_ms)
        self.backend.append(self, segment, batch, header, now_ms)
        self.log_end_offset = header.last_offset + 1

    def _active_segment(self, now_ms: int) -> Segment:
        return self._segments[-1] if self._segments else self._roll(now_ms)

    def _roll(self, now_ms: int) -> Segment:
        segment = self.backend.new_segment(self, self.log_end_offset, now_ms)
        self._segments.append(segment)
        self._delete_by_size(self.settings.memory_bytes, now_ms)
        return segment

    @property
    def _segment_bytes(self) -> int:
        """When a segment is full: to delete it makes a difference to the memory, but not too large a one."""
        memory, configured = self.settings.memory_bytes, self.settings.segment_bytes
        return configured if memory < 0 else min(configured, memory // _SEGMENTS_IN_MEMORY)

    def roll(self, now_ms: int) -> None:
        """Close the active segment, so that it can be compacted or deleted; an empty one stays open. Raises BatchError."""
        if self._segments and self._segments[-1].size:
            self._roll(now_ms)

    # --- reading

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> FetchDataInfo:
        """Up to ``max_bytes`` of batches, from the one that holds ``offset`` on and within one segment.

        The last batch may be cut off, as in Kafka. ``at_least_one``: the first batch comes whole, whatever its size.
        Raises BatchError: OFFSET_OUT_OF_RANGE, or UNKNOWN_SERVER_ERROR for a negative ``max_bytes``.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BatchError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only have log segments in "
                f"the range {self.log_start_offset} to {self.log_end_offset}.",
            )
        if offset < self.log_end_offset:
            for segment in self._segments[self._segment_index(offset) :]:
                found = segment.find(offset)
                if found is not None:
                    break
            else:
                return self._nothing()
            if max_bytes < 0:
                raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max size {max_bytes} for log read")
            start = LogOffsetMetadata(found.header.base_offset, segment.base_offset, found.position)
            allowed = max(max_bytes, found.header.size) if at_least_one else max_bytes
            if allowed < found.header.size:
                return FetchDataInfo(start, segment, 0, cut_short=allowed > 0)
            return FetchDataInfo(start, segment, min(segment.size - found.position, allowed), cut_short=False)
        return self._nothing()

    def _nothing(self) -> FetchDataInfo:
        return FetchDataInfo(self.end_position, None, 0, cut_short=False)

    @property
    def end_position(self) -> LogOffsetMetadata:
        """Where the next batch will be."""
        if not self._segments:
            return LogOffsetMetadata(self.log_end_offset, self.log_end_offset, 0)
        return LogOffsetMetadata(self.log_end_offset, self._segments[-1].base_offset, self._segments[-1].size)

    def _segment_index(self, offset: int) -> int:
        return max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)

    # --- looking up

    def offset_for_timestamp(self, timestamp_ms: int, find: BatchSearch = find_first_since) -> FoundOffset | None:
        """The first record that is not older than ``timestamp_ms``, or what one of the negative timestamps asks for.

        ``find`` searches in a batch, and what it raises is raised. None: there is no such record.
        Source: ``UnifiedLog.fetchOffsetByTimestamp``.
        """
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return FoundOffset(NO_TIMESTAMP, self.log_start_offset, self.epochs.of_offset(self.log_start_offset))
        if timestamp_ms == LATEST:
            return FoundOffset(NO_TIMESTAMP, self.log_end_offset, self.leader_epoch)
        if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # nothing here is ever tiered
            return FoundOffset(NO_TIMESTAMP, UNDEFINED_OFFSET, UNDEFINED_EPOCH)
        if timestamp_ms == MAX_TIMESTAMP:
            newest = max(self._segments, key=attrgetter("max_timestamp_ms"), default=None)
            record = None if newest is None else newest.latest_record(find)
        else:
            since = (segment for segment in self._segments if segment.largest_timestamp_ms >= timestamp_ms)
            first = next(since, None)
            record = None if first is None else first.first_record_since(timestamp_ms, self.log_start_offset, find)
        if record is None:
            return None
        return FoundOffset(record.timestamp_ms, record.offset, self.epochs.of_offset(record.offset))

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to ``epoch``, or (-1, -1) if that cannot be told."""
        return self.epochs.end_of(epoch, self.log_start_offset, self.log_end_offset)

    # --- forgetting

    def delete_records(self, offset: int) -> int:
        """Forget what lies before ``offset`` (-1: everything); the log start offset afterwards.

        Raises BatchError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE, or that it cannot be kept.
        """
        if self.settings.compact and not self.settings.delete:
            reason = f"Records of partition {self.name} can not be deleted due to the configured policy"
            raise BatchError(ErrorCode.POLICY_VIOLATION, reason)
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            reason = f"The offset {target} for partition {self.name} is not valid: it ends at {self.high_watermark}"
            raise BatchError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        before = self.log_start_offset
        if target > before:
            self.log_start_offset = target
            try:
                self.backend.start_moved(self)
            except BatchError:
                self.log_start_offset = before
                raise
        return self.log_start_offset

    def has(self, segments: Sequence[Segment]) -> bool:
        """Are ``segments`` still part of it, one behind the other?"""
        first = self._segments.index(segments[0]) if segments[0] in self._segments else 0
        return self._segments[first : first + len(segments)] == list(segments)

    def replace_segments(self, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False) -> None:
        """Replace the segments ``old``, which are adjacent and not the last, by ``cleaned``. Raises BatchError.

        ``written``: the storage has written them already.
        """
        first = self._segments.index(old[0])
        self._segments[first : first + len(old)] = self.backend.replaced(self, old, cleaned, written=written)

    def topic_deleted(self) -> None:
        """Its topic is gone, and all segments with it."""
        DELETED_SEGMENTS.add(self._segments)

    def apply_retention(self, now_ms: int) -> None:
        """Delete the segments that are before the log start offset, too old, or beyond the retention size.

        Source: ``UnifiedLog.deleteOldSegments``.
        """
        self._delete_segments(self._segment_index(self.log_start_offset), now_ms)
        if self.settings.delete:
            self._delete_by_size(self.settings.retention_bytes, now_ms)
            self._delete_by_age(now_ms)

    def _delete_by_size(self, limit: int, now_ms: int) -> None:
        if not self.settings.delete or limit < 0:
            return
        spare = self.size - limit
        count = 0
        for segment in self._segments:
            if not segment.size or spare < segment.size:
                break
            spare -= segment.size
            count += 1
        self._delete_segments(count, now_ms)

    def _delete_by_age(self, now_ms: int) -> None:
        if self.settings.retention_ms < 0:
            return
        count = 0
        for segment in self._segments:
            if not segment.size or now_ms - segment.largest_timestamp_ms <= self.settings.retention_ms:
                break
            count += 1
        self._delete_segments(count, now_ms)

    def _delete_segments(self, count: int, now_ms: int) -> None:
        if count == 0:
            return
        if count == len(self._segments):
            self._segments.append(self.backend.new_segment(self, self.log_end_offset, now_ms))
        self.log_start_offset = max(self.log_start_offset, self._segments[count].base_offset)
        doomed = self._segments[:count]
        del self._segments[:count]
        self.backend.deleted(self, doomed)
