"""A fast reader and writer of offset commits in their usual form (Kafka since 2.1); ``group_records`` reads all other forms.

Nearly all records of ``__consumer_offsets`` are non-transactional commits, in small batches, of known groups and topics.
``scan_offset_commits`` reads such batches in one loop and passes on each commit without creating a record; ``CommitReader``
reads their values at a tenth of the cost of ``group_records.read_value``, with the same result.
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from groupcoord.protocol.batches.key_value_reader import (
    HEAD_BYTES,
    PARTITION_BYTES,
    OffsetKeyValue,
    commit_template_of,
    read_record,
)
from groupcoord.protocol.batches.record_batch import (
    COMPRESSION_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL,
    BatchError,
)
from groupcoord.protocol.batches.records import InvalidRecordsError
from groupcoord.protocol.coordinator_records.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    read_value,
    write_key,
)
from groupcoord.protocol.errors import ErrorCode

T = TypeVar("T", bound=tuple[Any, ...])

_COMMIT, _GROUP = b"\x00\x01", b"\x00\x02"
_VERSION_3, _VERSION_4 = b"\x00\x03", b"\x00\x04"
# A version 4 value with a topic id and no metadata: version, offset, leader epoch, metadata length + 1; time, tags, id.
_USUAL = struct.Struct(">hqiBq3s16s")
_USUAL_BYTES = _USUAL.size
_ONE_TAG = b"\x01\x00\x10"  # one tagged field: count, tag, size
# The parts before and after the metadata and its length.
_HEAD = struct.Struct(">2xqi")
_TIME = struct.Struct(">q")
_TIME_AND_ID = struct.Struct(">q3x16s")
# The parts of _USUAL to check: version, metadata length + 1, tags.
_look = struct.Struct(">H12xB8x3s16x").unpack
_USUAL_LOOK = (4, 1, _ONE_TAG)
_WITHOUT_ID_BYTES = 24  # of version 3, and of version 4 without an id, if there are no metadata
_CACHED_CHARACTERS = 249  # the length of the longest topic name; longer names could fill the memory and are not cached
_ANY_KEY = OffsetCommitKey(group="", topic="", partition=0)
_new = tuple.__new__  # avoids the slower constructor of NamedTuple


def group_of(key: bytes) -> str | None:
    """The group of a GroupMetadata ``key``; None unless the bytes are exactly those that Kafka writes."""
    if key[:2] != _GROUP or 4 + int.from_bytes(key[2:4]) != len(key):
        return None
    try:
        return key[4:].decode()
    except UnicodeDecodeError:
        return None


def group_and_topic(key: bytes) -> tuple[str, str] | None:
    """(group, topic) of a commit's ``key`` without its partition; None unless the bytes are exactly those that Kafka writes."""
    group_end = 4 + int.from_bytes(key[2:4])
    if key[:2] != _COMMIT or group_end + 2 + int.from_bytes(key[group_end : group_end + 2]) != len(key):
        return None
    try:
        return key[4:group_end].decode(), key[group_end + 2 :].decode()
    except UnicodeDecodeError:
        return None


def is_plain_commit(value: bytes) -> bool:
    """Is this a commit without metadata in the common form, which can be read later without an error?

    False: not known.
    """
    size = len(value)
    if size == _USUAL_BYTES:
        return _look(value) == _USUAL_LOOK
    if size != _WITHOUT_ID_BYTES:
        return False
    if value[:2] == _VERSION_3:
        return value[14:16] == b"\0\0"
    return value[:2] == _VERSION_4 and value[14] == 1 and value[-1] == 0


def plain_commit(offset: int, leader_epoch: int, at_ms: int, topic_id: uuid.UUID) -> bytes:
    """The value of a commit without metadata at ``at_ms``, as of ``group_records.write_value``, at a tenth of the cost."""
    return _USUAL.pack(4, offset, leader_epoch, 1, at_ms, _ONE_TAG, topic_id.bytes)


def plain_key(group: str, topic: str) -> bytes:
    """The key of a commit without its partition, equal to that of ``group_records.write_key``. Raises StringTooLongError."""
    return _cached_key(group, topic) if len(group) <= _CACHED_CHARACTERS >= len(topic) else _key(group, topic)


def _key(group: str, topic: str) -> bytes:
    return write_key(OffsetCommitKey(group=group, topic=topic, partition=0))[:-PARTITION_BYTES]


_cached_key = lru_cache(maxsize=4096)(_key)


class CommitReader(Generic[T]):
    """Reads commit values into a NamedTuple class ``made``. Equal topic ids share one object.

    The fields are offset, leader epoch, metadata, commit time (ms), expire time (ms) or None, topic id or None. See
    OffsetCommitValue.
    """

    def __init__(self, made: type[T]) -> None:
        self._made = made
        self._ids: dict[bytes, uuid.UUID | None] = {bytes(16): None}

    def read(self, value: bytes) -> T:
        """The commit in ``value``. Raises WireError."""
        if len(value) == _USUAL_BYTES:
            version, offset, leader_epoch, size, at_ms, tags, id_bytes = _USUAL.unpack(value)
            if version == 4 and size == 1 and tags == _ONE_TAG:
                ids = self._ids
                topic_id = ids[id_bytes] if id_bytes in ids else self._id(id_bytes)
                return _new(self._made, (offset, leader_epoch, "", at_ms, None, topic_id))
        return _new(self._made, self._with_metadata(value) or _of_any_form(value))

    def _with_metadata(self, value: bytes) -> tuple[object, ...] | None:
        """Versions 3 and 4; None if the metadata length takes more than a byte, or unknown fields follow."""
        version = value[:2]
        if version == _VERSION_4 and len(value) > _HEAD.size and 0 < value[_HEAD.size] < 128:
            start = _HEAD.size + 1
            end = start + value[_HEAD.size] - 1
            no_tag = b"\0"
        elif version == _VERSION_3:
            start = _HEAD.size + 2
            end = start + int.from_bytes(value[_HEAD.size : start])
            no_tag = b""
        else:
            return None
        rest = value[end:]
        topic_id = None
        if no_tag and len(rest) == _TIME_AND_ID.size and rest[_TIME.size : _TIME.size + 3] == _ONE_TAG:
            at_ms, id_bytes = _TIME_AND_ID.unpack(rest)
            topic_id = self._ids[id_bytes] if id_bytes in self._ids else self._id(id_bytes)
        elif len(rest) >= _TIME.size and rest[_TIME.size :] == no_tag:
            (at_ms,) = _TIME.unpack_from(rest)
        else:
            return None
        offset, leader_epoch = _HEAD.unpack_from(value)
        return offset, leader_epoch, str(value[start:end], "utf-8", "replace"), at_ms, None, topic_id

    def _id(self, data: bytes) -> uuid.UUID:
        found = self._ids[data] = uuid.UUID(bytes=data)
        return found


def _of_any_form(value: bytes) -> tuple[object, ...]:
    read = read_value(_ANY_KEY, value)
    if not isinstance(read, OffsetCommitValue):
        raise AssertionError(f"{read!r} is not an offset")
    expires_ms = None if read.expire_timestamp_ms == -1 else read.expire_timestamp_ms
    return read.offset, read.leader_epoch, read.metadata, read.commit_timestamp_ms, expires_ms, read.topic_id


CommitSink = Callable[[int, bytes], None]
"""Called with the partition and the value of a plain commit (see ``is_plain_commit``)."""

RecordSink = Callable[[int, bytes | None, bytes | None], bool]
"""Called with the offset, key and value of any other record; returns False to stop the scan."""

_UP_TO_LENGTH = 12
_LEAST_LENGTH = HEADER_BYTES - _UP_TO_LENGTH
_UNUSUAL = COMPRESSION_MASK | TRANSACTIONAL | CONTROL
# Base offset, length; magic; attributes, last offset delta; record count. See BatchHeader.
_HEADER = struct.Struct(">qi4xb4xhi30xi").unpack_from
_partition = struct.Struct(">i")


class ScanResult(NamedTuple):
    """The scan ended at ``position``, after the batch with ``last_offset`` (-1: none), and has read ``records``."""

    position: int
    last_offset: int
    records: int


def scan_offset_commits(
    data: bytes, position: int, places: Mapping[bytes, CommitSink], other: RecordSink
) -> ScanResult:
    """Read from ``position`` up to the first batch that is compressed, transactional, incomplete or malformed.

    ``places`` maps keys without partition to sinks: a plain commit with such a key goes to its sink, and every other record to
    ``other``, which may change ``places``. Raises InvalidRecordsError.
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
    """Pass the record to its sink in ``places`` if it is such a plain commit; returns whether it was."""
    _, key, value = record
    put = places.get(key[:-PARTITION_BYTES]) if key else None
    if key is None or put is None or value is None or not is_plain_commit(value):
        return False
    put(_partition.unpack_from(key, -PARTITION_BYTES)[0], value)
    return True


def batch_size(data: bytes, position: int) -> int:
    """The size of the batch at ``position``; 0 if it is incomplete. Raises BatchError for a malformed header."""
    if len(data) - position < HEADER_BYTES:
        return 0
    base_offset, length, magic, *_ = _HEADER(data, position)
    if length < _LEAST_LENGTH or magic != MAGIC:
        reason = f"what begins with offset {base_offset}, length {length} and magic {magic} is not a batch"
        raise BatchError(ErrorCode.CORRUPT_MESSAGE, reason)
    size = _UP_TO_LENGTH + length
    return 0 if size > len(data) - position else size
