"""The keys and values of batches, and nothing else of them, as fast as can be: for who reads a log of millions of records.

The same bytes as in records.py; timestamps and headers are stepped over. A record of a template that was met before is taken
apart in one go (see record_template_cache.py), any other one number by number.
"""

import struct
from typing import NamedTuple

from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    BatchHeader,
    read_header,
    unpacked,
)
from groupcoord.protocol.batches.record_template_cache import HEAD_BYTES, template_of
from groupcoord.protocol.batches.records import InvalidRecordsError, read_varint, read_varlong

OffsetKeyValue = tuple[int, bytes | None, bytes | None]


class BatchKeyValues(NamedTuple):
    """Records as (offset, key, value). ``producer_id`` is -1 for records that are not of a transaction.

    ``last_offset`` is the batch's: compaction may have taken the record that had it. A ``control`` batch is a marker.
    """

    last_offset: int
    producer_id: int
    control: bool
    records: list[OffsetKeyValue]


def read_key_values(data: bytes, start: int = 0) -> BatchKeyValues:
    """What the whole batch at ``start`` of ``data`` holds.

    Raises BatchError for what cannot be unpacked, InvalidRecordsError for what are no records.
    """
    header = read_header(data, start)
    position, end = start + HEADER_BYTES, start + header.size
    if header.attributes & COMPRESSION_MASK:
        found, position = unpacked(data[start:end], header)
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
    """The record of any template at ``position`` of a batch that ends at ``end``; and where it ends.

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
    """Enter the offset of each key of the whole batch at ``start`` in ``found``; of several of one key, that of the last.

    True if all records have a key and a value, and offsets one after the other from the first on, as a producer writes them.
    Raises BatchError for what cannot be unpacked, InvalidRecordsError for what are no records.
    """
    base_offset, count = header.base_offset, header.record_count
    position, end = start + HEADER_BYTES, start + header.size
    if header.attributes & COMPRESSION_MASK:
        unpacked_data, position = unpacked(data[start:end], header)
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
