"""Batches of ``__consumer_offsets`` side by side, by the million: each commit goes where it belongs without becoming a record.

Nearly all of that log are commits outside of transactions, in small batches, of groups and topics that were met before. These
are taken from the bytes and put into place in one loop. Whatever is not like that comes out as a record, in its turn.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from groupcoord.protocol.batches.key_value_reader import OffsetKeyValue, read_record
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL,
    BatchError,
)
from groupcoord.protocol.batches.record_template_cache import HEAD_BYTES, PARTITION_BYTES, commit_template_of
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records.commit_reader import is_plain_commit
from groupcoord.protocol.errors import ErrorCode

CommitSink = Callable[[int, bytes], None]
"""Takes the partition and the value of a commit, one that ``is_plain_commit``."""

RecordSink = Callable[[int, bytes | None, bytes | None], bool]
"""Takes the offset, key and value of any other record. False: that is enough, nothing more is to be read."""

_UP_TO_LENGTH = 12
_LEAST_LENGTH = HEADER_BYTES - _UP_TO_LENGTH
_UNUSUAL = COMPRESSION_MASK | TRANSACTIONAL | CONTROL
# Base offset, length; magic; attributes, last offset delta; record count. See BatchHeader.
_HEADER = struct.Struct(">qi4xb4xhi30xi").unpack_from
_partition = struct.Struct(">i")


class ScanResult(NamedTuple):
    """What was read: to that ``position`` in the bytes, to ``last_offset`` (-1: nothing), and so many records."""

    position: int
    last_offset: int
    records: int


def scan_offset_commits(
    data: bytes, position: int, places: Mapping[bytes, CommitSink], other: RecordSink
) -> ScanResult:
    """Read from ``position`` on, up to the first batch that is compressed, of a transaction, incomplete, or no batch.

    A commit whose key, less its partition, is among ``places``, is put there; ``other`` may change these. It is put nowhere
    else, so that without places every record goes to ``other``. Raises InvalidRecordsError.
    """
    place_of = places.get
    available = len(data)
    end, left, records, last_offset = position, 0, 0, -1
    base_offset = last_delta = -1
    try:
        while True:
            if left <= 0:
                position = end
                if base_offset >= 0:
                    last_offset = base_offset + last_delta
                if available - position < HEADER_BYTES:
                    break
                base_offset, length, magic, attributes, last_delta, left = _HEADER(data, position)
                end = position + _UP_TO_LENGTH + length
                if end > available or attributes & _UNUSUAL or magic != MAGIC or length < _LEAST_LENGTH or left < 0:
                    left = 0
                    break
                position += HEADER_BYTES
                records += left
                continue
            left -= 1
            template = commit_template_of(data[position : position + HEAD_BYTES])
            if template is not None and position + template[1] <= end:
                take, size, offset_delta, expected = template
                prefix, partition, said, value = take(data, position)
                if said == expected:
                    position += size
                    put = place_of(prefix)
                    if put is not None and is_plain_commit(value):
                        put(partition, value)
                        continue
                    if other(base_offset + offset_delta, prefix + _partition.pack(partition), value or None):
                        continue
                    break
            record, position = read_record(data, position, end, base_offset)
            if not _put(record, places) and not other(*record):
                break
    except IndexError:
        raise InvalidRecordsError("the records reach beyond the batch") from None
    return ScanResult(position, last_offset, records - left)


def _put(record: OffsetKeyValue, places: Mapping[bytes, CommitSink]) -> bool:
    """Is the record a commit that could be put in one of ``places``?"""
    _, key, value = record
    put = places.get(key[:-PARTITION_BYTES]) if key else None
    if key is None or put is None or value is None or not is_plain_commit(value):
        return False
    put(_partition.unpack_from(key, -PARTITION_BYTES)[0], value)
    return True


def batch_size(data: bytes, position: int) -> int:
    """The size of the batch at ``position``; 0 if it is incomplete. Raises BatchError for what is no batch."""
    if len(data) - position < HEADER_BYTES:
        return 0
    base_offset, length, magic, *_ = _HEADER(data, position)
    if length < _LEAST_LENGTH or magic != MAGIC:
        reason = f"what begins with offset {base_offset}, length {length} and magic {magic} is no batch"
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, reason)
    size = _UP_TO_LENGTH + length
    return 0 if size > len(data) - position else size
