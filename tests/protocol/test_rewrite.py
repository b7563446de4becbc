import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.record_batch import (
    build_batch,
    checksum_matches,
    delete_horizon_ms,
    empty_batch,
    filter_batch,
    keep_records,
    read_header,
    records_of,
)
from groupcoord.protocol.batches.records import Header, Record

RECORDS = [Record(10 + index, 1_000 + index, b"%d" % index, b"v") for index in range(4)]
BATCH = build_batch(RECORDS, producer_id=5, producer_epoch=2, base_sequence=30, leader_epoch=7)
HEADER = read_header(BATCH)


def test_some_records_are_left() -> None:
    data = keep_records(HEADER, RECORDS[1:3], None)
    header = read_header(data)
    assert list(records_of(data)) == RECORDS[1:3]
    assert checksum_matches(data, header)
    assert header._replace(length=0, crc=0) == HEADER._replace(
        length=0, crc=0, record_count=2, base_timestamp_ms=1_001, max_timestamp_ms=1_002
    )
    assert (header.last_offset, header.last_sequence) == (HEADER.last_offset, HEADER.last_sequence)
    assert delete_horizon_ms(header) is None


def test_a_delete_horizon_does_not_move_the_records() -> None:
    data = keep_records(HEADER, RECORDS, 99_999)
    assert delete_horizon_ms(read_header(data)) == 99_999
    assert list(records_of(data)) == RECORDS


def test_times_that_the_log_gave_stay() -> None:
    stamped = read_header(build_batch(RECORDS, attributes=0x08, max_timestamp_ms=5_000))
    data = keep_records(stamped, RECORDS[:1], None)
    assert [record.timestamp_ms for record in records_of(data)] == [5_000]


def test_no_record_is_left() -> None:
    data = empty_batch(read_header(build_batch(RECORDS, attributes=0x02, producer_id=5)))
    header = read_header(data)
    assert (len(data), header.record_count, header.attributes, header.base_timestamp_ms) == (61, 0, 0, -1)
    assert (header.base_offset, header.last_offset, header.producer_id) == (10, 13, 5)
    assert list(records_of(data)) == []
    assert checksum_matches(data, header)


@pytest.mark.slow
@given(
    times=st.lists(st.integers(-5, 1 << 40), min_size=1, max_size=6),
    attributes=st.sampled_from([0x00, 0x02, 0x08]),
    horizons=st.sampled_from([(None, None), (None, 777), (555, 555)]),
    data=st.data(),
)
def test_records_that_are_copied_are_those_that_would_be_written(
    times: list[int], attributes: int, horizons: tuple[int | None, int | None], data: st.DataObject
) -> None:
    records = [
        Record(10 + 2 * index, at_ms, b"k" * index, None if index % 2 else b"v" * 100, (Header("h", b"x"),))
        for index, at_ms in enumerate(times)
    ]
    batch = build_batch(records, attributes=attributes, producer_id=5, producer_epoch=2, base_sequence=30)
    before, after = horizons
    if before is not None:
        batch = keep_records(read_header(batch), list(records_of(batch)), before)
    indexes = st.sets(st.integers(0, len(records) - 1), min_size=1)
    kept = sorted(data.draw(indexes))
    header = read_header(batch)
    left = [record for index, record in enumerate(records_of(batch)) if index in kept]
    assert filter_batch(header, batch, kept, after) == keep_records(header, left, after)


def test_large_records_are_copied_as_well() -> None:
    """The first with a length of three bytes, the second with one of two and a timestamp delta of more than one."""
    records = [Record(0, 5, b"a", b"v" * 9_000), Record(1, 700, b"b", b"v" * 90), Record(2, 6, b"c", b"v")]
    batch = build_batch(records)
    header = read_header(batch)
    assert filter_batch(header, batch, [0, 1], None) == keep_records(header, records[:2], None)
    assert filter_batch(header, batch, [0, 2], None) == keep_records(header, records[::2], None)
