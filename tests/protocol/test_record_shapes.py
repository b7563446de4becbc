"""A record that is taken apart in one go is the one that is read number by number, or it is of no template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.batches.record_template_cache import HEAD_BYTES, commit_template_of, template_of
from groupcoord.protocol.batches.records import Header, Record, varint, write_records


def record(delta: int, at: int, key: bytes | None, value: bytes | None, *headers: Header) -> bytes:
    return write_records([Record(delta, at, key, value, headers)], base_offset=0, base_timestamp_ms=0)


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


def test_a_key_without_room_for_a_partition_is_no_commits() -> None:
    data = record(0, 0, b"key", b"value")
    assert template_of(data[:HEAD_BYTES]) is not None
    assert commit_template_of(data[:HEAD_BYTES]) is None
