"""Decodes any message field by field, with the path, offset, size, value and type of each; and explains decoding errors.

Used for errors and by ``groupcoord.dissect``: a compiled reader is fast but does not tell where it failed; this slow one does.
"""

import struct
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from groupcoord.protocol.codec.flexible_versions import LONGEST_STRING, Unreadable, read_varint
from groupcoord.protocol.codec.schema import FIXED, MessageSchema, SchemaField
from groupcoord.protocol.errors import TruncatedError, WireError

FIELDS_EXPLAINED = 10_000
"""The maximum of fields read to explain an error: some 50 ms, in which no other client is served."""


class DecodedField(NamedTuple):
    """One field: dotted ``path`` (``topics[0].name``), ``offset`` and ``size`` in bytes, its value, and its type on the wire.

    An array shows as a field whose value is the number of items (None if it is null), with the items behind it.
    """

    path: str
    offset: int
    size: int
    value: object
    type: str


def iter_fields(
    schema: MessageSchema, data: bytes, offset: int = 0, *, every_byte: bool = False
) -> Iterator[DecodedField]:
    """The fields of the message at ``offset``, in wire order. Raises WireError at a malformed field.

    With ``every_byte`` there are also entries for the bytes between fields: the count of tagged fields, the tag and size of
    each, and the null marker of a struct. Then each byte belongs to exactly one entry.
    """
    return _Walk(schema, data, offset, every_byte).struct(schema, "")


def explain_decode_error(schema: MessageSchema, data: bytes, offset: int = 0) -> WireError:
    """The decoding error of the message at ``offset``.

    If it comes after the first FIELDS_EXPLAINED fields, the result says only that.
    """
    place = DecodedField("", offset, 0, None, "")
    reason = "nothing is wrong with it"
    try:
        for count, place in enumerate(iter_fields(schema, data, offset)):  # noqa: B007 - it is used behind the loop
            if count == FIELDS_EXPLAINED:
                reason = "here or behind, something is wrong"
                break
    except WireError as problem:
        return problem
    return WireError(reason, api=schema.name, version=schema.version, offset=place.offset, field=place.path)


def type_of(field: SchemaField, flexible: bool) -> str:
    """The wire type of ``field`` as text: ``compact nullable string``, ``compact array of int32, tag 0``."""
    sized = field.is_array or field.kind in ("string", "bytes")
    words = [
        *(["compact"] if sized and flexible else []),
        *(["nullable"] if field.is_nullable else []),
        *(["array of"] if field.is_array else []),
        field.kind,
    ]
    return " ".join(words) + ("" if field.tag is None else f", tag {field.tag}")


class _Walk:
    """Walks through ``data``; ``at`` is the current position."""

    def __init__(self, schema: MessageSchema, data: bytes, at: int, every_byte: bool) -> None:
        self.schema, self.data, self.at, self.every_byte = schema, data, at, every_byte

    def struct(self, schema: MessageSchema, path: str) -> Iterator[DecodedField]:
        dot = f"{path}." if path else ""
        tagged = {field.tag: field for field in schema.fields if field.tag is not None}
        for field in schema.fields:
            if field.tag is None:
                yield from self.field(field, dot + field.name, schema.flexible)
        if schema.flexible:
            yield from self.tagged_fields(tagged, dot)

    def tagged_fields(self, known: Mapping[int, SchemaField], dot: str) -> Iterator[DecodedField]:
        start, count = self.at, self.varint(f"{dot}tagged fields")
        yield from self.between(f"{dot}tagged fields", start, count)
        for _ in range(count):
            start, tag = self.at, self.varint(f"{dot}tagged fields")
            yield from self.between(f"{dot}tag", start, tag)
            start, size = self.at, self.varint(f"{dot}tag {tag}")
            yield from self.between(f"{dot}tag {tag} size", start, size)
            if tag in known:
                yield from self.field(known[tag], dot + known[tag].name, flexible=True)
            else:
                start, data = self.at, self.take(size, f"{dot}tag {tag}")
                yield DecodedField(f"{dot}tag {tag}", start, size, data, "unknown tagged field")

    def between(self, path: str, start: int, value: object, kind: str = "uvarint") -> Iterator[DecodedField]:
        """The bytes between fields, from ``start`` to here."""
        if self.every_byte:
            yield DecodedField(path, start, self.at - start, value, kind)

    def field(self, field: SchemaField, path: str, flexible: bool) -> Iterator[DecodedField]:
        start = self.at
        if field.is_array:
            yield from self.array(field, path, flexible)
        elif field.struct is None:
            value = self.fixed(field.kind, path) if field.kind in FIXED else self.text(field, path, flexible)
            yield DecodedField(path, start, self.at - start, value, type_of(field, flexible))
        elif field.is_nullable:
            # KIP-893's byte; with a tag, a varint that is 0 for null.
            mark = self.fixed("int8", path) if field.tag is None else self.varint(path) - 1
            kind = type_of(field, flexible)
            if mark < 0:
                yield DecodedField(path, start, self.at - start, None, kind)
            else:
                yield from self.between(f"{path} present", start, value=True, kind=kind)
                yield from self.struct(field.struct, path)
        else:
            yield from self.struct(field.struct, path)

    def array(self, field: SchemaField, path: str, flexible: bool) -> Iterator[DecodedField]:
        start = self.at
        count = self.length("int32", path, flexible, field.is_nullable)
        if count is not None and count > len(self.data) - self.at:
            self.refuse(path, start, f"{count} items do not fit in the {len(self.data) - self.at} bytes that are left")
        yield DecodedField(path, start, self.at - start, count, type_of(field, flexible))
        item = field._replace(is_array=False, is_nullable=False, tag=None)
        for index in range(count or 0):
            yield from self.field(item, f"{path}[{index}]", flexible)

    def text(self, field: SchemaField, path: str, flexible: bool) -> str | bytes | None:
        start = self.at
        is_string = field.kind == "string"
        size = self.length("int16" if is_string else "int32", path, flexible, field.is_nullable)
        if size is None:
            return None
        if is_string and size > LONGEST_STRING:
            self.refuse(path, start, f"a string of {size} bytes; it can have {LONGEST_STRING}")
        data = self.take(size, path, start)
        return data.decode(errors="replace") if is_string else data

    def length(self, kind: str, path: str, flexible: bool, is_nullable: bool) -> int | None:
        start = self.at
        length: int = self.varint(path) - 1 if flexible else self.fixed(kind, path)
        if length < 0 and not is_nullable:
            self.refuse(path, start, "null where there must be a value")
        return None if length < 0 else length

    def fixed(self, kind: str, path: str) -> Any:
        code = struct.Struct(f">{FIXED[kind]}")
        left = len(self.data) - self.at
        if left < code.size:
            reason = f"{code.size} bytes do not fit in the {left} that are left"
            schema = self.schema
            raise TruncatedError(reason, api=schema.name, version=schema.version, offset=self.at, field=path)
        (value,) = code.unpack(self.take(code.size, path))
        if kind == "uuid":
            return uuid.UUID(bytes=value) if any(value) else None
        return value

    def varint(self, path: str) -> int:
        try:
            value, self.at = read_varint(self.data, self.at)
        except (Unreadable, IndexError) as problem:
            self.refuse(path, self.at, str(problem) if isinstance(problem, Unreadable) else "the bytes end here")
        return value

    def take(self, size: int, path: str, start: int = -1) -> bytes:
        left = len(self.data) - self.at
        if not 0 <= size <= left:
            self.refuse(path, self.at if start < 0 else start, f"{size} bytes do not fit in the {left} that are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def refuse(self, path: str, offset: int, reason: str) -> NoReturn:
        raise WireError(reason, api=self.schema.name, version=self.schema.version, offset=offset, field=path)
