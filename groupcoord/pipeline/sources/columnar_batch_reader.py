"""Reads many record batches at once into Arrow columns with numpy: step j reads record j of every batch.

It is the bulk counterpart of ``protocol/batches/record_batch.py``, which reads one record at a time; for logs of gigabytes. A
batch that cannot be read (wrong checksum, broken compression, a format older than Kafka 0.11, records of the wrong length) is
returned as one record without a key whose value is the batch's bytes; ``record_decoder.py`` finds the reason. Source: KIP-98,
``DefaultRecordBatch``, ``DefaultRecord``.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from groupcoord.pipeline.arrow_columns import PADDING, arrow_schema, numbers_at, padded, slices, timestamps, varints
from groupcoord.pipeline.schemas import LOG
from groupcoord.protocol.batches.compression import Compression, CompressionError, decompress
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
)

_LENGTH = struct.Struct(">i").unpack_from
_CRC = struct.Struct(">I").unpack_from
OVERHEAD = 12
"""The bytes that the field ``batchLength`` does not count: the base offset and the length itself."""
_SMALLEST = 26
"""The bytes of the smallest entry of any format: offset, size, and an empty message of magic 0."""
_SMALLEST_RECORD = 7
"""The bytes of an empty record: its length, attributes, timestamp and offset delta, and three sizes."""
CHECKED_FROM = 21
"""Where in a batch the bytes begin that its checksum covers."""


class BatchHeaders(NamedTuple):
    """The headers of batches, a numpy array for each field; ``start`` and ``end`` are positions in the bytes."""

    start: Any
    end: Any
    magic: Any
    base_offset: Any
    last_offset: Any
    attributes: Any
    base_timestamp: Any
    max_timestamp: Any
    producer_id: Any
    count: Any

    def where(self, chosen: Any) -> "BatchHeaders":
        """Only the headers that the mask ``chosen`` selects."""
        return BatchHeaders(*(column[chosen] for column in self))


def walk(data: Any, position: int = 0, limit: int | None = None) -> tuple[list[int], int]:
    """The positions of the complete batches that begin from ``position`` on and before ``limit``; and where the last of them
    ends: what follows is the end of the data, or no complete batch, or at ``limit``."""
    starts = []
    size = len(data)
    stop = size if limit is None else limit
    while position < stop and position + _SMALLEST <= size:
        length = _LENGTH(data, position + 8)[0] + OVERHEAD
        if length < _SMALLEST or position + length > size or (data[position + 16] >= MAGIC and length < HEADER_BYTES):
            break
        starts.append(position)
        position += length
    return starts, position


def headers(data: Any, starts: list[int]) -> BatchHeaders:
    """Read the headers at the positions ``starts`` of ``data``, an array of bytes.

    For batches of older formats only the first four fields are valid, and ``last_offset`` is the base offset.
    """
    start = np.array(starts, np.int64)
    base = numbers_at(data, start, ">i8").astype(np.int64)
    magic = data[start + 16]
    old = magic != MAGIC

    def field(offset: int, dtype: str, in_old: int) -> Any:
        place = np.minimum(start + offset, len(data) - np.dtype(dtype).itemsize)  # an old message may be shorter
        return np.where(old, in_old, numbers_at(data, place, dtype)).astype(np.int64)

    return BatchHeaders(
        start=start,
        end=start + OVERHEAD + numbers_at(data, start + 8, ">i4"),
        magic=magic,
        base_offset=base,
        last_offset=base + field(23, ">i4", 0),
        attributes=field(21, ">i2", 0),
        base_timestamp=field(27, ">i8", -1),
        max_timestamp=field(35, ">i8", -1),
        producer_id=field(43, ">i8", -1),
        count=field(57, ">i4", 1),
    )


def is_control(found: BatchHeaders) -> Any:
    """A mask of the control batches (transaction markers)."""
    return found.attributes & CONTROL != 0


def is_transactional(found: BatchHeaders) -> Any:
    """A mask of the data batches that belong to transactions."""
    return (found.attributes & (CONTROL | TRANSACTIONAL)) == TRANSACTIONAL


def read(data: bytes | memoryview, partition: int, found: BatchHeaders) -> Iterator[Any]:
    """Read the records of the batches ``found`` in ``data``, as record batches of LOG in the order of offsets."""
    if not len(found.start):
        return
    content, position, end, broken = _unpacked(data, found)
    intact = found.where(~broken)
    columns = _records(content, position[~broken], end[~broken], intact)
    if columns is None:  # the records of some batch are malformed: find it by bisection
        if len(intact.start) == 1:
            broken = np.ones(len(found.start), bool)
        else:
            half = len(found.start) // 2 or 1
            chosen = np.arange(len(found.start)) < half
            yield from read(data, partition, found.where(chosen))
            yield from read(data, partition, found.where(~chosen))
            return
    elif len(intact.start):
        yield _batch(partition, *columns)
    if broken.any():
        yield _unreadable(data, partition, found.where(broken))


def _unpacked(data: bytes | memoryview, found: BatchHeaders) -> tuple[Any, Any, Any, Any]:
    """Append the decompressed records to the bytes. Returns these, where each batch's records begin and end, and which are
    broken."""
    parts = [np.frombuffer(data, np.uint8)]
    size = len(data)
    begin, end = found.start + HEADER_BYTES, found.end.copy()
    broken = found.magic != MAGIC
    compression = found.attributes & COMPRESSION_MASK
    with memoryview(data) as view:
        for number, (start, stop) in enumerate(zip(found.start.tolist(), found.end.tolist(), strict=True)):
            if broken[number]:
                continue
            if crc32c(view[start + CHECKED_FROM : stop]) != _CRC(view, start + 17)[0] or found.count[number] < 0:
                broken[number] = True
            elif compression[number]:
                try:
                    plain = decompress(Compression(int(compression[number])), view[start + HEADER_BYTES : stop])
                except (CompressionError, ValueError):
                    broken[number] = True
                    continue
                parts.append(np.frombuffer(plain, np.uint8))
                begin[number], size = size, size + len(plain)
                end[number] = size
    return padded(np.concatenate(parts)), begin, end, broken


def _records(content: Any, position: Any, end: Any, found: BatchHeaders) -> tuple[Any, Any, Any, Any] | None:
    """The offsets, times, keys and values of all records; None if some record is malformed."""
    if (found.count * _SMALLEST_RECORD > end - position).any():
        return None
    first = np.concatenate([[0], np.cumsum(found.count)])
    table = np.zeros((6, int(first[-1])), np.int64)
    live = np.nonzero(found.count > 0)[0]
    position = position[live]
    appended = found.attributes & LOG_APPEND_TIME != 0
    last = len(content) - PADDING
    record = 0
    while len(live):
        row = first[live] + record
        size, position = _sized(content, position)
        after = position + size
        if (size < 0).any() or (after > end[live]).any():
            return None
        delta, position = varints(content, position + 1)
        offset_delta, position = varints(content, np.minimum(position, last))
        key_size, key_at = _sized(content, np.minimum(position, last))
        value_size, value_at = _sized(content, np.minimum(key_at + np.maximum(key_size, 0), last))
        if (value_at + np.maximum(value_size, 0) > after).any() or (key_at + np.maximum(key_size, 0) >= after).any():
            return None
        table[:, row] = (
            found.base_offset[live] + offset_delta,
            np.where(appended[live], found.max_timestamp[live], found.base_timestamp[live] + delta),
            key_at,
            key_size,
            value_at,
            value_size,
        )
        record += 1
        more = found.count[live] > record
        live, position = live[more], after[more]
    return table[0], table[1], slices(content, table[2], table[3]), slices(content, table[4], table[5])


def _sized(content: Any, position: Any) -> tuple[Any, Any]:
    """Read sizes (varints), clipped so that adding one to a position cannot overflow; and where they end."""
    sizes, position = varints(content, position)
    return np.clip(sizes, -1, len(content)), position


def _unreadable(data: bytes | memoryview, partition: int, found: BatchHeaders) -> Any:
    ends = zip(found.start.tolist(), found.end.tolist(), strict=True)
    values = pa.array([bytes(data[start:end]) for start, end in ends], pa.binary())
    return _batch(partition, found.base_offset, found.max_timestamp, pa.nulls(len(values), pa.binary()), values)


def _batch(partition: int, offsets: Any, times: Any, keys: Any, values: Any) -> Any:
    columns = [
        pa.array(np.full(len(offsets), partition, np.int32)),
        pa.array(offsets, pa.int64()),
        keys,
        values,
        timestamps(times, times == -1),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(LOG.columns))
