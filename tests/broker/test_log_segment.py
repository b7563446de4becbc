import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.broker.log_segment import LogSegment
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.record_batch import build_batch, read_header
from groupcoord.protocol.batches.records import Record

Entry = tuple[int, int]  # offset, time


def segment(*batches: list[Entry], codec: Compression = Compression.NONE, now_ms: int = 50) -> LogSegment:
    """A segment from offset 0 whose batches have records with these offsets and times."""
    made = LogSegment(0, 10)
    for entries in batches:
        data = build_batch([Record(offset, time, b"k", b"v") for offset, time in entries], attributes=codec)
        made.append(data, read_header(data), now_ms)
    return made


def only(record: Record | None) -> tuple[int, int]:
    """Offset and time of a record that there must be."""
    assert record is not None
    return record.offset, record.timestamp_ms


def found(made: LogSegment, offset: int) -> int | None:
    at = made.find(offset)
    return None if at is None else at.header.base_offset


def test_an_empty_segment_has_nothing() -> None:
    empty = segment()
    assert (empty.size, empty.max_timestamp_ms, empty.find(0), empty.latest_record()) == (0, -1, None, None)
    assert empty.first_record_since(0, 0) is None
    assert empty.largest_timestamp_ms == 10
    assert repr(empty) == "<LogSegment from 0 batches=0 bytes=0>"


def test_an_offset_is_found_in_the_batch_that_holds_it() -> None:
    made = segment([(0, 1), (1, 1), (2, 1)], [(3, 1)], [(4, 1), (5, 1)])
    assert [found(made, offset) for offset in range(7)] == [0, 0, 0, 3, 4, 4, None]


def test_where_there_is_a_gap_the_next_batch_is_found() -> None:
    made = segment([(2, 1), (4, 1)], [(9, 1)])
    assert [found(made, offset) for offset in (0, 2, 3, 4, 5, 8, 9, 10)] == [2, 2, 2, 2, 9, 9, 9, None]


def test_bytes_are_copied_from_where_they_are() -> None:
    made = segment([(0, 1)], [(1, 2)])
    at = made.find(1)
    assert at is not None
    assert made.copy(at.position, at.header.size) == bytes(made.data[at.position :])


def test_the_first_record_since_a_time_is_found() -> None:
    for codec in (Compression.NONE, Compression.ZSTD):
        made = segment([(0, 10), (1, 30)], [(2, 20), (3, 40)], codec=codec)
        offsets = [record and record.offset for record in (made.first_record_since(t, 0) for t in (0, 11, 31, 40, 41))]
        assert offsets == [0, 1, 3, 3, None]


def test_records_before_the_start_are_passed_over() -> None:
    made = segment([(0, 10), (1, 30)], [(2, 5)], [(3, 20), (4, 30)])
    assert only(made.first_record_since(20, 1)) == (1, 30)
    assert only(made.first_record_since(20, 2)) == (3, 20)
    assert only(made.first_record_since(30, 4)) == (4, 30)
    assert segment([(0, 30), (1, 5)]).first_record_since(20, 1) is None


def test_the_latest_record_is_the_first_that_has_the_largest_time() -> None:
    assert only(segment([(0, 10), (1, 40)], [(2, 40)], [(3, 7)]).latest_record()) == (1, 40)


def test_records_without_time_are_as_late_as_any_of_them() -> None:
    made = segment([(0, -1), (1, -1)])
    assert only(made.latest_record()) == (0, -1)
    assert (made.max_timestamp_ms, made.largest_timestamp_ms) == (-1, 50)


def test_a_largest_time_that_no_record_has_is_nobodys() -> None:
    made = LogSegment(0, 10)
    data = build_batch([Record(0, 5, b"k", b"v")], max_timestamp_ms=99)
    made.append(data, read_header(data), 50)
    assert (made.max_timestamp_ms, made.latest_record()) == (99, None)


def test_age_is_told_by_the_first_batch() -> None:
    assert segment([(0, 100)], [(1, 5_000)]).age_ms(now_ms=0, timestamp_ms=700) == 600
    assert segment([(0, -1)], [(1, 5_000)]).age_ms(now_ms=300, timestamp_ms=700) == 290
    assert segment().age_ms(now_ms=300, timestamp_ms=700) == 290


@pytest.mark.slow
@given(
    batches=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), max_size=8),
    timestamp=st.integers(-1, 31),
    start=st.integers(0, 20),
)
def test_searches_find_what_looking_at_every_record_finds(batches: list[list[int]], timestamp: int, start: int) -> None:
    entries, offset = [], 0
    for times in batches:
        entries.append([(offset + at, time) for at, time in enumerate(times)])
        offset += len(times)
    made = segment(*entries)
    every = [entry for batch in entries for entry in batch]
    expected = next((offset for offset, time in every if time >= timestamp and offset >= start), None)
    record = made.first_record_since(timestamp, start)
    assert (record and record.offset) == expected
    latest = made.latest_record()
    assert (latest and latest.timestamp_ms) == max((time for _, time in every), default=None)
