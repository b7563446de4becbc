"""Compiles message schemas to Python functions that read and write messages.

A schema is compiled to Python source once, as ``dataclasses`` compiles an ``__init__``: adjacent fields of fixed size become
one call of ``struct``, and nothing is looked up while a message is read or written. Nested structs are read and written in the
same function, and their fields are set without an ``__init__``: each call would take as long as reading the fields. The
reader of the library kio, which has the schemas, is not used for bytes from the network: a forged length of four billion would
end the process, and it rejects unknown tagged fields.

A compiled reader only fails for malformed bytes; ``field_by_field_decoder`` finds out where and why.
"""

import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from groupcoord.protocol.codec import flexible_versions
from groupcoord.protocol.codec.flexible_versions import (
    LONGEST_STRING,
    ReadFunction,
    TaggedField,
    Unreadable,
    WriteFunction,
)
from groupcoord.protocol.codec.schema import FIXED, MessageSchema, SchemaField

READ_ERRORS = (Unreadable, IndexError, struct.error)
"""The exceptions of a compiled reader for malformed bytes."""


def compile_reader(schema: MessageSchema) -> ReadFunction:
    """The function that reads ``schema``; it raises one of READ_ERRORS."""
    reader: ReadFunction = _Source().reader(schema)
    return reader


def compile_writer(schema: MessageSchema) -> WriteFunction:
    """The function that writes ``schema``; it raises struct.error for a value that does not fit its field."""
    writer: WriteFunction = _Source().writer(schema)
    return writer


def _id_from(data: bytes) -> uuid.UUID | None:
    return None if data == _NO_ID else uuid.UUID(bytes=data)


def _set_fields(message: object, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(message, name, value)


_NO_ID = bytes(16)
_EMPTY: dict[str, object] = {"string": "", "bytes": b""}
_SCOPE = {
    "Unreadable": Unreadable,
    "StringTooLongError": flexible_versions.StringTooLongError,
    "VARINTS": flexible_versions.VARINTS,
    "NO_ID": _NO_ID,
    "id_from": _id_from,
    "new": object.__new__,
    "set_fields": _set_fields,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "read_varint": flexible_versions.read_varint,
    "varint": flexible_versions.varint,
    "skip_tags": flexible_versions.skip_tags,
    "read_tags": flexible_versions.read_tags,
    "write_tags": flexible_versions.write_tags,
}


class _Source:
    """Generated functions, and the objects to which their names are bound."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = dict(_SCOPE)

    def bind(self, hint: str, value: object) -> str:
        """A name bound to ``value``."""
        name = f"{hint}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def function(self, hint: str, arguments: str, body: "_Body") -> Any:
        """The function with this body."""
        body.flush()
        name = self.bind(hint, None)
        lines = body.lines or ["    pass"]
        exec("\n".join([f"def {name}({arguments}):", *lines]), self.scope)  # noqa: S102 - only names of fields are in it
        return self.scope[name]

    def reader(self, schema: MessageSchema) -> Any:
        """(data, at, size) → (message, end)."""
        body = _ReadBody(self, schema.flexible)
        body.message(schema, "message")
        body.line("return message, at")
        return self.function(f"read_{schema.message.__name__}", "data, at, size", body)

    def tag_reader(self, field: SchemaField) -> Any:
        """(data, at, size) → (value, end)."""
        body = _ReadBody(self, flexible=True)
        body.field(field, "value")
        body.line("return value, at")
        return self.function(f"read_{field.name}", "data, at, size", body)

    def writer(self, schema: MessageSchema) -> Any:
        """(message, out) → None."""
        body = _WriteBody(self, schema.flexible)
        body.message(schema, "message")
        return self.function(f"write_{schema.message.__name__}", "message, out", body)

    def tag_writer(self, field: SchemaField) -> Any:
        """(message, out) → None, for one field of the message."""
        body = _WriteBody(self, flexible=True)
        body.field(field, f"message.{field.name}")
        return self.function(f"write_{field.name}", "message, out", body)


class _Body(ABC):
    """The lines of a function, and the pending fields of fixed size, which become one call of ``struct``."""

    def __init__(self, source: _Source, flexible: bool) -> None:
        self.source, self.flexible = source, flexible
        self.lines: list[str] = []
        self.indent = "    "
        self.codes = ""
        self.waiting: list[str] = []
        self.names = 0

    def item_name(self) -> str:
        """A new name for the items of an array."""
        self.names += 1
        return f"item{self.names}"

    def fixed(self, code: str, expression: str) -> None:
        """A field of fixed size, with its code in ``struct``."""
        self.codes += code
        self.waiting.append(expression)

    def line(self, text: str) -> None:
        """Add a line, after the pending fields."""
        self.flush()
        self.lines.append(self.indent + text)

    def flush(self) -> None:
        """Turn the pending fields into lines."""
        if self.waiting:
            codes, waiting = struct.Struct(f">{self.codes}"), ", ".join(self.waiting)
            self.codes, self.waiting = "", []
            self.struct_call(codes, waiting)

    @abstractmethod
    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        """Add the lines that pack or unpack the pending fields."""

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A context manager that indents lines under ``head``."""
        self.line(head)
        before, self.indent = self.indent, self.indent + "    "
        yield
        self.flush()
        self.indent = before


class _ReadBody(_Body):
    """Reads ``data`` from ``at`` on into variables and fields of messages."""

    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        self.line(f"{waiting}, = {self.source.bind('unpack', codes.unpack_from)}(data, at)")
        self.line(f"at += {codes.size}")

    def message(self, schema: MessageSchema, target: str) -> None:
        """Read a message, or a dict of its fields. Fields of a message that are not on the wire get their defaults."""
        is_dict = issubclass(schema.message, dict)
        self.line(f"{target} = " + ("{}" if is_dict else f"new({self.source.bind('Message', schema.message)})"))
        read = {field.name for field in schema.fields if field.tag is None}
        for name, default in () if is_dict else schema.defaults().items():
            if name not in read:
                self.line(f"{target}.{name} = {self.source.bind('default', default)}")
        known = {}
        for field in schema.fields:
            if field.tag is None:
                self.field(field, f"{target}[{field.name!r}]" if is_dict else f"{target}.{field.name}")
            else:
                known[field.tag] = field.name, self.source.tag_reader(field)
        if known:
            with self.block("if data[at]:"):
                self.line(f"tagged, at = read_tags(data, at, size, {self.source.bind('known', known)})")
                self.line(f"{target}.update(tagged)" if is_dict else f"set_fields({target}, tagged)")
            with self.block("else:"):
                self.line("at += 1")
        elif schema.flexible:
            self.line("at = skip_tags(data, at, size) if data[at] else at + 1")

    def field(self, field: SchemaField, target: str) -> None:
        """Read a field."""
        if field.is_array:
            self.array(field, target)
        elif field.kind in FIXED:
            self.fixed(FIXED[field.kind], target)
            if field.kind == "uuid":
                self.line(f"{target} = id_from({target})")
        elif field.struct is not None:
            self.struct(field.struct, field, target)
        else:
            self.text(field, target)

    def length(self, code: str) -> None:
        """Read a length into ``n``; null is negative."""
        if self.flexible:
            self.line("n = data[at] - 1")
            self.line("at += 1")
            with self.block("if n > 126:"):
                self.line("n, at = read_varint(data, at - 1)")
                self.line("n -= 1")
        else:
            self.fixed(code, "n")

    def text(self, field: SchemaField, target: str) -> None:
        is_string = field.kind == "string"
        self.length("h" if is_string else "i")
        too_long = "at + n > size" + (f" or n > {LONGEST_STRING}" if is_string and self.flexible else "")
        self.refuse(too_long, field.is_nullable)
        # As Java does, Kafka decodes invalid UTF-8 with U+FFFD as replacement.
        value = "str(data[at : at + n], 'utf-8', 'replace')" if is_string else "data[at : at + n]"
        with self.unless_null(field.is_nullable, target):
            self.line(f"{target} = {value}")
            self.line("at += n")

    def array(self, field: SchemaField, target: str) -> None:
        self.length("i")
        # Every item takes at least one byte: a larger count is refused before anything is allocated.
        self.refuse("n > size - at", field.is_nullable)
        with self.unless_null(field.is_nullable, target):
            if field.kind in FIXED and field.kind != "uuid":
                code = FIXED[field.kind]
                self.line(f"{target} = unpack_from(f'>{{n}}{code}', data, at)")
                self.line(f"at += n * {struct.calcsize('>' + code)}")
            else:
                item = self.item_name()
                self.line(f"{item}s = []")
                with self.block("for _ in range(n):"):
                    self.field(field._replace(is_array=False, is_nullable=False), item)
                    self.line(f"{item}s.append({item})")
                self.line(f"{target} = tuple({item}s)")

    def struct(self, schema: MessageSchema, field: SchemaField, target: str) -> None:
        if field.is_nullable and field.tag is not None:  # after a varint that is 0 for null
            self.length("")
        elif field.is_nullable:  # KIP-893: after a byte that is negative for null
            self.fixed("b", "n")
        with self.unless_null(field.is_nullable, target):
            self.message(schema, target)

    def refuse(self, condition: str, is_nullable: bool) -> None:
        with self.block(f"if {condition}:" if is_nullable else f"if n < 0 or {condition}:"):
            self.line("raise Unreadable")

    @contextmanager
    def unless_null(self, is_nullable: bool, target: str) -> Iterator[None]:
        if not is_nullable:
            yield
            return
        with self.block("if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            yield


class _WriteBody(_Body):
    """Writes ``message`` piece by piece to ``out``."""

    def message(self, schema: MessageSchema, message: str) -> None:
        """Write the message in the expression ``message``.

        If a field is None and this version has no null, the empty value is written: JoinGroup v6 has ``""`` for no protocol.
        """
        may_hold_none = schema.may_hold_none()
        tagged = []
        for field in sorted(schema.fields, key=lambda field: field.tag or 0):
            value = f"{message}.{field.name}"
            if field.tag is not None:
                default = schema.defaults()[field.name]
                tagged.append(TaggedField(field.tag, field.name, default, self.source.tag_writer(field)))
            elif field.name in may_hold_none and not field.is_nullable and field.kind != "uuid":
                self.field(field, f"({value} or {'()' if field.is_array else repr(_EMPTY[field.kind])})")
            else:
                self.field(field, value)
        if tagged:
            self.line(f"write_tags({message}, out, {self.source.bind('tagged', tagged)})")
        elif schema.flexible:
            self.fixed("B", "0")

    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        self.line(f"out({self.source.bind('pack', codes.pack)}({waiting}))")

    def field(self, field: SchemaField, value: str) -> None:
        """Write a field, which has ``value``."""
        if field.is_array:
            self.array(field, value)
        else:
            self.value(field, value)

    def value(self, field: SchemaField, value: str) -> None:
        if field.kind == "uuid":
            self.fixed(FIXED["uuid"], f"NO_ID if {value} is None else {value}.bytes")
        elif field.kind in FIXED:
            self.fixed(FIXED[field.kind], value)
        elif field.struct is not None:
            self.struct(field.struct, field, value)
        else:
            self.text(field, value)

    def length(self, code: str, thing: str) -> None:
        """Write the length of ``thing``."""
        if self.flexible:
            self.line(f"n = len({thing}) + 1")
            self.line("out(VARINTS[n] if n < 128 else varint(n))")
        else:
            self.fixed(code, f"len({thing})")

    def text(self, field: SchemaField, value: str) -> None:
        code, encode = ("h", ".encode()") if field.kind == "string" else ("i", "")
        with self.unless_null(field.is_nullable, value, self.null(code)):
            # This line writes nothing, so it can precede the pending fields, and the length can join them.
            self.lines.append(f"{self.indent}text = {value}{encode}")
            if field.kind == "string":
                self.lines.append(
                    f"{self.indent}if len(text) > {LONGEST_STRING}: raise StringTooLongError({field.name!r})"
                )
            self.length(code, "text")
            self.line("out(text)")

    def array(self, field: SchemaField, value: str) -> None:
        with self.unless_null(field.is_nullable, value, self.null("i")):
            self.line(f"items = {value}")
            self.length("i", "items")
            if field.kind in FIXED and field.kind != "uuid":
                self.line(f"out(pack(f'>{{len(items)}}{FIXED[field.kind]}', *items))")
            else:
                item = self.item_name()
                with self.block(f"for {item} in items:"):
                    self.value(field._replace(is_nullable=False), item)

    def struct(self, schema: MessageSchema, field: SchemaField, value: str) -> None:
        with self.unless_null(field.is_nullable, value, b"\xff" if field.tag is None else b"\0"):
            if field.is_nullable:  # KIP-893; a tagged one says the same as a varint, where null is 0
                self.fixed("b", "1")
            self.message(schema, value)

    def null(self, code: str) -> bytes:
        """The length of a null value."""
        return b"\0" if self.flexible else struct.pack(f">{code}", -1)

    @contextmanager
    def unless_null(self, is_nullable: bool, value: str, null: bytes) -> Iterator[None]:
        if not is_nullable:
            yield
            return
        with self.block(f"if {value} is None:"):
            self.line(f"out({null!r})")
        with self.block("else:"):
            yield
