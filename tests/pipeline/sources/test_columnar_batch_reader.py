"""Many record batches at once are read as one by one."""

from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.pipeline.record_decoder import decode_record
from groupcoord.pipeline.sources.columnar_batch_reader import headers, read, walk
from groupcoord.protocol.batches.record_batch import LOG_APPEND_TIME, build_batch, records_of
from groupcoord.protocol.batches.records import Header, Record

CONTENT = st.none() | st.binary(max_size=30) | st.integers(0, 300).map(bytes)
HEADERS = st.lists(st.builds(Header, key=st.text(max_size=3), value=st.none() | st.binary(max_size=3)), max_size=2)


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Batches of any compression, one after the other, some offsets missing as after compaction."""
    batches, offset = [], draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(1, 6))):
        records = []
        for _ in range(draw(st.integers(1, 5))):
            offset += draw(st.integers(1, 3))
            timestamp = draw(st.integers(0, 1 << 42))
            records.append(Record(offset, timestamp, draw(CONTENT), draw(CONTENT), tuple(draw(HEADERS))))
        attributes = draw(st.integers(0, 4)) | draw(st.sampled_from([0, LOG_APPEND_TIME]))
        batches.append(build_batch(records, attributes=attributes))
    return batches


def rows_of(data: bytes) -> list[dict[str, Any]]:
    starts, _ = walk(data)
    found = headers(np.frombuffer(data, np.uint8), starts)
    return [row for batch in read(data, 5, found) for row in batch.to_pylist()]


@pytest.mark.slow
@given(logs())
def test_every_record_is_there_as_a_consumer_sees_it(batches: list[bytes]) -> None:
    expected = [record for batch in batches for record in records_of(batch)]
    found = rows_of(b"".join(batches))
    assert [(row["log_partition"], row["log_offset"], row["key"], row["value"]) for row in found] == [
        (5, record.offset, record.key, record.value) for record in expected
    ]
    assert [round(row["append_ts"].timestamp() * 1000) for row in found] == [record.timestamp_ms for record in expected]


@pytest.mark.slow
@given(logs(), st.integers(1, 80))
def test_a_torn_tail_ends_the_walk_at_the_last_whole_batch(batches: list[bytes], missing: int) -> None:
    data = b"".join(batches)
    torn = data[: -min(missing, len(batches[-1]))]
    assert walk(torn)[1] == len(data) - len(batches[-1])
    assert walk(torn + bytes(500))[1] >= len(data) - len(batches[-1])


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_that_is_damaged_comes_as_one_record_with_its_bytes(compression: int) -> None:
    good = build_batch([Record(1, 1000, b"k", b"v")], attributes=compression)
    bad = bytearray(
        build_batch([Record(2, 1000, b"k", b"v" * 50), Record(3, 1000, b"k", b"v")], attributes=compression)
    )
    bad[-1] ^= 1
    rows = rows_of(good + bytes(bad) + good)
    assert [row["value"] for row in rows] == [b"v", b"v", bytes(bad)]
    table, row = decode_record(None, bytes(bad))
    assert (table, row["reason"]) == ("bad_records", "a record batch whose checksum does not fit")


@pytest.mark.slow
@given(logs(), st.data())
def test_hostile_bytes_never_stop_it(batches: list[bytes], data: st.DataObject) -> None:
    victim = bytearray(batches[0])
    for _ in range(data.draw(st.integers(1, 4))):
        victim[data.draw(st.integers(21, len(victim) - 1))] = data.draw(st.integers(0, 255))
    victim[17:21] = crc32c(victim[21:]).to_bytes(4, "big")
    log = bytes(victim) + b"".join(batches[1:])
    survivors = [record.offset for batch in batches[1:] for record in records_of(batch)]
    assert set(survivors) <= {row["log_offset"] for row in rows_of(log)}


def test_batches_of_older_formats_are_named() -> None:
    old = (0).to_bytes(8, "big") + (22).to_bytes(4, "big") + bytes(4) + b"\1" + bytes(17)
    [row] = rows_of(old)
    table, said = decode_record(row["key"], row["value"])
    assert (table, row["value"]) == ("bad_records", old)
    assert said["reason"] == "a record batch of message format 1, which is older than Kafka 0.11"
