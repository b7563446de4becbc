"""Records of a log look alike, and those that do can be taken apart in one go.

The few bytes before its key say how long a record and its key are, and where it is in its batch. If it has a key and no
headers, the length of its value follows from these, too. What such bytes mean is worked out once: the next record that begins
like that is one dictionary and one ``struct`` away, instead of five numbers of variable length.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from groupcoord.protocol.batches.records import InvalidRecordsError, read_varint, read_varlong, varint

HEAD_BYTES = 9
"""So many bytes from the beginning of a record on tell its template: as a rule, all that is before the key."""

PARTITION_BYTES = 4
"""The key of a commit ends with its partition; what lies before it is the same for all partitions of a topic in a group."""

RecordTemplate = tuple[Callable[[bytes, int], tuple[Any, ...]], int, int, bytes]
"""Of all records that begin alike:

- what takes key, length of the value, and value out of the bytes from a position on; the value of a tombstone has no bytes,
- the bytes of the record, its own length included,
- its offset, less that of the batch,
- the length of the value, in the bytes in which it has to be there; else the record is of another template.

It has no names because that is quicker to unpack.
"""


@lru_cache(maxsize=16_384)
def template_of(head: bytes) -> RecordTemplate | None:
    """The template of the record that begins with ``head``; None: that does not tell, or there is no key."""
    return _template(head, 0)


@lru_cache(maxsize=16_384)
def commit_template_of(head: bytes) -> RecordTemplate | None:
    """The same, where the key comes in two: the last four bytes are an int32, a partition if the key is that of a commit."""
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
    # An empty value would be as long as none; it is left to others.
    expected = _NULL if rest == 1 else _length_with(rest)
    if expected is None:
        return None
    value_bytes = rest - len(expected)
    key = f"{key_bytes - PARTITION_BYTES}si" if partition_bytes else f"{key_bytes}s"
    take = struct.Struct(f">{position}x{key}{len(expected)}s{value_bytes}s").unpack_from
    return take, size, offset_delta, expected


def _length_with(size: int) -> bytes | None:
    """The length that takes ``size`` bytes together with what it is the length of; for some sizes there is none."""
    for width in range(1, min(size, _LONGEST) + 1):
        length = varint(size - width)
        if len(length) == width:
            return length
    return None


_NULL = varint(-1)
_LONGEST = 5  # bytes of an int32
