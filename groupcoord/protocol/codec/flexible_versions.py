"""Unsigned varints and tagged fields, the encoding of flexible message versions (KIP-482)."""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

LONGEST_STRING = 0x7FFF
"""Bytes. A compact string could be longer, but Kafka refuses it, so that every version can carry every string."""

VARINTS = tuple([bytes((number,)) for number in range(128)])
"""The unsigned varints of one byte."""


class LazyBytes(Protocol):
    """Bytes that may be read from a file later, as a whole or in slices; ``bytes`` are one kind."""

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...

    def __getitem__(self, where: slice, /) -> bytes: ...


ReadFunction = Callable[[bytes, int, int], tuple[Any, int]]
"""(data, at, size) → (value, its end); ``size`` is that of the data."""

Sink = Callable[[bytes], object]
"""Takes the next piece of output."""

WriteFunction = Callable[[Any, Sink], None]
"""(message, out): writes the message to ``out`` in pieces."""


class Unreadable(ValueError):
    """The bytes are malformed; the text, if any, says why."""


class StringTooLongError(struct.error):
    """A string has more bytes than allowed.

    Clients can cause it: an invalid UTF-8 byte is decoded as U+FFFD, which takes three bytes when it is written.
    """

    def __init__(self, field: str) -> None:
        super().__init__(f"'{field}' field is too long to be serialized")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(the varint at ``at``, its end). Raises Unreadable or IndexError.

    It is unsigned, but Kafka keeps it in a signed int: too large values become negative, and thus null.
    """
    number = 0
    for index in range(5):
        byte = data[at + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000, at + index + 1
    raise Unreadable("a varint of more than 5 bytes")


def varint(number: int) -> bytes:
    """``number`` as an unsigned varint."""
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def skip_tags(data: bytes, at: int, size: int) -> int:
    """The end of the tagged fields at ``at``: unknown ones are skipped (KIP-482)."""
    return read_tags(data, at, size, {})[1]


def read_tags(
    data: bytes, at: int, size: int, known: Mapping[int, tuple[str, ReadFunction]]
) -> tuple[dict[str, Any], int]:
    """(values of the ``known`` tagged fields by name, end of all tagged fields). Raises Unreadable or IndexError.

    As in Kafka, a known field ends where its value ends, whatever size it claims.
    """
    values: dict[str, Any] = {}
    count, at = read_varint(data, at)
    for _ in range(count):
        tag, at = read_varint(data, at)
        length, at = read_varint(data, at)
        if tag in known:
            name, read = known[tag]
            values[name], at = read(data, at, size)
        elif not 0 <= length <= size - at:
            raise Unreadable("a tagged field goes beyond the end")
        else:
            at += length
    return values, at


class TaggedField(NamedTuple):
    """The encoding of a tagged field, written unless it has its default."""

    tag: int
    name: str
    default: object
    write: WriteFunction


def write_tags(message: object, out: Sink, tagged: Sequence[TaggedField]) -> None:
    """Write the tagged fields of ``message``; ``tagged`` is ordered by tag, as required on the wire."""
    present = [
        field
        for field in tagged
        if (value := getattr(message, field.name)) is not field.default and value != field.default
    ]
    out(varint(len(present)))
    for field in present:
        pieces: list[bytes] = []
        field.write(message, pieces.append)
        body = b"".join(pieces)
        out(varint(field.tag))
        out(varint(len(body)))
        out(body)
