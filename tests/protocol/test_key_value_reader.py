"""Keys and values of batches, as the general reader of records has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.batches.key_value_reader import (
    HEAD_BYTES,
    BatchKeyValues,
    collect_key_offsets,
    commit_template_of,
    read_key_values,
    read_record,
    template_of,
)
from groupcoord.protocol.batches.record_batch import HEADER_BYTES, build_batch, read_header, records_in
from groupcoord.protocol.batches.records import Header, InvalidRecordsError, Record, varint, write_records
from tests.protocol.hostile_batches import hostile_batches

some_bytes = st.one_of(st.none(), st.binary(max_size=200))
records = st.lists(st.tuples(st.integers(0, 1 << 20), some_bytes, some_bytes, st.booleans()), min_size=1, max_size=20)


def entered(batch: bytes, start: int = 0) -> tuple[dict[bytes, int], bool]:
    found: dict[bytes, int] = {}
    usual = collect_key_offsets(read_header(batch, start), batch, start, found)
    return found, usual


@pytest.mark.slow
@given(records, st.sampled_from([0, 1 << 40]), st.sampled_from(list(Compression)))
def test_they_are_those_of_the_records(
    said: list[tuple[int, bytes | None, bytes | None, bool]], base: int, how: int
) -> None:
    written = [
        Record(base + 3 * index, 1_700_000_000_000 + at, key, value, (Header("h", b"x"),) if headed else ())
        for index, (at, key, value, headed) in enumerate(said)
    ]
    batch = build_batch(written, attributes=how)
    found = read_key_values(batch)
    assert found.records == [(record.offset, record.key, record.value) for record in records_in(batch)]
    assert (found.last_offset, found.producer_id, found.control) == (written[-1].offset, -1, False)
    last, usual = entered(batch)
    assert last == {record.key: record.offset for record in written if record.key is not None}
    assert usual == (len(written) == 1 and None not in written[0][2:4])


@pytest.mark.parametrize(("key_bytes", "value_bytes", "apart"), [(300, 200, 1), (9_000, 20_000, 1), (1, 1, 9_000)])
def test_large_ones_too(key_bytes: int, value_bytes: int, apart: int) -> None:
    written = [Record(index * apart, index << 20, b"k" * key_bytes, b"v" * value_bytes) for index in range(200)]
    batch = build_batch(written)
    assert read_key_values(batch).records == [(record.offset, record.key, record.value) for record in written]
    assert entered(batch) == ({b"k" * key_bytes: 199 * apart}, apart == 1)


@pytest.mark.parametrize("how", [Compression.NONE, Compression.GZIP])
def test_the_last_offset_of_each_key_is_entered(how: Compression) -> None:
    keys = [b"a", b"b", b"a", b"c", b"b"]
    before = build_batch([Record(2, 1, b"a", b"v")])
    batch = build_batch([Record(3 + n, n, key, b"v") for n, key in enumerate(keys)], attributes=how)
    assert entered(before + batch, len(before)) == ({b"a": 5, b"b": 7, b"c": 6}, True)


@pytest.mark.parametrize(
    ("key", "value", "second"),
    [(None, b"v", 1), (b"k", None, 1), (b"k", b"v", 2), (b"k", b"v", 0)],
    ids=["no key", "a tombstone", "a gap", "the same offset twice"],
)
def test_a_batch_that_is_not_as_a_producer_writes_it_is_told(
    key: bytes | None, value: bytes | None, second: int
) -> None:
    batch = build_batch([Record(0, 1, b"a", b"v"), Record(second, 1, key, value), Record(2, 1, b"z", b"v")])
    found, usual = entered(batch)
    assert found == {b"a": 0, b"z": 2} | ({} if key is None else {key: second})
    assert not usual


def test_a_transaction_and_its_marker_say_whose_they_are() -> None:
    batch = build_batch([Record(5, 1, b"k", b"v")], attributes=0x10, producer_id=7)
    marker = build_batch([Record(6, 1, b"\x00\x00\x00\x01", b"")], attributes=0x30, producer_id=7)
    idempotent = build_batch([Record(7, 1, b"k", b"v")], producer_id=7)
    assert [
        (read_key_values(data).producer_id, read_key_values(data).control) for data in (batch, marker, idempotent)
    ] == [
        (7, False),
        (7, True),
        (-1, False),
    ]


def slowly(batch: bytes) -> BatchKeyValues | str:
    """The same, with every record read number by number."""
    header = read_header(batch)
    records, position = [], HEADER_BYTES
    try:
        for _ in range(header.record_count):
            record, position = read_record(batch, position, header.size, header.base_offset)
            records.append(record)
    except IndexError:
        return "the records reach beyond the batch"
    except InvalidRecordsError as problem:
        return str(problem)
    return BatchKeyValues(header.last_offset, -1, control=False, records=records)


@pytest.mark.slow
@given(hostile_batches())
def test_hostile_bytes_are_what_they_are_slowly(batch: bytes) -> None:
    expected = slowly(batch)
    try:
        found: BatchKeyValues | str = read_key_values(batch)
    except InvalidRecordsError as problem:
        found = str(problem)
    assert found == expected
    if isinstance(expected, BatchKeyValues):
        keys = {key: offset for offset, key, _ in expected.records if key is not None}
        assert entered(batch)[0] == keys


def test_what_reaches_beyond_its_record_or_the_batch_is_refused() -> None:
    batch = build_batch([Record(0, 0, b"key", b"value")])
    for read in (read_key_values, entered):
        with pytest.raises(InvalidRecordsError, match="beyond the batch"):
            read(batch[:61])
        with pytest.raises(InvalidRecordsError, match="record 0 has a size that does not fit"):
            read(batch[:61] + b"\x02" + batch[62:])


def record(delta: int, at: int, key: bytes | None, value: bytes | None, *headers: Header) -> bytes:
    return write_records([Record(delta, at, key, value, headers)], base_offset=0, base_timestamp_ms=0)


@pytest.mark.slow
@given(
    delta=st.integers(0, 300),
    at=st.integers(0, 300),
    key=st.binary(max_size=100),
    value=st.one_of(st.none(), st.binary(min_size=1, max_size=200)),
)
def test_its_parts_are_those_that_were_written(delta: int, at: int, key: bytes, value: bytes | None) -> None:
    data = record(delta, at, key, value)
    template = template_of(data[:HEAD_BYTES])
    assert template is not None
    take, size, offset_delta, expected = template
    assert (size, offset_delta) == (len(data), delta)
    assert take(b"..." + data, 3) == (key, expected, value or b"")
    assert expected == (varint(-1) if value is None else varint(len(value)))


@pytest.mark.slow
@given(prefix=st.binary(max_size=90), partition=st.integers(-(1 << 31), (1 << 31) - 1))
def test_the_partition_of_a_commit_comes_for_itself(prefix: bytes, partition: int) -> None:
    data = record(1, 2, prefix + partition.to_bytes(4, signed=True), b"value")
    template = commit_template_of(data[:HEAD_BYTES])
    assert template is not None
    take, size, offset_delta, expected = template
    assert take(data, 0) == (prefix, partition, expected, b"value")
    assert (size, offset_delta, expected) == (len(data), 1, varint(5))


@pytest.mark.parametrize("value_bytes", [1, 62, 63, 64, 65, 8_190, 8_191, 8_192, 8_193, 20_000])
def test_the_length_of_the_value_follows_however_long_it_is_itself(value_bytes: int) -> None:
    data = record(0, 0, b"key", b"v" * value_bytes)
    template = template_of(data[:HEAD_BYTES])
    assert template is not None
    assert template[0](data, 0) == (b"key", template[3], b"v" * value_bytes)


@pytest.mark.parametrize(
    "data",
    [
        record(0, 0, b"key", b""),
        record(0, 0, b"key", b"value", Header("h", None)),
        record(0, 0, b"k" * 9, None)[:-1] + b"\2",
    ],
    ids=["an empty value", "headers", "a tombstone with headers"],
)
def test_what_is_not_as_expected_shows_in_the_length_of_the_value(data: bytes) -> None:
    template = template_of(data[:HEAD_BYTES])
    assert template is None or template[0](data + bytes(9), 0)[1] != template[3] or data.endswith(b"\2")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x20\0\0\0",
        b"\xff" * HEAD_BYTES,
        record(0, 0, None, b"v"),
        b"\x0a\0\0\0\x06key\1",
        b"\x01\0\0\0\x06key\1",
        varint(71) + b"\0\0\0\x02k",
    ],
    ids=[
        "nothing",
        "cut off",
        "no number ends",
        "no key",
        "shorter than its parts",
        "less than nothing",
        "between two",
    ],
)
def test_what_tells_no_shape(head: bytes) -> None:
    assert template_of(head) is None


def test_records_of_one_layout_are_unpacked_by_one_function() -> None:
    """Else a log of all kinds of timestamps would fill the memory with functions that do the same."""
    templates = [template_of(record(0, at, b"some key", b"value")[:HEAD_BYTES]) for at in range(60)]
    assert all(template is not None for template in templates)
    assert len({template[0] for template in templates if template is not None}) == 1


def test_a_key_without_room_for_a_partition_is_no_commits() -> None:
    data = record(0, 0, b"key", b"value")
    assert template_of(data[:HEAD_BYTES]) is not None
    assert commit_template_of(data[:HEAD_BYTES]) is None
