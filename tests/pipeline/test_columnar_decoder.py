"""The fast decoder of commits says what the plain one says, and leaves to it what it does not take."""

import uuid
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.columnar_decoder import SPLIT, decode_keys, decode_values, split_batches
from groupcoord.pipeline.record_decoder import decode_record
from groupcoord.pipeline.schemas import COMMITS, LOG
from groupcoord.protocol.coordinator_records.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.builds(
    OffsetCommitKey,
    group=st.text(max_size=20),
    topic=st.text(max_size=20),
    partition=st.integers(-(1 << 31), (1 << 31) - 1),
)
VALUES = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=st.integers(-1, 1 << 20),
    metadata=st.text(max_size=30) | st.integers(0, 5000).map(lambda size: "x" * size),
    commit_timestamp_ms=INT64,
    expire_timestamp_ms=INT64,
    topic_id=st.none() | st.uuids(),
)
RECORDS = st.tuples(
    KEYS.map(write_key) | st.binary(max_size=40) | st.none(),
    st.tuples(VALUES, st.integers(0, 4)).map(lambda said: write_value(*said)) | st.binary(max_size=60) | st.none(),
)


def batch_of(records: Sequence[tuple[bytes | None, bytes | None]]) -> Any:
    rows = [
        {"log_partition": 3, "log_offset": offset, "key": key, "value": value, "append_ts": None}
        for offset, (key, value) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(LOG.columns))


def unpacked(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def fast(records: Sequence[tuple[bytes | None, bytes | None]]) -> list[dict[str, Any]]:
    found = list(split_batches(iter([batch_of(records)])))
    assert all(batch.schema == arrow_schema(SPLIT.columns) for batch in found)
    return sorted((row for batch in found for row in batch.to_pylist()), key=lambda row: row["log_offset"])


@pytest.mark.slow
@given(st.lists(RECORDS, min_size=1, max_size=8))
def test_it_says_what_the_plain_decoder_says(records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    schema = arrow_schema(COMMITS.columns[3:])
    for row, (key, value) in zip(fast(records), records, strict=True):
        table, plain = decode_record(key, value)
        if row["is_commit"]:
            assert table == "commits"
            [expected] = pa.RecordBatch.from_pylist([plain], schema=schema).to_pylist()
            assert {name: row[name] for name in expected} == expected
        else:
            assert (unpacked(row["topic"]), unpacked(row["metadata"])) == (key, value)


@pytest.mark.slow
@given(st.lists(st.tuples(KEYS, st.none() | st.tuples(VALUES, st.integers(0, 4))), min_size=1, max_size=8))
def test_it_takes_every_commit_that_kafka_writes(said: list[tuple[Any, Any]]) -> None:
    records = [(write_key(key), value and write_value(*value)) for key, value in said]
    assert all(row["is_commit"] for row in fast(records))


@pytest.mark.parametrize("version", range(5))
def test_bytes_left_over_or_missing_are_not_guessed_at(version: int) -> None:
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp_ms=1, topic_id=uuid.UUID(int=1))
    whole = write_value(value, version)
    cut = [whole[:size] for size in range(len(whole))]
    assert decode_values(pa.array([whole, whole + b"\0", *cut])).fine.tolist() == [True, False, *([False] * len(cut))]


def test_keys_of_other_records_are_not_taken() -> None:
    commit = write_key(OffsetCommitKey(group="g", topic="t", partition=1))
    other = write_key(GroupMetadataKey(group="g"))
    keys = decode_keys(pa.array([commit, other, None, b"", commit + b"\0", b"\0\1\0\1\xff\0\1t\0\0\0\1"], pa.binary()))
    assert keys.fine.tolist() == [True, False, False, False, False, False]
    assert keys.group[0].as_py() == "g"


def test_slices_of_larger_arrays_are_decoded_as_they_are() -> None:
    keys = pa.array(
        [write_key(OffsetCommitKey(group=f"g{number}", topic="t", partition=number)) for number in range(9)]
    )
    assert decode_keys(keys.slice(4, 3)).group.to_pylist() == ["g4", "g5", "g6"]
    values = [
        write_value(OffsetCommitValue(offset=number, metadata="", commit_timestamp_ms=0), 3) for number in range(9)
    ]
    assert decode_values(pa.array(values).slice(5)).columns[0].to_pylist() == [5, 6, 7, 8]
