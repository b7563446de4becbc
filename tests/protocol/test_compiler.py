"""Compiled readers and writers, on a schema that has every kind of field."""

import random
import struct
import uuid
from functools import cache
from typing import Any

import pytest

from groupcoord.protocol.codec.compiler import READ_ERRORS, compile_reader, compile_writer
from groupcoord.protocol.codec.field_by_field_decoder import iter_fields
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from groupcoord.protocol.message_dataclass import message
from tests.protocol.samples import make

ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


@message
class Pair:
    """A struct."""

    left: int = 0
    right: str = ""


@message
class Maybe:
    """A struct that can be null, and has a default that is not."""

    maybe_pair: Pair | None = Pair()


@message
class Everything:
    """One field of each kind."""

    flag: bool = False
    tiny: int = 0
    small: int = 0
    port: int = 0
    number: int = 0
    count: int = 0
    large: int = 0
    ratio: float = 0.0
    identity: uuid.UUID | None = None
    text: str = ""
    maybe_text: str | None = None
    data: bytes = b""
    maybe_data: bytes | None = None
    pair: Pair = Pair()
    maybe_pair: Pair | None = None
    numbers: tuple[int, ...] = ()
    maybe_numbers: tuple[int, ...] | None = None
    texts: tuple[str, ...] = ()
    identities: tuple[uuid.UUID | None, ...] = ()
    pairs: tuple[Pair, ...] = ()
    maybe_pairs: tuple[Pair, ...] | None = None
    tagged_text: str | None = None
    tagged_pair: Pair = Pair()
    tagged_numbers: tuple[int, ...] = ()
    tagged_identity: uuid.UUID | None = None


def layout_of_everything(*, flexible: bool) -> MessageSchema:
    pair = MessageSchema(Pair, 0, flexible, (SchemaField("left", "int32"), SchemaField("right", "string")))
    fields = (
        SchemaField("flag", "bool"),
        SchemaField("tiny", "int8"),
        SchemaField("small", "int16"),
        SchemaField("port", "uint16"),
        SchemaField("number", "int32"),
        SchemaField("count", "uint32"),
        SchemaField("large", "int64"),
        SchemaField("ratio", "float64"),
        SchemaField("identity", "uuid"),
        SchemaField("text", "string"),
        SchemaField("maybe_text", "string", is_nullable=True),
        SchemaField("data", "bytes"),
        SchemaField("maybe_data", "bytes", is_nullable=True),
        SchemaField("pair", "struct", struct=pair),
        SchemaField("maybe_pair", "struct", is_nullable=True, struct=pair),
        SchemaField("numbers", "int32", is_array=True),
        SchemaField("maybe_numbers", "int64", is_array=True, is_nullable=True),
        SchemaField("texts", "string", is_array=True),
        SchemaField("identities", "uuid", is_array=True),
        SchemaField("pairs", "struct", is_array=True, struct=pair),
        SchemaField("maybe_pairs", "struct", is_array=True, is_nullable=True, struct=pair),
    )
    tagged = (
        SchemaField("tagged_text", "string", is_nullable=True, tag=7),
        SchemaField("tagged_pair", "struct", tag=0, struct=pair),
        SchemaField("tagged_numbers", "int32", is_array=True, tag=2),
        SchemaField("tagged_identity", "uuid", tag=3),
    )
    return MessageSchema(Everything, 1, flexible, fields + tagged if flexible else fields)


FULL = Everything(
    flag=True,
    tiny=-2,
    small=-3,
    port=65535,
    number=-4,
    count=2**32 - 1,
    large=-5,
    ratio=0.5,
    identity=ID,
    text="é",
    maybe_text="a",
    data=b"d",
    maybe_data=b"m",
    pair=Pair(left=1, right="r"),
    maybe_pair=Pair(left=2),
    numbers=(1, -1),
    maybe_numbers=(2,),
    texts=("x", ""),
    identities=(ID, None),
    pairs=(Pair(left=3), Pair(right="s")),
    maybe_pairs=(),
)
TAGGED = {"tagged_text": "t", "tagged_pair": Pair(left=9), "tagged_numbers": (5,), "tagged_identity": ID}


reader = cache(compile_reader)
writer = cache(compile_writer)


def read(schema: MessageSchema, data: bytes, at: int = 0) -> Any:
    return reader(schema)(data, at, len(data))


def write(schema: MessageSchema, value: object) -> bytes:
    pieces: list[bytes] = []
    writer(schema)(value, pieces.append)
    return b"".join(pieces)


def test_old_lengths() -> None:
    written = write(layout_of_everything(flexible=False), FULL)
    assert written.hex(" ", -8) == bytes.fromhex(
        "01 fe fffd ffff fffffffc ffffffff fffffffffffffffb 3fe0000000000000 0123456789abcdef0123456789abcdef"
        "0002c3a9 000161 00000001 64 00000001 6d 00000001000172 01 00000002 0000"
        "00000002 00000001ffffffff 00000001 0000000000000002 00000002 000178 0000"
        "00000002 0123456789abcdef0123456789abcdef 00000000000000000000000000000000"
        "00000002 00000003 0000 00000000 000173 00000000"
    ).hex(" ", -8)  # fmt: skip
    assert read(layout_of_everything(flexible=False), written) == (FULL, len(written))


def test_compact_lengths_and_tags() -> None:
    everything = Everything(**{name: getattr(FULL, name) for name in FULL.__slots__} | TAGGED)  # type: ignore[attr-defined]
    written = write(layout_of_everything(flexible=True), everything)
    assert written.hex(" ", -8) == bytes.fromhex(
        "01 fe fffd ffff fffffffc ffffffff fffffffffffffffb 3fe0000000000000 0123456789abcdef0123456789abcdef"
        "03c3a9 0261 0264 026d 00000001 0272 00 01 00000002 01 00"
        "03 00000001ffffffff 02 0000000000000002 03 0278 01"
        "03 0123456789abcdef0123456789abcdef 00000000000000000000000000000000"
        "03 00000003 01 00 00000000 0273 00 01"
        "04 0006 00000009 01 00 0205 02 00000005 0310 0123456789abcdef0123456789abcdef 0702 0274"
    ).hex(" ", -8)  # fmt: skip
    assert read(layout_of_everything(flexible=True), written) == (everything, len(written))


@pytest.mark.parametrize("flexible", [False, True])
def test_nulls(flexible: bool) -> None:
    schema = layout_of_everything(flexible=flexible)
    written = write(schema, Everything())
    assert read(schema, b"before" + written + b"behind", 6) == (Everything(), 6 + len(written))


def test_a_struct_that_can_be_null_has_a_byte_before_it_and_with_a_tag_a_varint() -> None:
    pair = MessageSchema(Pair, 0, True, (SchemaField("left", "int32"), SchemaField("right", "string")))
    field = SchemaField("maybe_pair", "struct", is_nullable=True, struct=pair)
    plain = MessageSchema(Maybe, 0, True, (field,))
    tagged = MessageSchema(Maybe, 0, True, (field._replace(tag=0),))
    body = "00000007 01 00"
    for schema, value, data in (
        (plain, None, "ff 00"),
        (plain, Pair(left=7), f"01 {body} 00"),
        (tagged, None, "01 00 01 00"),
        (tagged, Pair(left=7), f"01 00 07 01 {body}"),
        (tagged, Pair(), "00"),
    ):
        said = Maybe(maybe_pair=value)
        assert write(schema, said).hex() == bytes.fromhex(data).hex()
        assert read(schema, bytes.fromhex(data)) == (said, len(bytes.fromhex(data)))
        shown = {field.path: field.value for field in iter_fields(schema, bytes.fromhex(data))}
        if value is None:
            assert shown == {"maybe_pair": None}
        else:
            assert shown in ({"maybe_pair.left": 7, "maybe_pair.right": ""}, {})


@pytest.mark.parametrize("flexible", [False, True])
def test_long_texts_and_arrays(flexible: bool) -> None:
    schema = layout_of_everything(flexible=flexible)
    long = Everything(
        text="é" * 16000, maybe_data=bytes(100_000), numbers=tuple(range(1000)), pairs=(Pair(right="r"),) * 200
    )
    assert read(schema, write(schema, long))[0] == long


@pytest.mark.parametrize("flexible", [False, True])
def test_every_message_that_ends_early_is_refused(flexible: bool) -> None:
    schema = layout_of_everything(flexible=flexible)
    written = write(schema, make(schema, random.Random(1)))
    for size in range(len(written)):
        with pytest.raises(READ_ERRORS):
            read(schema, written[:size])


def test_where_this_version_has_no_null_the_empty_value_is_written() -> None:
    fields = (
        SchemaField("maybe_text", "string"),
        SchemaField("maybe_data", "bytes"),
        SchemaField("maybe_pairs", "int32", is_array=True),
    )
    schema = MessageSchema(Everything, 0, flexible=False, fields=fields)
    assert write(schema, Everything()).hex() == "0000" + "00000000" + "00000000"


def test_a_message_without_fields_is_no_bytes() -> None:
    schema = MessageSchema(Everything, 0, flexible=False, fields=())
    assert write(schema, Everything()) == b""
    assert read(schema, b"") == (Everything(), 0)


def test_what_does_not_fit_cannot_be_written() -> None:
    schema = layout_of_everything(flexible=False)
    with pytest.raises(struct.error):
        write(schema, Everything(small=40_000))
    with pytest.raises(struct.error):
        write(schema, Everything(text="x" * 40_000))
