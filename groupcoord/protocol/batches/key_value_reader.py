"""A fast reader of the offsets, keys and values of a batch, without timestamps and headers, for logs of millions of records.

The first bytes of most records (lengths and deltas, before the key) equal those of an earlier record. The few bytes before the
key determine the length of the record and of its key, and its index in the batch. For a record with a key and without headers,
they also determine the length of the value. So the layout of a record (its template) is computed once for each beginning; the
next record that begins alike is read with one dictionary lookup and one call of ``struct``, instead of five varints. Other
records are read field by field.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    BatchHeader,
    decompressed_records,
    read_header,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, read_varint, read_varlong, varint

HEAD_BYTES = 9
"""The bytes at the beginning of a record that determine its template: usually all before the key."""

PARTITION_BYTES = 4
"""The key of a commit ends with its partition; the bytes before are the same for all partitions of a topic in a group."""

RecordTemplate = tuple[Callable[[bytes, int], tuple[Any, ...]], int, int, bytes]
"""For all records with the same beginning:

- a function that unpacks key, encoded length of the value, and value from a position; the value of a tombstone is empty,
- the size of the record, its length field included,
- its offset delta in the batch,
- the encoded length that the value must have; otherwise the record has another template.

A plain tuple, because it is faster to unpack.
"""


@lru_cache(maxsize=16_384)
def template_of(head: bytes) -> RecordTemplate | None:
    """The template of records that begin with ``head``; None if ``head`` does not determine it, or there is no key."""
    return _template(head, 0)


@lru_cache(maxsize=16_384)
def commit_template_of(head: bytes) -> RecordTemplate | None:
    """As ``template_of``, but the last four bytes of the key are unpacked separately as an int32: the partition of a commit."""
    return _template(head, PARTITION_BYTES)


def _template(head: bytes, partition_bytes: int) -> RecordTemplate | None:
    try:
        length, start = read_varint(head, 0)
        _, position = read_varlong(head, start + 1)  # behind the attributes: the timestamp
        offset_delta, position = read_varint(head, position)
        key_bytes, position = read_varint(head, position)
    except (IndexError, InvalidRecordsError):
        return None
    size = start + length
    rest = size - position - key_bytes - 1  # the last byte says that there are no headers
    if key_bytes < partition_bytes or rest < 1:
        return None
    layout = _layout(position, key_bytes, partition_bytes, rest)
    return None if layout is None else (layout[0], size, offset_delta, layout[1])


@lru_cache(maxsize=1_024)
def _layout(
    position: int, key_bytes: int, partition_bytes: int, rest: int
) -> tuple[Callable[[bytes, int], tuple[Any, ...]], bytes] | None:
    """The function that unpacks a record whose key is at ``position``, and the encoded length of its value; ``rest`` includes
    it.

    Templates share it, because beginnings also differ in timestamps and offsets and are far more than there are layouts.
    """
    # An empty value would take as many bytes as none: ``read_record`` tells them apart.
    expected = _NULL if rest == 1 else _length_with(rest)
    if expected is None:
        return None
    key = f"{key_bytes - PARTITION_BYTES}si" if partition_bytes else f"{key_bytes}s"
    return struct.Struct(f">{position}x{key}{len(expected)}s{rest - len(expected)}s").unpack_from, expected


def _length_with(size: int) -> bytes | None:
    """The encoded length of a value that takes ``size`` bytes together with its length; None for an impossible size."""
    for width in range(1, min(size, _LONGEST) + 1):
        length = varint(size - width)
        if len(length) == width:
            return length
    return None


_NULL = varint(-1)
_LONGEST = 5  # bytes of an int32


OffsetKeyValue = tuple[int, bytes | None, bytes | None]


class BatchKeyValues(NamedTuple):
    """Records as (offset, key, value). ``producer_id`` is -1 for non-transactional records.

    ``last_offset`` is the batch's: compaction may have removed the record with it. A ``control`` batch is a transaction marker.
    """

    last_offset: int
    producer_id: int
    control: bool
    records: list[OffsetKeyValue]


def read_key_values(data: bytes, start: int = 0) -> BatchKeyValues:
    """The records of the complete batch at ``start`` of ``data``.

    Raises BatchError if it cannot be unpacked, InvalidRecordsError for malformed records.
    """
    header = read_header(data, start)
    position, end = start + HEADER_BYTES, start + header.size
    if header.attributes & COMPRESSION_MASK:
        found, position = decompressed_records(data[start:end], header)
        data, end = bytes(found), len(found)
    base_offset = header.base_offset
    records: list[OffsetKeyValue] = []
    try:
        for _ in range(header.record_count):
            template = template_of(data[position : position + HEAD_BYTES])
            if template is not None and position + template[1] <= end:
                take, size, offset_delta, expected = template
                key, said, value = take(data, position)
                if said == expected:
                    records.append((base_offset + offset_delta, key, value or None))
                    position += size
                    continue
            record, position = read_record(data, position, end, base_offset)
            records.append(record)
    except (IndexError, struct.error):
        raise InvalidRecordsError("the records reach beyond the batch") from None
    in_transaction = header.control or header.transactional
    return BatchKeyValues(header.last_offset, header.producer_id if in_transaction else -1, header.control, records)


def read_record(data: bytes, position: int, end: int, base_offset: int) -> tuple[OffsetKeyValue, int]:
    """(the record at ``position``, its end), for a batch that ends at ``end``, without a template.

    Raises InvalidRecordsError, and IndexError if ``data`` ends before the batch.
    """
    size, position = read_varint(data, position)
    stop = position + size
    _, position = read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key_length, position = read_varint(data, position)
    key = None if key_length < 0 else data[position : position + key_length]
    position += max(key_length, 0)
    value_length, position = read_varint(data, position)
    value = None if value_length < 0 else data[position : position + value_length]
    position += max(value_length, 0)
    if position > stop or stop > end:
        raise InvalidRecordsError(f"record {offset_delta} has a size that does not fit the batch")
    return (base_offset + offset_delta, key, value), stop


def collect_key_offsets(header: BatchHeader, data: bytes, start: int, found: dict[bytes, int]) -> bool:
    """Put the offset of each key of the complete batch at ``start`` into ``found``; the last record of a key counts.

    Returns whether all records have a key and a value, and consecutive offsets, as a producer writes them. Raises BatchError if
    it cannot be unpacked, InvalidRecordsError for malformed records.
    """
    base_offset, count = header.base_offset, header.record_count
    position, end = start + HEADER_BYTES, start + header.size
    if header.attributes & COMPRESSION_MASK:
        unpacked_data, position = decompressed_records(data[start:end], header)
        data, end = bytes(unpacked_data), len(unpacked_data)
    usual = True
    try:
        for offset in range(base_offset, base_offset + count):
            template = template_of(data[position : position + HEAD_BYTES])
            if template is not None and position + template[1] <= end:
                take, size, offset_delta, expected = template
                key, said, value = take(data, position)
                if said == expected and value and offset_delta == offset - base_offset:
                    found[key] = offset
                    position += size
                    continue
            (at, any_key, any_value), position = read_record(data, position, end, base_offset)
            if any_key is not None:
                found[any_key] = at
            if any_key is None or any_value is None or at != offset:
                usual = False
    except (IndexError, struct.error):
        raise InvalidRecordsError("the records reach beyond the batch") from None
    return usual
