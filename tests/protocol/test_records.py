import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.records import (
    Buffer,
    Header,
    InvalidRecordsError,
    Record,
    RecordsSummary,
    read_records,
    read_varint,
    read_varlong,
    validate_records,
    varint,
    write_records,
)

maybe_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.builds(Header, st.text(max_size=20), maybe_bytes), max_size=3).map(tuple)
any_record = st.builds(
    Record,
    offset=st.integers(0, 1 << 30),
    timestamp_ms=st.integers(-1, 1 << 42),
    key=maybe_bytes,
    value=maybe_bytes,
    headers=headers,
)
ONE = write_records([Record(0, 0, b"k", b"v", (Header("h", b"1"),))], base_offset=0, base_timestamp_ms=0)


@pytest.mark.slow
@given(records=st.lists(any_record, max_size=6))
def test_what_is_written_is_read(records: list[Record]) -> None:
    data = b"junk" + write_records(records, base_offset=7, base_timestamp_ms=1_000)
    assert list(read_records(data, 4, len(records), base_offset=7, base_timestamp_ms=1_000)) == records


@pytest.mark.slow
@given(records=st.lists(any_record, min_size=1, max_size=6))
def test_a_walk_finds_what_reading_finds(records: list[Record]) -> None:
    found = validate_records(write_records(records, base_offset=7, base_timestamp_ms=1_000), 0, len(records))
    deltas = [record.timestamp_ms - 1_000 for record in records]
    assert (found.lowest_delta, found.highest_delta) == (min(deltas), max(deltas))
    assert found.every_key == all(record.key is not None for record in records)
    assert found.consecutive == ([record.offset - 7 for record in records] == list(range(len(records))))


@pytest.mark.slow
@given(records=st.lists(any_record, min_size=1, max_size=6), size=st.integers(-5, 1 << 20))
def test_sizes_may_be_wrong_where_they_are_not_looked_at(records: list[Record], size: int) -> None:
    good = [write_records([record], base_offset=7, base_timestamp_ms=1_000) for record in records]
    odd = b"".join(varint(size) + data[read_varint(data, 0)[1] :] for data in good)
    found = validate_records(odd, 0, len(records), sized=False)
    assert found == validate_records(b"".join(good), 0, len(records))
    read = list(read_records(odd, 0, len(records), base_offset=7, base_timestamp_ms=1_000, sized=False))
    assert read == records


def test_a_wrong_size_is_told_where_it_is_looked_at() -> None:
    odd = varint(99) + ONE[1:]
    with pytest.raises(InvalidRecordsError, match="size that does not fit the batch"):
        validate_records(odd, 0, 1)
    with pytest.raises(InvalidRecordsError, match="size that is not that of its parts"):
        list(read_records(odd, 0, 1, base_offset=0, base_timestamp_ms=0))


def test_what_is_left_behind_the_parts_is_told() -> None:
    with pytest.raises(InvalidRecordsError, match="3 bytes are left behind the last record"):
        validate_records(varint(99) + ONE[1:] + b"abc", 0, 1, sized=False)


@pytest.mark.parametrize("count", [1, 64, 65, 8192, 9000])
def test_offsets_of_every_length_are_known_as_consecutive(count: int) -> None:
    records = [Record(index, index, b"k", b"v") for index in range(count)]
    found = validate_records(write_records(records, base_offset=0, base_timestamp_ms=0), 0, count)
    assert found.consecutive
    assert found.highest_delta == count - 1


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 20_000, 2_000_000])
def test_keys_values_and_headers_may_have_any_size(size: int) -> None:
    record = Record(3, 9, bytes(size), b"\x01" * size, (Header("k" * size, bytes(size)), Header("", None)))
    data = write_records([record], base_offset=0, base_timestamp_ms=0)
    assert validate_records(data, 0, 1).every_key
    assert list(read_records(data, 0, 1, base_offset=0, base_timestamp_ms=0)) == [record]


def test_many_headers_are_counted_right() -> None:
    record = Record(0, 0, None, None, tuple(Header("h", b"v") for _ in range(200)))
    data = write_records([record], base_offset=0, base_timestamp_ms=0)
    assert not validate_records(data, 0, 1).every_key
    assert list(read_records(data, 0, 1, base_offset=0, base_timestamp_ms=0)) == [record]


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_varint_is_read_as_it_was_written(number: int) -> None:
    data = varint(number)
    assert read_varint(data, 0) == (number, len(data))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_varlong_is_read_as_it_was_written(number: int) -> None:
    data = varint(number)
    assert read_varlong(data, 0) == (number, len(data))


def test_a_number_of_too_many_bytes_is_none() -> None:
    with pytest.raises(InvalidRecordsError, match="more than 5 bytes"):
        read_varint(b"\xff" * 6, 0)
    with pytest.raises(InvalidRecordsError, match="more than 10 bytes"):
        read_varlong(b"\xff" * 11, 0)
    with pytest.raises(InvalidRecordsError, match="more than 5 bytes"):
        validate_records(b"\xff" * 6, 0, 1)


def record_of(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return varint(len(body)) + body


BROKEN = {
    "a size beyond the end": (varint(50) + b"\0" * 7, 1),
    "a negative size": (varint(-3) + b"\0" * 7, 1),
    "a size that is not that of its parts": (varint(9) + ONE[1:] + b"\0\0\0", 1),
    "fewer records than there are": (ONE + ONE, 1),
    "more records than there are": (ONE, 2),
    "something behind the last record": (ONE + b"\0", 1),
    "no bytes at all": (b"", 1),
    "a key beyond the end": (record_of(b"\0\0\0", varint(99), b"k", varint(0), b"\0"), 1),
    "a value beyond the end": (record_of(b"\0\0\0", varint(-1), varint(70_000), b"\0"), 1),
    "a negative number of headers": (record_of(b"\0\0\0", varint(-1), varint(-1), varint(-1)), 1),
    "more headers than bytes": (record_of(b"\0\0\0", varint(-1), varint(-1), varint(9), b"\0\0"), 1),
    "a header without a key": (record_of(b"\0\0\0", varint(-1), varint(-1), varint(1), varint(-1), varint(-1)), 1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_walk_refuses(name: str) -> None:
    data, count = BROKEN[name]
    with pytest.raises(InvalidRecordsError):
        validate_records(data, 0, count)


@pytest.mark.parametrize("name", ["a key beyond the end", "more records than there are", "more headers than bytes"])
def test_reading_refuses(name: str) -> None:
    data, count = BROKEN[name]
    with pytest.raises(InvalidRecordsError):
        list(read_records(data, 0, count, base_offset=0, base_timestamp_ms=0))


@given(data=st.binary(max_size=60), count=st.integers(0, 4))
def test_a_walk_lets_only_pass_what_can_be_read(data: bytes, count: int) -> None:
    try:
        validate_records(data, 0, count)
    except InvalidRecordsError:
        return
    assert len(list(read_records(data, 0, count, base_offset=0, base_timestamp_ms=0))) == count


@pytest.mark.slow
@given(at=st.integers(0, len(ONE) - 1), byte=st.integers(0, 255))
def test_a_spoilt_record_is_refused_or_can_be_read(at: int, byte: int) -> None:
    data = ONE[:at] + bytes([byte]) + ONE[at + 1 :]
    try:
        validate_records(data, 0, 1)
    except InvalidRecordsError:
        return
    assert len(list(read_records(data, 0, 1, base_offset=0, base_timestamp_ms=0))) == 1


SIZES = st.one_of(st.none(), st.integers(0, 200))


@pytest.mark.slow
@given(
    count=st.integers(0, 200),
    key_bytes=SIZES,
    value_bytes=SIZES,
    step_ms=st.sampled_from([0, 1, -1, 7]),
    other=st.one_of(st.none(), st.integers(0, 300)),
    changes=st.dictionaries(st.integers(0, 60_000), st.integers(0, 255), max_size=2),
)
def test_records_of_one_size_are_read_and_validated_as_others_are(
    count: int, key_bytes: int | None, value_bytes: int | None, step_ms: int, other: int | None, changes: dict[int, int]
) -> None:
    """They are looked at column by column; out of a memoryview, one after the other."""
    records = [
        Record(
            7 + number,
            1_000 + number * step_ms,
            None if key_bytes is None else bytes([number]) * key_bytes,
            None if value_bytes is None else bytes([number]) * value_bytes,
            (Header("h", b""),) if number == other else (),
        )
        for number in range(count)
    ]
    data = bytearray(write_records(records, base_offset=7, base_timestamp_ms=1_000))
    for at, byte in changes.items():
        if data:
            data[at % len(data)] = byte

    found = outcome(bytes(data), count)
    assert found == outcome(memoryview(data), count)
    if count:
        for taken in (count, count - 1):
            assert summary(bytes(data), taken) == summary(memoryview(data), taken)
    if not changes:
        assert found == records


def outcome(data: Buffer, count: int) -> list[Record] | str:
    """The records, or what is wrong with them."""
    try:
        return list(read_records(data, 0, count, base_offset=7, base_timestamp_ms=1_000))
    except InvalidRecordsError as problem:
        return str(problem)


def summary(data: Buffer, count: int) -> RecordsSummary | str:
    """What validating the records finds, or what is wrong with them."""
    try:
        return validate_records(data, 0, count)
    except InvalidRecordsError as problem:
        return str(problem)


@pytest.mark.parametrize("key", [None, b"key"])
def test_a_batch_of_records_of_one_size_is_validated(key: bytes | None) -> None:
    """As kafka-producer-perf-test sends them; offsets from 64 on take two bytes."""
    records = [Record(number, 1_000 + number // 3 - 10, key, bytes(100)) for number in range(160)]
    data = write_records(records, base_offset=0, base_timestamp_ms=1_000)
    assert validate_records(data, 0, 160) == RecordsSummary(-10, 43, key is not None, consecutive=True)


def test_an_offset_that_is_not_the_next_is_read_as_it_is() -> None:
    data = bytearray(
        write_records([Record(7 + n, 1_000, None, b"") for n in range(70)], base_offset=7, base_timestamp_ms=1_000)
    )
    data[64 * 7 + 4] = 2  # the second byte of the 65th record's
    found = outcome(bytes(data), 70)
    assert isinstance(found, list)
    assert [found[64].offset, found[65].offset] == [7 + 128, 7 + 65]


def test_a_number_of_two_bytes_where_one_would_do_is_not_taken_for_one() -> None:
    assert outcome(bytes([12, 0, 0x80, 0, 0, 1, 0]), 1) == "the records reach beyond the batch"


def test_a_header_beyond_the_end_is_refused() -> None:
    assert outcome(ONE[:-2] + b"\x40" + ONE[-1:], 1) == "the records reach beyond the batch"


def test_more_records_than_two_bytes_can_count_are_read() -> None:
    records = [Record(number, 0, None, b"") for number in range(8_200)]
    data = write_records(records, base_offset=0, base_timestamp_ms=0)
    assert list(read_records(data, 0, len(records), base_offset=0, base_timestamp_ms=0)) == records
