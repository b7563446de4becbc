"""A batch made from another one: with another compression, or with the records that compaction keeps.

A compacted batch keeps its first and last offset and its sequence numbers, so that a producer's last batch is still known by
them; a batch with tombstones gets a delete horizon (KIP-534). Sources:
``MemoryRecords.filterTo``, ``DefaultRecordBatch.writeEmptyHeader``.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from groupcoord.protocol.batches.compression import Compression, compress
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    frame_batch,
    records_of,
)
from groupcoord.protocol.batches.records import Buffer, Record, read_records, read_varint, read_varlong, write_records
from groupcoord.protocol.errors import ErrorCode


def rebuild_batch(
    data: Buffer,
    position: int,
    header: BatchHeader,
    *,
    attributes: int,
    level: int | None,
    append_time_ms: int | None,
) -> bytes:
    """A batch at offset 0 of the records in ``data`` from ``position`` on, with offsets one after the other.

    ``attributes`` say the compression, ``append_time_ms`` the largest timestamp unless it is to be the records'. Only one
    record is held at a time. Raises BatchError for one with a negative timestamp, InvalidRecordsError.
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
    """The time from which on the tombstones of the batch may be removed, or None if it is not set yet."""
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
