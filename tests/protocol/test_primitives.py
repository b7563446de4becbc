"""Varints and tagged fields."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupcoord.protocol.codec.flexible_versions import (
    TaggedField,
    Unreadable,
    read_tags,
    read_varint,
    skip_tags,
    varint,
    write_tags,
)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**31 - 1, "ffffffff07"),
    ],
)
def test_a_varint_has_seven_bits_in_a_byte(number: int, written: str) -> None:
    assert varint(number).hex() == written
    assert read_varint(bytes.fromhex(written), 0) == (number, len(written) // 2)


@pytest.mark.slow
@given(st.integers(0, 2**31 - 1), st.binary(max_size=3))
def test_a_varint_is_read_as_written_wherever_it_stands(number: int, before: bytes) -> None:
    written = varint(number)
    assert read_varint(before + written + b"\xff", len(before)) == (number, len(before) + len(written))


@pytest.mark.parametrize(("written", "number"), [("ffffffff0f", -1), ("8080808008", -(2**31)), ("8280808070", 2)])
def test_a_varint_beyond_32_bits_is_what_java_makes_of_it(written: str, number: int) -> None:
    assert read_varint(bytes.fromhex(written), 0) == (number, 5)


def test_a_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(Unreadable, match="more than 5 bytes"):
        read_varint(b"\xff" * 100, 0)
    with pytest.raises(IndexError):
        read_varint(b"\xff\xff", 0)


def test_unknown_tags_are_passed_over() -> None:
    data = bytes.fromhex("02 05 01 aa 63 02 bbcc ff")
    assert skip_tags(data, 0, len(data)) == 8
    assert skip_tags(b"\x00", 0, 1) == 1


def test_a_known_tag_ends_where_its_value_ends() -> None:
    """As in Kafka: the size it claims is not looked at."""
    data = bytes.fromhex("01 03 63 0007")
    assert read_tags(data, 0, len(data), {3: ("number", _read_int16)}) == ({"number": 7}, 5)


@pytest.mark.parametrize("data", ["01 05 02 aa", "01 05 ffffffff0f aa"])
def test_an_unknown_tag_must_be_within_the_message(data: str) -> None:
    with pytest.raises(Unreadable, match="beyond the end"):
        skip_tags(bytes.fromhex(data), 0, len(bytes.fromhex(data)))


@pytest.mark.parametrize(
    ("numbers", "written"),
    [((0, 0), "00"), ((7, 0), "01 01 02 0007"), ((7, 8), "02 01 02 0007 05 02 0008")],
)
def test_tags_are_written_unless_they_are_default(numbers: tuple[int, int], written: str) -> None:
    tagged = [TaggedField(1, "real", 0, _write("real")), TaggedField(5, "imag", 0, _write("imag"))]
    pieces: list[bytes] = []
    write_tags(complex(*numbers), pieces.append, tagged)
    assert b"".join(pieces) == bytes.fromhex(written)


def _read_int16(data: bytes, at: int, _: int) -> tuple[int, int]:
    return struct.unpack_from(">h", data, at)[0], at + 2


def _write(name: str):  # type: ignore[no-untyped-def]
    return lambda message, out: out(struct.pack(">h", int(getattr(message, name))))
