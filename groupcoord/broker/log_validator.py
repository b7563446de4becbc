"""Validates a produced batch, and sets the header fields that the broker sets: offset, leader epoch, timestamps.

Only the header is changed. But if the topic's ``compression.type`` differs from the batch's, the batch is recompressed. Source:
``UnifiedLog.analyzeAndValidateRecords`` and ``LogValidator``.
"""

from typing import NamedTuple

from groupcoord.broker.producer_state_manager import NO_EPOCH
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchError,
    BatchExtent,
    BatchHeader,
    attributes_of,
    checksum_matches,
    compression_of,
    iter_batch_extents,
    read_header,
    rebuild_batch,
    stamp_offsets,
    stamp_time,
    validate_batch_records,
)
from groupcoord.protocol.batches.records import Buffer, Record, RecordsSummary, read_records
from groupcoord.protocol.errors import ErrorCode

ZSTD_FROM = 7
"""The first version of Produce that allows Zstandard."""

RECORD_ERRORS = 10_000
"""The maximum number of records of a batch that a response lists as rejected."""

_INT64_MAX = (1 << 63) - 1
_TARGETS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class RejectedRecord(NamedTuple):
    """A rejected record, by its index in the batch, and the reason."""

    batch_index: int
    message: str


class RecordValidationError(BatchError):
    """Records of the batch were rejected; the response lists them (KIP-467)."""

    def __init__(self, error: ErrorCode, reason: str, record_errors: tuple[RejectedRecord, ...]) -> None:
        super().__init__(error, reason)
        self.record_errors = record_errors


class CheckedBatch(NamedTuple):
    """A valid batch, not yet at an offset: ``data`` is as produced or built anew, ``header`` its header.

    ``attributes`` and ``max_timestamp_ms`` are to be set in the header; None for the latter is the time of the append.
    """

    data: bytes
    header: BatchHeader
    attributes: int
    max_timestamp_ms: int | None

    @property
    def log_append_time(self) -> bool:
        """Do the records get the time of the append (LogAppendTime)?"""
        return self.max_timestamp_ms is None

    def placed(self, offset: int, leader_epoch: int, now_ms: int) -> "StampedBatch":
        """The batch at ``offset``, with its final header."""
        stamped = bytearray(self.data)
        stamp_offsets(stamped, offset, leader_epoch)
        latest = now_ms if self.max_timestamp_ms is None else self.max_timestamp_ms
        if self.log_append_time != self.header.log_append_time or latest != self.header.max_timestamp_ms:
            stamp_time(stamped, self.attributes, latest)
        return StampedBatch(stamped, read_header(stamped))


class StampedBatch(NamedTuple):
    """A batch at its offset, as it is stored; ``header`` describes ``data``."""

    data: bytearray
    header: BatchHeader


def check_format(records: bytes, version: int) -> BatchExtent:
    """The one batch in ``records``: a Produce of ``version`` may carry exactly one, of magic 2. Raises BatchError; with
    UNKNOWN_SERVER_ERROR for an unknown compression type, which is looked at in old versions only.

    Source: ``ProduceRequest.validateRecords``.
    """
    batches = iter_batch_extents(records)
    first = next(batches, None)
    if first is None:
        raise BatchError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch per partition",
        )
    if first.magic != MAGIC:
        raise BatchError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2",
        )
    if version < ZSTD_FROM and compression_of(attributes_of(records, first)) == Compression.ZSTD:
        raise BatchError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if next(batches, None) is not None:
        raise BatchError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain exactly one record batch per partition",
        )
    return first


class LogValidator:
    """Validates the batches of one log. ``partition`` is its name, ``topic-0``, for messages."""

    __slots__ = ("partition", "settings")

    def __init__(self, settings: LogConfig, partition: str) -> None:
        self.settings = settings
        self.partition = partition

    def check(self, records: bytes, now_ms: int) -> CheckedBatch:
        """Validate the first batch in ``records``, independent of its offset. Raises BatchError.

        What follows it is an incomplete batch, and is dropped, as in Kafka.
        """
        size = next(iter_batch_extents(records)).size
        batch = records if size == len(records) else records[:size]
        header = read_header(batch if size >= HEADER_BYTES else batch.ljust(HEADER_BYTES, b"\0"))
        self._check_whole(batch, header)
        self._check_header(header)
        return self._check_records(batch, header, now_ms)

    def _check_whole(self, batch: bytes, header: BatchHeader) -> None:
        if header.base_offset != 0:
            raise BatchError(
                ErrorCode.INVALID_RECORD,
                f"The baseOffset of the record batch in the append to {self.partition} should be 0, "
                f"but it is {header.base_offset}",
            )
        limit = self.settings.max_message_bytes
        if header.size > limit:
            raise BatchError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {self.partition} is {header.size} bytes "
                f"which exceeds the maximum configured value of {limit}",
            )
        if header.size < HEADER_BYTES or not checksum_matches(batch, header):
            raise BatchError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record is corrupt (stored crc = {header.crc}) in topic partition {self.partition}.",
            )
        _ = header.compression  # raises BatchError for an unknown one

    def _check_header(self, header: BatchHeader) -> None:
        """The checks of ``LogValidator.validateBatch`` for a client's batch."""
        if header.last_offset_delta < 0:
            problem = f"Batch has an invalid offset range: [0, {header.last_offset_delta}]"
        elif header.record_count <= 0:
            problem = f"Invalid reported count for record batch: {header.record_count}"
        elif header.record_count != header.last_offset_delta + 1:
            offsets = f"[0, {header.last_offset_delta}]"
            problem = f"Inconsistent batch offset range {offsets} and count of records {header.record_count}"
        elif header.control:
            problem = "Clients are not allowed to write control records"
        elif header.has_producer_id and header.base_sequence < 0:
            problem = (
                f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
            )
        else:
            return
        raise BatchError(ErrorCode.INVALID_RECORD, f"{problem} in topic partition {self.partition}")

    def _check_records(self, batch: bytes, header: BatchHeader, now_ms: int) -> CheckedBatch:
        settings = self.settings
        source = header.compression
        target = _TARGETS.get(settings.compression_type, source)
        # In a compressed batch that stays as it is, Kafka parses the parts of each record but does not compare them with the
        # record's size, and so stores records that cannot be read.
        sized = source == Compression.NONE or target != source
        found, data, position = validate_batch_records(batch, header, sized=sized)
        lowest, highest = _timestamps(header, found)
        if (settings.compact and not found.every_key) or self._suspicious(header, lowest, highest, now_ms):
            self._refuse_wrong_records(data, position, header, now_ms)
        if target != source:
            return self._rebuild(data, position, header, target, now_ms)
        if source != Compression.NONE and not found.consecutive:
            # Kafka tries to rebuild the batch, and throws because it has not parsed keys and values.
            raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"compressed records with gaps in {self.partition}")
        latest = None if settings.log_append_time else max(NO_TIMESTAMP, min(highest, _INT64_MAX))
        return CheckedBatch(batch, header, self._attributes(header, source), latest)

    def _suspicious(self, header: BatchHeader, lowest: int, highest: int, now_ms: int) -> bool:
        """Could a timestamp be out of range? Looks at the lowest and the highest only, so that valid batches are parsed
        once."""
        if header.log_append_time and (self.settings.log_append_time or header.max_timestamp_ms == NO_TIMESTAMP):
            return True
        return not self.settings.log_append_time and (
            now_ms - lowest > self.settings.message_timestamp_before_max_ms
            or highest - now_ms > self.settings.message_timestamp_after_max_ms
        )

    def _refuse_wrong_records(self, data: Buffer, position: int, header: BatchHeader, now_ms: int) -> None:
        """Raise RecordValidationError if a record is invalid."""
        errors: list[RejectedRecord] = []
        time_is_wrong = False
        records = read_records(
            data,
            position,
            header.record_count,
            base_offset=0,
            base_timestamp_ms=header.base_timestamp_ms,
            sized=False,  # the size was checked before, where it matters
        )
        message = "Compacted topic cannot accept message without key in topic partition " + self.partition
        for index, record in enumerate(records):
            if len(errors) >= RECORD_ERRORS:
                # Kafka lists every one; see the deviation unpacked-size-limit.
                break
            if self.settings.compact and record.key is None:
                errors.append(RejectedRecord(index, message))
            elif (problem := self._time_problem(header, record, now_ms)) is not None:
                errors.append(RejectedRecord(index, problem))
                time_is_wrong = True
        if time_is_wrong:
            raise RecordValidationError(
                ErrorCode.INVALID_TIMESTAMP,
                "One or more records have been rejected due to invalid timestamp",
                tuple(errors),
            )
        if errors:
            shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
            raise RecordValidationError(
                ErrorCode.INVALID_RECORD,
                f"One or more records have been rejected due to {len(errors)} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]",
                tuple(errors),
            )

    def _time_problem(self, header: BatchHeader, record: Record, now_ms: int) -> str | None:
        settings = self.settings
        timestamp = header.max_timestamp_ms if header.log_append_time else record.timestamp_ms
        if not settings.log_append_time and timestamp != NO_TIMESTAMP:
            before, after = settings.message_timestamp_before_max_ms, settings.message_timestamp_after_max_ms
            if now_ms - timestamp <= before and timestamp - now_ms <= after:
                return None
            return (
                f"Timestamp {timestamp} of message with offset {record.offset} is out of range. The timestamp should be "
                f"within [{_as_int64(now_ms - before)}, {_as_int64(now_ms + after)}]"
            )
        if header.log_append_time:
            shown = (
                f"DefaultRecord(offset={record.offset}, timestamp={timestamp}, key={len(record.key or b'')} bytes, "
                f"value={len(record.value or b'')} bytes)"
            )
            return (
                f"Invalid timestamp type in message {shown}. Producer should not set timestamp type to LogAppendTime."
            )
        return None

    def _attributes(self, header: BatchHeader, compression: Compression) -> int:
        """The attributes of ``header`` with the topic's timestamp type, without undefined bits."""
        kept = header.attributes & (TRANSACTIONAL | CONTROL | DELETE_HORIZON)
        return kept | compression | (LOG_APPEND_TIME if self.settings.log_append_time else 0)

    def _rebuild(
        self, data: Buffer, position: int, header: BatchHeader, target: Compression, now_ms: int
    ) -> CheckedBatch:
        """The records in a new batch with another compression, and offsets without gaps."""
        if header.producer_epoch == NO_EPOCH if header.has_producer_id else header.transactional:
            # Kafka's MemoryRecordsBuilder throws; a batch that stays as it is passes.
            raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch without producer in {self.partition}")
        settings = self.settings
        levels = {
            Compression.GZIP: settings.compression_gzip_level,
            Compression.LZ4: settings.compression_lz4_level,
            Compression.ZSTD: settings.compression_zstd_level,
        }
        level = levels.get(target)
        built = rebuild_batch(
            data,
            position,
            header,
            attributes=self._attributes(header, target) & ~(COMPRESSION_MASK | CONTROL | DELETE_HORIZON) | target,
            level=None if level == -1 else level,
            append_time_ms=now_ms if settings.log_append_time else None,
        )
        if len(built) > settings.max_message_bytes:
            raise BatchError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"Message batch size is {len(built)} bytes in append to partition {self.partition} "
                f"which exceeds the maximum configured size of {settings.max_message_bytes}.",
            )
        made = read_header(built)
        return CheckedBatch(built, made, made.attributes, None if settings.log_append_time else made.max_timestamp_ms)


def _timestamps(header: BatchHeader, found: RecordsSummary) -> tuple[int, int]:
    """The lowest and the highest timestamp of the records."""
    if header.log_append_time:
        return header.max_timestamp_ms, header.max_timestamp_ms
    return header.base_timestamp_ms + found.lowest_delta, header.base_timestamp_ms + found.highest_delta


def _as_int64(number: int) -> int:
    """``number`` as a Java long, which overflows."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
