"""The log of one partition replica (``UnifiedLog``): appends, reads, lookups, truncation and retention. A LogBackend stores its
segments.

Each broker with a replica of the partition has a log of its own. Consumers read up to the high watermark, which all in-sync
replicas have reached (see ``high_watermarks.py``); without followers that is the log end offset. With read_committed they
read up to the last stable offset, the first offset of the oldest open transaction, and the response lists the aborted
transactions. Source: ``UnifiedLog`` and ``LocalLog``.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from groupcoord.broker.leader_epoch_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEntry, LeaderEpochCache
from groupcoord.broker.log_segment import (
    DELETED_SEGMENTS,
    BatchSearch,
    LogSegment,
    RecordSlice,
    find_first_since,
)
from groupcoord.broker.log_segments import LogSegments
from groupcoord.broker.log_validator import CheckedBatch, LogValidator
from groupcoord.broker.producer_state_manager import AbortedTransaction, ProducerStateManager, VerificationState
from groupcoord.broker.storage_backend import IN_MEMORY_LOG_BACKEND, LogBackend, RecoveredLog, Segment
from groupcoord.broker.topic_config import LogConfig
from groupcoord.core.effects import LogRecord
from groupcoord.core.transaction_verification_types import TransactionMarker
from groupcoord.protocol.batches.record_batch import (
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchError,
    BatchHeader,
    EndTransactionMarker,
    build_marker,
    build_own_batch,
    iter_batch_extents,
    read_header,
)
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from groupcoord.protocol.errors import ErrorCode

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6

_SEGMENTS_IN_MEMORY = 8  # the minimum number of segments of a log whose memory is bounded


class LogAppendInfo(NamedTuple):
    """The result of an append. ``log_append_time_ms`` is -1 unless the topic uses LogAppendTime.

    ``duplicate``: the batch had been appended before, at these offsets, and was not appended again.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class LogOffsetMetadata(NamedTuple):
    """A position in a log: the offset, the base offset of its segment, and the byte position in the segment."""

    offset: int
    segment: int
    byte: int


class FetchDataInfo(NamedTuple):
    """The result of a read, without a copy of the data: ``length`` bytes of ``segment`` from ``start`` on.

    ``aborted`` are the aborted transactions that overlap the data, in the order of their markers; None with read_uncommitted,
    and if nothing is returned because the batch at the offset is larger than the limit of bytes.
    """

    start: LogOffsetMetadata
    segment: Segment | None
    length: int
    aborted: Sequence[AbortedTransaction] | None = None

    def data(self) -> bytes:
        """A copy of the bytes."""
        return self.segment.copy(self.start.byte, self.length) if self.segment and self.length else b""

    def record_slice(self) -> LazyBytes:
        """A reference to the bytes, which can be read even if the log deletes the segment meanwhile."""
        return RecordSlice(self.segment, self.start.byte, self.length) if self.segment and self.length else b""


class FoundOffset(NamedTuple):
    """The result of a search by timestamp; -1 for a timestamp (ms) or an epoch that does not apply."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class PartitionLog:
    """The log of one partition replica. ``name`` is ``topic-0``, for messages; ``settings`` can be replaced at any time."""

    def __init__(self, settings: LogConfig, name: str = "", backend: LogBackend = IN_MEMORY_LOG_BACKEND) -> None:
        self.settings = settings
        self.name = name
        self.backend = backend
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.held_back_to: int | None = None
        """The high watermark if there are followers; None: it is the log end offset."""
        self.leader_epoch = 0
        """The leader epoch of the partition as known to the broker; the batches that a leader appends get it."""
        self.producers = ProducerStateManager(name)
        self.epochs = LeaderEpochCache()
        self.cleaned_to = 0
        """The part before this offset has been compacted, if any has."""
        self.deletions: list[tuple[int, int, str]] = []  # by retention, not told yet: from, up to, why
        self.segments = LogSegments()
        self._epoch_is_new = False

    @classmethod
    def recovered(cls, settings: LogConfig, name: str, kept: RecoveredLog) -> "PartitionLog":
        """The log that the storage has recovered."""
        log = cls(settings, name, kept.backend)
        log.log_start_offset, log.log_end_offset = kept.log_start_offset, kept.log_end_offset
        log.producers, log.epochs, log.cleaned_to = kept.producers, kept.epochs, kept.cleaned_to
        log.leader_epoch = kept.leader_epoch
        log.segments = LogSegments(kept.segments)
        return log

    def __repr__(self) -> str:
        return f"<PartitionLog {self.name} offsets={self.log_start_offset}–{self.log_end_offset} bytes={self.size}>"

    @property
    def high_watermark(self) -> int:
        """The offset that all in-sync replicas have reached: consumers read up to it."""
        return self.log_end_offset if self.held_back_to is None else self.held_back_to

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest transaction that is open or whose marker is not replicated; else the high
        watermark."""
        first = self.producers.first_unstable_at(self.high_watermark)
        if first is None or first >= self.high_watermark:
            return self.high_watermark
        return first if first >= self.log_start_offset else self._position_of(self.log_start_offset).offset

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self.segments.size

    # --- appending

    @property
    def validator(self) -> LogValidator:
        """The validator of appended batches, with the current settings."""
        return LogValidator(self.settings, self.name)

    def append(
        self,
        records: bytes,
        now_ms: int,
        outcome: CheckedBatch | BatchError | None = None,
        *,
        verifies: bool = False,
        shown: VerificationState | None = None,
    ) -> LogAppendInfo:
        """Append a batch of a client. Raises BatchError, and then nothing has changed but perhaps the active segment.

        ``outcome`` is the result of validating the batch, if that was done before. ``verifies``: a transactional batch has to
        belong to an open transaction, or ``shown`` must be what ``producers.start_verification`` returned for it.
        """
        checked = self.validator.check(records, now_ms) if outcome is None else outcome
        if isinstance(checked, BatchError):
            raise checked
        batch, header = checked.placed(self.log_end_offset, self.leader_epoch, now_ms)
        self._check_segment_size(header)
        self._make_room(header, now_ms)
        if header.has_producer_id:
            kept = self.producers.duplicate_of(header)
            if kept is not None:
                return LogAppendInfo(
                    kept.first_offset, kept.last_offset, kept.timestamp_ms, self.log_start_offset, duplicate=True
                )
            if verifies and header.transactional:
                self.producers.check_verified(header, shown)
            self.producers.check(header)
        self._store(batch, header, now_ms)
        if header.has_producer_id:
            self.producers.appended(header)
        append_time = now_ms if checked.log_append_time else NO_TIMESTAMP
        return LogAppendInfo(
            header.base_offset, header.last_offset, append_time, self.log_start_offset, duplicate=False
        )

    def append_own(
        self,
        records: Sequence[LogRecord],
        now_ms: int,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
    ) -> LogAppendInfo:
        """Append records of the broker itself as one batch, with ``now_ms`` as timestamp.

        With a producer id they are part of its transaction, and their sequence numbers begin with 0. Raises BatchError, and
        then no record has been appended: MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE or INVALID_PRODUCER_EPOCH.
        """
        base = self.log_end_offset
        transactional = producer_id != NO_PRODUCER_ID
        batch, header = build_own_batch(
            records,
            base,
            now_ms,
            leader_epoch=self.leader_epoch,
            attributes=TRANSACTIONAL if transactional else 0,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if transactional else NO_SEQUENCE,
        )
        self._check_own_size(header)
        self._make_room(header, now_ms)
        if header.has_producer_id:
            self.producers.check_own(header)
        self._store(batch, header, now_ms)
        if header.has_producer_id:
            self.producers.appended(header)
        return LogAppendInfo(base, header.last_offset, NO_TIMESTAMP, self.log_start_offset, duplicate=False)

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> LogAppendInfo:
        """Append a transaction marker; the transaction may have no records here.

        Raises BatchError, and then it is not appended: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or a batch that
        is too large.
        """
        offset, append_time = self.log_end_offset, self.settings.log_append_time
        batch = build_marker(
            offset,
            EndTransactionMarker(marker.committed, marker.coordinator_epoch, now_ms),
            leader_epoch=self.leader_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            log_append_time=append_time,
        )
        header = read_header(batch)
        self._check_own_size(header)
        self._make_room(header, now_ms)
        if header.has_producer_id:
            self.producers.check_marker(marker)
            self._store(batch, header, now_ms, self.producers.aborted_by(marker, offset))
            self.producers.end_transaction(marker, offset, now_ms)
        else:
            self._store(batch, header, now_ms)
        self.producers.replicated(self.high_watermark)
        time_ms = now_ms if append_time else NO_TIMESTAMP
        return LogAppendInfo(offset, offset, time_ms, self.log_start_offset, duplicate=False)

    def append_as_follower(self, records: bytes, now_ms: int) -> int:
        """Append the batches that a follower fetched from the leader, unchanged; returns their number.

        An incomplete last batch is dropped. Raises BatchError if they cannot be stored. Source:
        ``UnifiedLog.appendAsFollower``.
        """
        first = self.epochs.entries[0]
        if first.epoch and self.log_end_offset <= first.start_offset:  # no record of the known epochs is left
            self.epochs = LeaderEpochCache([EpochEntry(0, self.log_end_offset)])
            self.backend.epochs_changed(self)
        count = 0
        for extent in iter_batch_extents(records):
            batch = records[extent.position : extent.position + extent.size]
            header = read_header(batch)
            self._make_room(header, now_ms)
            self._store(batch, header, now_ms, self.producers.replay(header, batch))
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, header.base_offset)
                self.backend.epochs_changed(self)
            count += 1
        self.producers.replicated(self.high_watermark)
        return count

    def become_leader(self, epoch: int) -> None:
        """Become the leader's log, in ``epoch``, which begins at the log end offset, and is stored with its first batch."""
        self.leader_epoch = epoch
        self.epochs.begin(epoch, self.log_end_offset)
        self._epoch_is_new = True

    def _check_own_size(self, header: BatchHeader) -> None:
        if header.size > self.settings.max_message_bytes:
            reason = f"{header.size} bytes in one batch, where max.message.bytes is {self.settings.max_message_bytes}"
            raise BatchError(ErrorCode.MESSAGE_TOO_LARGE, reason)
        self._check_segment_size(header)

    def _check_segment_size(self, header: BatchHeader) -> None:
        if header.size > self.settings.segment_bytes:
            raise BatchError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {header.size} bytes in append to partition {self.name}, "
                f"which exceeds the maximum configured segment size of {self.settings.segment_bytes}.",
            )

    def _store(
        self, batch: bytes | bytearray, header: BatchHeader, now_ms: int, aborted: AbortedTransaction | None = None
    ) -> None:
        if self._epoch_is_new:
            self._epoch_is_new = False
            self.backend.epochs_changed(self)
        self.backend.append(self, self.segments[-1], batch, header, now_ms, aborted)
        self.log_end_offset = header.last_offset + 1

    def _make_room(self, header: BatchHeader, now_ms: int) -> None:
        """Begin a new segment if a batch does not fit into the active one. As in ``UnifiedLog.append`` that comes before
        producers are checked: a refused batch and a duplicate can close a segment, too."""
        segment = self.segments[-1] if self.segments else self._roll(now_ms)
        if segment.size and (
            segment.size > self._segment_bytes - header.size
            or segment.age_ms(now_ms, header.max_timestamp_ms) > self.settings.segment_ms
            or segment.is_full_for(header.last_offset)
        ):
            self._roll(now_ms)

    def _roll(self, now_ms: int) -> Segment:
        segment = self.backend.new_segment(self, self.log_end_offset, now_ms)
        self.segments.append(segment)
        self._delete_by_size(
            self.settings.memory_bytes, now_ms, "in memory it holds {} bytes, unless retention.bytes is more"
        )
        return segment

    @property
    def _segment_bytes(self) -> int:
        """The size at which a segment is full: small enough that deleting one keeps the log within its memory limit."""
        memory, configured = self.settings.memory_bytes, self.settings.segment_bytes
        return configured if memory < 0 else min(configured, memory // _SEGMENTS_IN_MEMORY)

    def roll(self, now_ms: int) -> None:
        """Close the active segment, so that it can be compacted or deleted; an empty one stays active. Raises BatchError."""
        if self.segments and self.segments[-1].size:
            self._roll(now_ms)

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, at_least_one: bool, committed_only: bool = False, to_end: bool = False
    ) -> FetchDataInfo:
        """Read up to ``max_bytes`` of batches, from the one that contains ``offset``, within one segment.

        As in Kafka, the last batch may be incomplete. ``at_least_one``: the first batch is complete, whatever its size.
        ``committed_only``: reads up to the last stable offset. ``to_end``: reads up to the log end offset instead of the high
        watermark, as followers do. Raises BatchError: OFFSET_OUT_OF_RANGE, or UNKNOWN_SERVER_ERROR for a negative
        ``max_bytes``.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise BatchError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only have log segments in "
                f"the range {self.log_start_offset} to {self.log_end_offset}.",
            )
        end = self.last_stable_position if committed_only else self.high_watermark_position
        if to_end:
            end = self.end_position
        if offset >= end.offset:
            position = end if offset == end.offset else self._position_of(offset)
            return FetchDataInfo(position, None, 0, aborted=() if committed_only else None)
        place = self.segments.find(offset)
        if place is None:
            return FetchDataInfo(self.end_position, None, 0)
        segment, found = place
        if max_bytes < 0:
            raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid max size {max_bytes} for log read")
        start = LogOffsetMetadata(found.header.base_offset, segment.base_offset, found.position)
        allowed = max(max_bytes, found.header.size) if at_least_one else max_bytes
        if 0 < allowed < found.header.size:
            return FetchDataInfo(start, segment, 0)
        limit = end.byte if segment.base_offset == end.segment else segment.size
        length = min(limit - found.position, allowed)
        aborted = (
            self.segments.aborted_in(segment, offset, found.position + length, self.log_end_offset)
            if committed_only
            else None
        )
        return FetchDataInfo(start, segment, length, aborted=aborted)

    def _position_of(self, offset: int) -> LogOffsetMetadata:
        """The position of the batch that contains ``offset``, or of the log's end."""
        if (place := self.segments.find(offset)) is None:
            return self.end_position
        segment, found = place
        return LogOffsetMetadata(found.header.base_offset, segment.base_offset, found.position)

    @property
    def last_stable_position(self) -> LogOffsetMetadata:
        """The position of the last stable offset."""
        first = self.producers.first_unstable_at(self.high_watermark)
        if first is None or first >= self.high_watermark:
            return self.high_watermark_position
        return self._position_of(max(first, self.log_start_offset))

    @property
    def high_watermark_position(self) -> LogOffsetMetadata:
        """The position of the high watermark."""
        return self.end_position if self.held_back_to is None else self._position_of(self.held_back_to)

    @property
    def end_position(self) -> LogOffsetMetadata:
        """The position of the next batch."""
        if not self.segments:
            return LogOffsetMetadata(self.log_end_offset, self.log_end_offset, 0)
        return LogOffsetMetadata(self.log_end_offset, self.segments[-1].base_offset, self.segments[-1].size)

    # --- lookups by time and epoch

    def offset_for_timestamp(
        self, timestamp_ms: int, find: BatchSearch = find_first_since, *, committed_only: bool = False
    ) -> FoundOffset | None:
        """The first record whose timestamp is at least ``timestamp_ms``, or the meaning of a negative timestamp; None: no such
        record.

        ``find`` searches in a batch; its exceptions are passed on. ``committed_only``: with read_committed records from the
        last stable offset on are not found. Source: ``UnifiedLog.fetchOffsetByTimestamp``.
        """
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return FoundOffset(NO_TIMESTAMP, self.log_start_offset, self.epochs.of_offset(self.log_start_offset))
        if timestamp_ms == LATEST:
            end = self.last_stable_offset if committed_only else self.high_watermark
            return FoundOffset(NO_TIMESTAMP, end, self.leader_epoch)
        if timestamp_ms in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # there is no tiered storage
            return FoundOffset(NO_TIMESTAMP, UNDEFINED_OFFSET, UNDEFINED_EPOCH)
        if timestamp_ms == MAX_TIMESTAMP:
            newest = max(self.segments, key=attrgetter("max_timestamp_ms"), default=None)
            record = None if newest is None else newest.latest_record(find)
        else:
            since = (segment for segment in self.segments if segment.largest_timestamp_ms >= timestamp_ms)
            first = next(since, None)
            record = None if first is None else first.first_record_since(timestamp_ms, self.log_start_offset, find)
        if record is None or (committed_only and record.offset >= self.last_stable_offset):
            return None
        return FoundOffset(record.timestamp_ms, record.offset, self.epochs.of_offset(record.offset))

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above ``epoch``, or (-1, -1) if that is unknown."""
        return self.epochs.end_of(epoch, self.log_start_offset, self.log_end_offset)

    # --- truncation, compaction and retention

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Delete everything and continue at ``offset``, the leader's log start offset. Raises BatchError.

        Source: ``UnifiedLog.truncateFullyAndStartAt``.
        """
        self.segments = LogSegments(self.backend.truncated_fully(self, offset, now_ms))
        self.producers = ProducerStateManager(self.name)
        self.log_start_offset = self.log_end_offset = self.held_back_to = offset
        self.epochs = LeaderEpochCache([EpochEntry(0, offset)])
        self.cleaned_to = min(self.cleaned_to, offset)

    def fill_from(self, leader: "PartitionLog", now_ms: int) -> None:
        """Replace the contents by a copy of the log of ``leader``. Raises BatchError."""
        self.truncate_fully_and_start_at(leader.log_start_offset, now_ms)
        for segment in leader.segments:
            self.append_as_follower(segment.copy(0, segment.size), now_ms)
        self.log_end_offset = leader.log_end_offset
        self.held_back_to = leader.high_watermark

    def increment_log_start_offset(self, offset: int) -> None:
        """Raise the log start offset of a follower to the leader's, ``offset``. Raises BatchError."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.backend.start_moved(self)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove the batches from ``offset`` on, which the current leader does not have. Raises BatchError.

        Source: ``UnifiedLog.truncateTo``.
        """
        segments, self.producers = self.backend.truncated(self, offset, now_ms)
        self.segments = LogSegments(segments)
        self.log_end_offset, self.log_start_offset = offset, min(self.log_start_offset, offset)
        if self.held_back_to is not None:
            self.held_back_to = min(self.held_back_to, offset)
        self.cleaned_to = min(self.cleaned_to, offset)
        self.epochs.truncate_from(offset)
        self.backend.epochs_changed(self)

    def delete_records(self, offset: int) -> int:
        """Advance the log start offset to ``offset`` (-1: the high watermark), as DeleteRecords does; returns the new one.

        Raises BatchError: POLICY_VIOLATION for a topic that is only compacted, OFFSET_OUT_OF_RANGE, or an error of the storage.
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

    def replace_segments(self, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False) -> None:
        """Replace the segments ``old``, which are adjacent and do not include the last, by ``cleaned``. Raises BatchError.

        ``written``: the storage has already written them.
        """
        first = self.segments.index(old[0])
        self.segments[first : first + len(old)] = self.backend.replaced(self, old, cleaned, written=written)

    def topic_deleted(self) -> None:
        """The topic was deleted: delete all segments."""
        DELETED_SEGMENTS.add(self.segments)

    def apply_retention(self, now_ms: int) -> None:
        """Delete the segments before the log start offset, older than retention.ms, or beyond retention.bytes, as
        ``UnifiedLog.deleteOldSegments``."""
        self._delete_segments(self.segments.index_of(self.log_start_offset), now_ms)
        if self.settings.delete:
            self._delete_by_size(self.settings.retention_bytes, now_ms, "retention.bytes is {}")
            self._delete_by_age(now_ms)

    def _delete_by_size(self, limit: int, now_ms: int, why: str) -> None:
        if not self.settings.delete or limit < 0:
            return
        spare, count = self.size - limit, 0
        for segment in self.segments:
            if not segment.size or spare < segment.size:
                break
            spare -= segment.size
            count += 1
        self._delete_segments(count, now_ms, why.format(limit))

    def _delete_by_age(self, now_ms: int) -> None:
        if self.settings.retention_ms < 0:
            return
        count = 0
        for segment in self.segments:
            if not segment.size or now_ms - segment.largest_timestamp_ms <= self.settings.retention_ms:
                break
            count += 1
        self._delete_segments(count, now_ms, f"they are older than retention.ms, {self.settings.retention_ms} ms")

    def _delete_segments(self, count: int, now_ms: int, why: str = "") -> None:
        if count == 0:
            return
        if count == len(self.segments):
            self.segments.append(self.backend.new_segment(self, self.log_end_offset, now_ms))
        if (start := self.segments[count].base_offset) > self.log_start_offset:
            self.deletions.append((self.log_start_offset, start, why))
            self.log_start_offset = start
        doomed = self.segments[:count]
        del self.segments[:count]
        self.backend.deleted(self, doomed)
