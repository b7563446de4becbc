"""Record batches of magic 2 (``DefaultRecordBatch``): headers, records, building, and rewriting for compaction and compression.

A batch is a header of 61 bytes and its records, compressed or not. Base offset and leader epoch are not covered by the
checksum, so that a broker can set them without touching anything else. A batch can be rewritten with another compression, or
with only the records that compaction keeps: it then keeps its first and last offset and its sequence numbers, so that it still
identifies a producer's last batch, and gets a delete horizon for its tombstones (KIP-534).
Sources: KIP-98, ``DefaultRecordBatch`` with its ``writeEmptyHeader``, ``MemoryRecords.filterTo``.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple, TypeVar

from groupcoord.protocol.batches.compression import (
    Compression,
    CompressionError,
    compress,
    decompress,
    max_unpacked_bytes,
)
from groupcoord.protocol.batches.records import (
    Buffer,
    InvalidRecordsError,
    Record,
    RecordFields,
    RecordsSummary,
    encode_plain_record,
    make_record,
    read_fields,
    read_records,
    read_varint,
    read_varlong,
    validate_records,
    write_records,
)
from groupcoord.protocol.errors import ErrorCode

E = TypeVar("E", bound=Exception)

MAGIC = 2
HEADER_BYTES = 61
UP_TO_PRODUCER_ID_BYTES = 51
UP_TO_SEQUENCE_BYTES = 57
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
INT32_MAX = (1 << 31) - 1

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

ABORT_MARKER, COMMIT_MARKER = 0, 1
"""The types of control records that end a transaction (``ControlRecordType``)."""
_NO_MARKER = -1
_MARKER_VERSION = 0
_MARKER_KEY = struct.Struct(">hh")  # version, type
_MARKER_VALUE = struct.Struct(">hi")  # version, epoch of the coordinator

_OVERHEAD_BYTES = 12  # base offset and length, which the length does not include
_UP_TO_MAGIC_BYTES = 17
_SMALLEST_LENGTH = 14  # of a message of magic 0, the smallest of all formats
_SMALLEST_RECORD = 7
_RECORD_IN_BYTES = 1000
ATTRIBUTES_BYTE = 22
"""The position of the attributes' byte with the compression type."""
_CRC_POSITION = 17
_ATTRIBUTES_POSITION = 21
_MAX_TIMESTAMP_POSITION = 35
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEHIND_CRC = struct.Struct(">hiqqqhii")
_INT64, _INT32, _UINT32, _INT16 = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I"), struct.Struct(">h")


class BatchError(Exception):
    """An invalid batch, or an append that is refused; ``error`` is the code for the client."""

    def __init__(self, error: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


def drop_traceback(problem: E) -> E:
    """``problem`` without its traceback and causes: the frames there keep the unpacked data alive."""
    problem.__traceback__ = problem.__cause__ = problem.__context__ = None
    return problem


class BatchHeader(NamedTuple):
    """The fields of a batch header; times are milliseconds."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the complete batch, with this header."""
        return _OVERHEAD_BYTES + self.length

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> Compression:
        """The compression type. Raises BatchError for an unknown one."""
        return compression_of(self.attributes)

    @property
    def log_append_time(self) -> bool:
        """Do all records have the time of the append, the batch's largest timestamp, as their timestamp?"""
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def transactional(self) -> bool:
        """Are the records part of a transaction?"""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def control(self) -> bool:
        """Is this a control batch, such as a transaction marker?"""
        return self.attributes & CONTROL != 0

    @property
    def has_producer_id(self) -> bool:
        """Does it come from an idempotent producer?"""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, modulo 2³¹; -1 without a producer's sequence."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_to_sequence(self.base_sequence, self.last_offset_delta)


def add_to_sequence(sequence: int, increment: int) -> int:
    """``sequence`` plus ``increment``, which may be negative; 0 follows the largest int32."""
    return (sequence + increment) & INT32_MAX


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch at ``position``. Raises BatchError if there are too few bytes."""
    try:
        return BatchHeader._make(_HEADER.unpack_from(data, position))
    except struct.error:
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, f"a record batch has at least {HEADER_BYTES} bytes") from None


class BatchExtent(NamedTuple):
    """The position and size of a batch in bytes, and its magic."""

    position: int
    size: int
    magic: int


def marker_type(key: bytes | memoryview | None) -> int:
    """The type in the ``key`` of a control record; -1 if it has none."""
    return _INT16.unpack_from(key, 2)[0] if key is not None and len(key) >= 4 else _NO_MARKER


class EndTransactionMarker(NamedTuple):
    """The contents of a transaction marker."""

    committed: bool
    coordinator_epoch: int
    timestamp_ms: int


def read_marker(batch: Buffer, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in the complete control ``batch``; None if compaction has emptied it, or for another type of control record.

    Raises BatchError, InvalidRecordsError. Source: ``EndTransactionMarker.deserialize``.
    """
    record = next(records_of(batch, header), None)
    if record is None or record.value is None or len(record.value) < _MARKER_VALUE.size:
        return None
    kind = marker_type(record.key)
    if kind not in (ABORT_MARKER, COMMIT_MARKER):
        return None
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return EndTransactionMarker(kind == COMMIT_MARKER, coordinator_epoch, record.timestamp_ms)


def build_marker(
    offset: int,
    end: EndTransactionMarker,
    *,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    log_append_time: bool = False,
) -> bytes:
    """The control batch of a transaction marker at ``offset``. Source: ``MemoryRecords.withEndTransactionMarker``.

    ``log_append_time``: the topic uses LogAppendTime, and so does the marker.
    """
    key = _MARKER_KEY.pack(_MARKER_VERSION, COMMIT_MARKER if end.committed else ABORT_MARKER)
    value = _MARKER_VALUE.pack(_MARKER_VERSION, end.coordinator_epoch)
    return build_batch(
        [Record(offset, end.timestamp_ms, key, value)],
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL | (LOG_APPEND_TIME if log_append_time else 0),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def iter_batch_extents(data: Buffer) -> Iterator[BatchExtent]:
    """The batches in ``data``, of any format, in order; an incomplete last one is omitted.

    Raises BatchError(CORRUPT_MESSAGE) for an invalid length or magic. Source: ``ByteBufferLogInputStream``.
    """
    position = 0
    while (left := len(data) - position) >= _OVERHEAD_BYTES:
        (length,) = _INT32.unpack_from(data, position + 8)
        if length < _SMALLEST_LENGTH:
            reason = f"Record size {length} is less than the minimum record overhead ({_SMALLEST_LENGTH})"
            raise BatchError(ErrorCode.CORRUPT_MESSAGE, reason)
        if left < _UP_TO_MAGIC_BYTES:
            return
        magic = data[position + 16]
        if magic > MAGIC:
            reason = f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}"
            raise BatchError(ErrorCode.CORRUPT_MESSAGE, reason)
        if left < _OVERHEAD_BYTES + length:
            return
        yield BatchExtent(position, _OVERHEAD_BYTES + length, magic)
        position += _OVERHEAD_BYTES + length


def iter_batches(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    """The batches in ``data`` that ``iter_batch_extents`` finds, which have to be of magic 2, each with its header."""
    for position, size, _ in iter_batch_extents(data):
        yield read_header(data, position), data[position : position + size]


def attributes_of(data: Buffer, batch: BatchExtent) -> int:
    """The attributes of ``batch`` of magic 2, which every batch is long enough to have."""
    attributes: int = _INT16.unpack_from(data, batch.position + _ATTRIBUTES_POSITION)[0]
    return attributes


def compression_of(attributes: int) -> Compression:
    """The compression type in the attributes of a batch. Raises BatchError for an unknown one."""
    number = attributes & COMPRESSION_MASK
    try:
        return Compression(number)
    except ValueError:
        raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown compression type id: {number}") from None


@cache
def _crc32c() -> Callable[..., int]:
    """The function, imported with the first batch, because the import is slow: the package searches all metadata for its
    version."""
    from crc32c import crc32c  # noqa: PLC0415 - see above

    function: Callable[..., int] = crc32c
    return function


def checksum_matches(batch: Buffer, header: BatchHeader) -> bool:
    """Does the checksum in ``header`` match ``batch``, which is exactly one complete batch?"""
    with memoryview(batch) as view:
        return _crc32c()(view[_ATTRIBUTES_POSITION:]) == header.crc


def validate_batch_records(
    batch: Buffer, header: BatchHeader, *, sized: bool = True
) -> tuple[RecordsSummary, Buffer, int]:
    """Validate the records of a complete ``batch``; returns (summary, the unpacked bytes, the position of the records in them).

    Unless ``sized``, the size of each record is not checked.

    Raises BatchError: INVALID_RECORD for malformed records, UNKNOWN_SERVER_ERROR for an unknown compression type.
    """
    data, position = decompressed_records(batch, header)
    try:
        return validate_records(data, position, header.record_count, sized=sized), data, position
    except InvalidRecordsError as problem:
        raise BatchError(ErrorCode.INVALID_RECORD, str(problem)) from problem


def records_of(batch: Buffer, header: BatchHeader | None = None) -> Iterator[Record]:
    """The records of a complete ``batch``, with the timestamps that consumers see. Raises BatchError, InvalidRecordsError."""
    return map(make_record, fields_of(batch, read_header(batch) if header is None else header))


def fields_of(batch: Buffer, header: BatchHeader) -> Iterator[RecordFields]:
    """``records_of`` as plain tuples."""
    data, position = decompressed_records(batch, header)
    records = read_fields(data, position, header.record_count, header.base_offset, header.base_timestamp_ms)
    if not header.log_append_time:
        return records
    appended_ms = header.max_timestamp_ms
    return ((offset, appended_ms, key, value, headers) for offset, _, key, value, headers in records)


def records_in(data: Buffer) -> Iterator[Record]:
    """The records of all complete batches in ``data``, such as a fetch response has; control records are omitted."""
    with memoryview(data) as view:
        for position, size, _ in iter_batch_extents(data):
            header = read_header(view, position)
            if not header.control:
                yield from records_of(view[position : position + size], header)


def decompressed_records(batch: Buffer, header: BatchHeader) -> tuple[Buffer, int]:
    """The bytes that contain the records of ``batch``, and their position in it. Raises BatchError."""
    compression = header.compression
    if compression == Compression.NONE:
        return batch, HEADER_BYTES
    try:
        with memoryview(batch) as view:
            return decompress(compression, view[HEADER_BYTES:]), 0
    except CompressionError as problem:
        raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)) from problem


def validation_cost(batch: Buffer, header: BatchHeader) -> int:
    """The maximum cost of ``validate_batch_records`` for the complete ``batch``, in bytes to unpack.

    A record counts as a thousand bytes. Raises BatchError for an unknown compression type.
    """
    with memoryview(batch) as view:
        size = max_unpacked_bytes(header.compression, view[HEADER_BYTES:])
    return size + _RECORD_IN_BYTES * min(max(header.record_count, 0), size // _SMALLEST_RECORD)


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    leader_epoch: int = -1,
    attributes: int = 0,
    level: int | None = None,
    max_timestamp_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """One batch of ``records``, at least one, ordered by offset.

    ``base_offset`` is by default the first record's, ``max_timestamp_ms`` the largest of theirs. ``attributes`` have the
    compression, at ``level`` (None: the codec's default).
    """
    first = records[0]
    base = first.offset if base_offset is None else base_offset
    body = compress(
        Compression(attributes & COMPRESSION_MASK),
        write_records(records, base_offset=base, base_timestamp_ms=first.timestamp_ms),
        level,
    )
    latest = max(record.timestamp_ms for record in records) if max_timestamp_ms is None else max_timestamp_ms
    header = BatchHeader(
        base_offset=base,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=records[-1].offset - base,
        base_timestamp_ms=first.timestamp_ms,
        max_timestamp_ms=latest,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return frame_batch(header, body)


def build_own_batch(
    records: Iterable[tuple[bytes, bytes | None]],
    offset: int,
    now_ms: int,
    *,
    leader_epoch: int,
    attributes: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> tuple[bytes, BatchHeader]:
    """A batch of the broker's own records (keys and values), with the timestamp ``now_ms``, uncompressed; and its header."""
    encoded = [encode_plain_record(index, key, value) for index, (key, value) in enumerate(records)]
    body, count = b"".join(encoded), len(encoded)
    behind_crc = (attributes, count - 1, now_ms, now_ms, producer_id, producer_epoch, base_sequence, count)
    crc32c = _crc32c()
    crc = crc32c(body, crc32c(_BEHIND_CRC.pack(*behind_crc)))
    length = HEADER_BYTES - _OVERHEAD_BYTES + len(body)
    header = BatchHeader._make((offset, length, leader_epoch, MAGIC, crc, *behind_crc))
    return _HEADER.pack(*header) + body, header


def frame_batch(header: BatchHeader, body: bytes) -> bytes:
    """``header`` with the length and checksum for ``body``, then ``body``, which is compressed as the header says."""
    crc32c = _crc32c()
    crc = crc32c(body, crc32c(_BEHIND_CRC.pack(*header[5:])))
    length = HEADER_BYTES - _OVERHEAD_BYTES + len(body)
    return _HEADER.pack(header.base_offset, length, header.leader_epoch, header.magic, crc, *header[5:]) + body


def stamp_offsets(batch: bytearray, base_offset: int, leader_epoch: int) -> None:
    """Set the base offset and leader epoch of a produced ``batch``; the checksum does not cover them."""
    _INT64.pack_into(batch, 0, base_offset)
    _INT32.pack_into(batch, 12, leader_epoch)


def stamp_time(batch: bytearray, attributes: int, max_timestamp_ms: int) -> None:
    """Set the attributes and the largest timestamp of ``batch``, and recompute the checksum."""
    _INT16.pack_into(batch, _ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(batch, _MAX_TIMESTAMP_POSITION, max_timestamp_ms)
    with memoryview(batch) as view:
        _UINT32.pack_into(batch, _CRC_POSITION, _crc32c()(view[_ATTRIBUTES_POSITION:]))


def rebuild_batch(
    data: Buffer,
    position: int,
    header: BatchHeader,
    *,
    attributes: int,
    level: int | None,
    append_time_ms: int | None,
) -> bytes:
    """A batch at offset 0 of the records in ``data`` from ``position`` on, with consecutive offsets.

    ``attributes`` have the compression; ``append_time_ms`` is the largest timestamp, by default that of the records. Records
    are processed one at a time. Raises BatchError for a negative timestamp, InvalidRecordsError.
    """
    latest = NO_TIMESTAMP

    def stamped() -> Iterator[Record]:
        nonlocal latest
        read = read_records(
            data, position, header.record_count, base_offset=0, base_timestamp_ms=header.base_timestamp_ms
        )
        for index, record in enumerate(read):
            timestamp_ms = header.max_timestamp_ms if header.log_append_time else record.timestamp_ms
            if timestamp_ms < NO_TIMESTAMP:
                reason = "a negative timestamp in a batch that is built anew"
                raise BatchError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
            latest = max(latest, timestamp_ms)
            yield record._replace(offset=index, timestamp_ms=timestamp_ms)

    records = stamped()
    first = next(records)
    written = write_records(chain((first,), records), base_offset=0, base_timestamp_ms=first.timestamp_ms)
    changed = header._replace(
        base_offset=0,
        attributes=attributes,
        last_offset_delta=header.record_count - 1,
        base_timestamp_ms=first.timestamp_ms,
        max_timestamp_ms=latest if append_time_ms is None else append_time_ms,
    )
    return frame_batch(changed, compress(Compression(attributes & COMPRESSION_MASK), written, level))


def delete_horizon_ms(header: BatchHeader) -> int | None:
    """The time from which the tombstones of the batch may be removed, or None if it is not set."""
    return header.base_timestamp_ms if header.attributes & DELETE_HORIZON else None


def keep_records(header: BatchHeader, records: Sequence[Record], horizon_ms: int | None) -> bytes:
    """The batch with only ``records``, at least one of its own. ``horizon_ms`` is its new delete horizon."""
    base_timestamp_ms = records[0].timestamp_ms if horizon_ms is None else horizon_ms
    attributes = header.attributes & ~DELETE_HORIZON | (0 if horizon_ms is None else DELETE_HORIZON)
    latest = header.max_timestamp_ms
    if not header.attributes & LOG_APPEND_TIME:
        latest = max(record.timestamp_ms for record in records)
    body = compress(
        Compression(attributes & COMPRESSION_MASK),
        write_records(records, base_offset=header.base_offset, base_timestamp_ms=base_timestamp_ms),
        None,
    )
    changed = header._replace(
        attributes=attributes,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=latest,
        record_count=len(records),
    )
    return frame_batch(changed, body)


def filter_batch(header: BatchHeader, batch: bytes, kept: Sequence[int], horizon_ms: int | None) -> bytes:
    """The ``batch`` with only some of its records: ``kept`` has their indexes in order, at least one.

    As ``keep_records``; where the base timestamp stays, the bytes of the records are copied.
    Raises BatchError, InvalidRecordsError.
    """
    if not header.attributes & (COMPRESSION_MASK | LOG_APPEND_TIME) and horizon_ms == delete_horizon_ms(header):
        parts, deltas = _cut(batch, kept)
        if horizon_ms is not None or deltas[0] == 0:
            latest = header.base_timestamp_ms + max(deltas)
            return frame_batch(header._replace(max_timestamp_ms=latest, record_count=len(kept)), b"".join(parts))
    records = list(records_of(batch, header))
    return keep_records(header, [records[index] for index in kept], horizon_ms)


def _cut(batch: bytes, kept: Sequence[int]) -> tuple[list[bytes], list[int]]:
    """The bytes of the records ``kept``, and their timestamp deltas."""
    parts: list[bytes] = []
    deltas: list[int] = []
    position, index = HEADER_BYTES, 0
    for wanted in kept:
        while True:
            start, number = position, batch[position]
            if number < 128:
                after = position + 1
                position = after + (number >> 1)
            elif (second := batch[position + 1]) < 128:
                after = position + 2
                position = after + (number + (second - 1 << 7) >> 1)
            else:
                length, after = read_varint(batch, position)
                position = after + length
            index += 1
            if index > wanted:
                break
        parts.append(batch[start:position])
        delta = batch[after + 1]  # behind the attributes
        deltas.append(read_varlong(batch, after + 1)[0] if delta > 127 else (delta >> 1) ^ -(delta & 1))
    return parts, deltas


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without records: a header with the offsets and sequence numbers that it had."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    empty = header._replace(attributes=attributes, base_timestamp_ms=NO_TIMESTAMP, record_count=0)
    return frame_batch(empty, b"")
