"""Commits, many at a time: record types 0 and 1 with values of versions 0 to 4, which are nearly all of any log.

Every step is for a whole batch of records. A record that is not exactly as Kafka writes it (a length that does not fit, bytes
left over, an unknown version or tag, a name that is not UTF-8) is not guessed at here: it goes on as it is, to
``record_decoder.py``, which finds the reason. Sources: ``OffsetCommitKey.json``, ``OffsetCommitValue.json``.
"""

import uuid
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupcoord.pipeline.arrow import at, buffer_of, slices, strings, timestamps
from groupcoord.protocol.coordinator_records.generic import id_text

SMALLEST_KEY = 10
"""Type, two empty names, partition."""
_TOPIC_ID_BYTES = 16
_ONE_TAG_TOPIC_ID = 0x010010
"""One tagged field, its number 0, its size 16."""


class CommitKeys(NamedTuple):
    """What the keys say; rows that are no keys of commits have ``fine`` false, and anything else in the other columns."""

    fine: Any
    group: Any
    topic: Any
    partition: Any


class CommitValues(NamedTuple):
    """What the values say; rows that are no values of commits have ``fine`` false. A tombstone is fine and has nulls."""

    fine: Any
    columns: list[Any]


def decode_keys(column: Any) -> CommitKeys:
    """The keys of commits in ``column``. Keys repeat thousands of times: each is looked at once."""
    encoded = pc.dictionary_encode(column)
    distinct, rows = encoded.dictionary, encoded.indices
    if len(distinct) == 0:
        empty = pa.nulls(len(column), pa.string())
        return CommitKeys(np.zeros(len(column), bool), empty, empty, pa.nulls(len(column), pa.int32()))
    offsets, data = buffer_of(distinct)
    start, end = offsets[:-1], offsets[1:]
    size = end - start
    kind = at(data, start, ">i2")
    fine = (size >= SMALLEST_KEY) & ((kind == 0) | (kind == 1))
    group_size = at(data, start + 2, ">i2").astype(np.int64)
    fine &= (group_size >= 0) & (group_size <= size - SMALLEST_KEY)
    group_size = np.where(fine, group_size, 0)
    topic_size = at(data, start + 4 + group_size, ">i2").astype(np.int64)
    fine &= topic_size == size - SMALLEST_KEY - group_size
    topic_size = np.where(fine, topic_size, 0)
    group, group_is_text = strings(slices(data, start + 4, group_size))
    topic, topic_is_text = strings(slices(data, start + 6 + group_size, topic_size))
    fine &= group_is_text & topic_is_text
    partition = pa.array(at(data, np.where(fine, end - 4, 0), ">i4").astype(np.int32))
    numbers = np.asarray(rows.fill_null(0))
    return CommitKeys(
        fine[numbers] & np.asarray(rows.is_valid()), group.take(rows), topic.take(rows), partition.take(rows)
    )


def decode_values(column: Any) -> CommitValues:
    """The values of commits in ``column``, as the columns of ``commits`` from ``committed_offset`` on."""
    null = np.asarray(column.is_null())
    offsets, data = buffer_of(column)
    size = offsets[1:] - offsets[:-1]
    start = np.where(null, len(data) - 32, offsets[:-1])  # a tombstone reads the zeros behind the end
    end = np.where(null, start, offsets[1:])
    version = np.where(null, 0, at(data, start, ">i2")).astype(np.int16)
    fine = null | ((size >= 2) & (version >= 0) & (version <= 4))
    version = np.where(fine, version, 0)

    after_offset = start + 10
    has_epoch, compact = version >= 3, version >= 4
    fine &= null | (start + np.where(has_epoch, 14, 10) <= end)
    epoch = np.where(has_epoch, at(data, np.where(fine, after_offset, 0), ">i4"), -1)
    text_at, text_size, found = _text(data, after_offset + 4 * has_epoch, compact, fine)
    fine &= null | (found & (text_size >= 0) & (text_at + text_size <= end))
    text_size = np.where(fine, text_size, 0)

    behind = np.where(fine, text_at + text_size, 0)
    commit_ms = at(data, np.where(fine & (behind + 8 <= end), behind, 0), ">i8")
    expires = version == 1
    tail = behind + 8 + np.where(expires, 8, 0)  # where the value ends, or its tagged fields begin
    expire_ms = np.where(expires, at(data, np.where(fine & expires & (tail <= end), behind + 8, 0), ">i8"), -1)
    tag_at = np.where(fine & compact & (tail + 1 <= end), tail, 0)
    has_id = compact & (tail + 3 + _TOPIC_ID_BYTES == end) & (at(data, tag_at, ">u4") >> 8 == _ONE_TAG_TOPIC_ID)
    untagged = compact & (tail + 1 == end) & (data[tag_at] == 0)
    fine &= null | np.where(compact, has_id | untagged, tail == end)

    metadata, is_text = strings(
        slices(data, np.where(fine, text_at, 0), np.where(null, -1, np.where(fine, text_size, 0)))
    )
    fine &= is_text
    ids = slices(data, np.where(fine & has_id, tail + 3, 0), np.where(fine & has_id & ~null, _TOPIC_ID_BYTES, -1))
    return CommitValues(
        fine,
        [
            pa.array(at(data, np.where(fine, start + 2, 0), ">i8").astype(np.int64), mask=null),
            pa.array(epoch.astype(np.int32), mask=null),
            metadata,
            timestamps(commit_ms, null | (commit_ms == -1)),
            timestamps(expire_ms, null | (expire_ms == -1)),
            _id_texts(ids),
            pa.array(version, pa.int16(), mask=null),
            pa.array(null),
        ],
    )


def _text(data: Any, position: Any, compact: Any, fine: Any) -> tuple[Any, Any, Any]:
    """Where the metadata begins, how long it is, and whether that could be read.

    Its length is an int16, or from version 4 on a varint that is one more, of at most three bytes: Kafka keeps metadata below
    ``offset.metadata.max.bytes``, and no string is longer than an int16 says.
    """
    position = np.where(fine, position, 0)
    first, second, third = (data[position + step].astype(np.int64) for step in range(3))
    two, three = compact & (first > 127), compact & (first > 127) & (second > 127)
    varint = (first & 127) | np.where(two, (second & 127) << 7, 0) | np.where(three, (third & 127) << 14, 0)
    size = np.where(compact, varint - 1, at(data, position, ">i2").astype(np.int64))
    width = np.where(compact, 1 + two + three, 2)
    return position + width, size, fine & ~(three & (third > 127))


def _id_texts(ids: Any) -> Any:
    """Topic ids as Kafka writes them; there are few different ones. The id of zeros is none."""
    encoded = pc.dictionary_encode(ids)
    texts = [id_text(uuid.UUID(bytes=value)) if any(value) else None for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
