"""Layouts turned into functions: bytes → message, and message → pieces of bytes.

A layout is compiled to Python source once, as ``dataclasses`` compiles an ``__init__``: neighbouring fields of fixed size
become one call of ``struct``, and nothing is looked up while a message is read or written. kio's own reader does not face the
network here, because a length of four billion ends the process and a tagged field that it does not know is an error to it.

What a compiled reader does with bytes that are no message is to fail, nothing more; ``iter_fields`` says where and why.
"""

import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from groupcoord.protocol.codec import primitives
from groupcoord.protocol.codec.primitives import LONGEST_STRING, ReadFunction, TaggedField, Unreadable, WriteFunction
from groupcoord.protocol.codec.schema import FIXED, MessageSchema, SchemaField

READ_ERRORS = (Unreadable, IndexError, struct.error)
"""What a compiled reader raises for bytes that are not its message."""


def compile_reader(layout: MessageSchema) -> ReadFunction:
    """The function that reads ``layout``; it raises one of READ_ERRORS."""
    reader: ReadFunction = _Source().reader(layout)
    return reader


def compile_writer(layout: MessageSchema) -> WriteFunction:
    """The function that writes ``layout``; it raises struct.error for what does not fit into its field."""
    writer: WriteFunction = _Source().writer(layout)
    return writer


def _id_from(data: bytes) -> uuid.UUID | None:
    return None if data == _NO_ID else uuid.UUID(bytes=data)


_NO_ID = bytes(16)
_EMPTY: dict[str, object] = {"string": "", "bytes": b""}
_SCOPE = {
    "Unreadable": Unreadable,
    "StringTooLongError": primitives.StringTooLongError,
    "VARINTS": primitives.VARINTS,
    "NO_ID": _NO_ID,
    "id_from": _id_from,
    "unpack_from": struct.unpack_from,
    "pack": struct.pack,
    "read_varint": primitives.read_varint,
    "varint": primitives.varint,
    "skip_tags": primitives.skip_tags,
    "read_tags": primitives.read_tags,
    "write_tags": primitives.write_tags,
}


class _Source:
    """Functions of source, and what their names stand for."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = dict(_SCOPE)

    def bind(self, hint: str, value: object) -> str:
        """A name that stands for ``value``."""
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

    def reader(self, layout: MessageSchema) -> Any:
        """(data, at, size) → (message, end)."""
        body = _ReadBody(self, layout.flexible)
        arguments = []
        known = {}
        for column in layout.columns:
            if column.tag is None:
                arguments.append(f"{column.name}=v_{column.name}")
                body.column(column, f"v_{column.name}")
            else:
                known[column.tag] = column.name, self.tag_reader(column)
        if known:
            arguments.append("**tagged")
            with body.block("if data[at]:"):
                body.line(f"tagged, at = read_tags(data, at, size, {self.bind('known', known)})")
            with body.block("else:"):
                body.line("tagged, at = {}, at + 1")
        elif layout.flexible:
            body.line("at = skip_tags(data, at, size) if data[at] else at + 1")
        body.line(f"return {self.bind('Message', layout.message)}({', '.join(arguments)}), at")
        return self.function(f"read_{layout.message.__name__}", "data, at, size", body)

    def tag_reader(self, column: SchemaField) -> Any:
        """(data, at, size) → (value, end)."""
        body = _ReadBody(self, flexible=True)
        body.column(column, "value")
        body.line("return value, at")
        return self.function(f"read_{column.name}", "data, at, size", body)

    def writer(self, layout: MessageSchema) -> Any:
        """(message, out) → None."""
        body = _WriteBody(self, layout.flexible, layout.may_hold_none())
        tagged = []
        for column in sorted(layout.columns, key=lambda column: column.tag or 0):
            if column.tag is None:
                body.column(column)
            else:
                default = layout.defaults()[column.name]
                tagged.append(TaggedField(column.tag, column.name, default, self.tag_writer(column)))
        if tagged:
            body.line(f"write_tags(message, out, {self.bind('tagged', tagged)})")
        elif layout.flexible:
            body.fixed("B", "0")
        return self.function(f"write_{layout.message.__name__}", "message, out", body)

    def tag_writer(self, column: SchemaField) -> Any:
        """(message, out) → None, for one field of the message."""
        body = _WriteBody(self, flexible=True, may_hold_none=frozenset())
        body.column(column)
        return self.function(f"write_{column.name}", "message, out", body)


class _Body(ABC):
    """The lines of a function, and the fields of fixed size that wait for the next line, to become one call of ``struct``."""

    def __init__(self, source: _Source, flexible: bool) -> None:
        self.source, self.flexible = source, flexible
        self.lines: list[str] = []
        self.indent = "    "
        self.codes = ""
        self.waiting: list[str] = []

    def fixed(self, code: str, expression: str) -> None:
        """A field of fixed size, with its code in ``struct``."""
        self.codes += code
        self.waiting.append(expression)

    def line(self, text: str) -> None:
        """A line, behind what waits."""
        self.flush()
        self.lines.append(self.indent + text)

    def flush(self) -> None:
        """Bring the fields that wait into lines."""
        if self.waiting:
            codes, waiting = struct.Struct(f">{self.codes}"), ", ".join(self.waiting)
            self.codes, self.waiting = "", []
            self.struct_call(codes, waiting)

    @abstractmethod
    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        """The lines that pack or unpack what waits."""

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines within are indented, under ``head``."""
        self.line(head)
        before, self.indent = self.indent, self.indent + "    "
        yield
        self.flush()
        self.indent = before


class _ReadBody(_Body):
    """Reads ``data`` from ``at`` on into variables."""

    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        self.line(f"{waiting}, = {self.source.bind('unpack', codes.unpack_from)}(data, at)")
        self.line(f"at += {codes.size}")

    def column(self, column: SchemaField, target: str) -> None:
        """Read a field."""
        if column.is_array:
            self.array(column, target)
        elif column.kind in FIXED:
            self.fixed(FIXED[column.kind], target)
            if column.kind == "uuid":
                self.line(f"{target} = id_from({target})")
        elif column.struct is not None:
            self.struct(column.struct, column, target)
        else:
            self.text(column, target)

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

    def text(self, column: SchemaField, target: str) -> None:
        is_string = column.kind == "string"
        self.length("h" if is_string else "i")
        too_long = "at + n > size" + (f" or n > {LONGEST_STRING}" if is_string and self.flexible else "")
        self.refuse(too_long, column.is_nullable)
        # Kafka reads invalid UTF-8 as Java does everywhere: with U+FFFD in place of what it cannot read.
        value = "str(data[at : at + n], 'utf-8', 'replace')" if is_string else "data[at : at + n]"
        with self.unless_null(column.is_nullable, target):
            self.line(f"{target} = {value}")
            self.line("at += n")

    def array(self, column: SchemaField, target: str) -> None:
        self.length("i")
        # Every item takes a byte at least: a count beyond that is refused before anything is made for it.
        self.refuse("n > size - at", column.is_nullable)
        with self.unless_null(column.is_nullable, target):
            if column.kind in FIXED and column.kind != "uuid":
                code = FIXED[column.kind]
                self.line(f"{target} = unpack_from(f'>{{n}}{code}', data, at)")
                self.line(f"at += n * {struct.calcsize('>' + code)}")
            else:
                self.line("items = []")
                with self.block("for _ in range(n):"):
                    self.column(column._replace(is_array=False, is_nullable=False), "item")
                    self.line("items.append(item)")
                self.line(f"{target} = tuple(items)")

    def struct(self, layout: MessageSchema, column: SchemaField, target: str) -> None:
        if column.is_nullable and column.tag is not None:  # behind a varint that is 0 for null
            self.length("")
        elif column.is_nullable:  # KIP-893: behind a byte that is negative for null
            self.fixed("b", "n")
        with self.unless_null(column.is_nullable, target):
            read = self.source.bind("read", self.source.reader(layout))
            self.line(f"{target}, at = {read}(data, at, size)")

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
    """Gives the pieces of ``message`` to ``out``."""

    def __init__(self, source: _Source, flexible: bool, may_hold_none: frozenset[str]) -> None:
        super().__init__(source, flexible)
        self.may_hold_none = may_hold_none

    def struct_call(self, codes: struct.Struct, waiting: str) -> None:
        self.line(f"out({self.source.bind('pack', codes.pack)}({waiting}))")

    def column(self, column: SchemaField) -> None:
        """Write a field of the message.

        Where our field can be None and this version has no null, it writes the empty value: JoinGroup v6 says ``""`` for no
        protocol.
        """
        value = f"message.{column.name}"
        if column.name in self.may_hold_none and not column.is_nullable and column.kind != "uuid":
            value = f"({value} or {'()' if column.is_array else repr(_EMPTY[column.kind])})"
        if column.is_array:
            self.array(column, value)
        else:
            self.value(column, value)

    def value(self, column: SchemaField, value: str) -> None:
        if column.kind == "uuid":
            self.fixed(FIXED["uuid"], f"NO_ID if {value} is None else {value}.bytes")
        elif column.kind in FIXED:
            self.fixed(FIXED[column.kind], value)
        elif column.struct is not None:
            self.struct(column.struct, column, value)
        else:
            self.text(column, value)

    def length(self, code: str, thing: str) -> None:
        """Write how long ``thing`` is."""
        if self.flexible:
            self.line(f"n = len({thing}) + 1")
            self.line("out(VARINTS[n] if n < 128 else varint(n))")
        else:
            self.fixed(code, f"len({thing})")

    def text(self, column: SchemaField, value: str) -> None:
        code, encode = ("h", ".encode()") if column.kind == "string" else ("i", "")
        with self.unless_null(column.is_nullable, value, self.null(code)):
            # This line writes nothing, so it passes the fields that wait, and the length can join them.
            self.lines.append(f"{self.indent}text = {value}{encode}")
            if column.kind == "string":
                self.lines.append(
                    f"{self.indent}if len(text) > {LONGEST_STRING}: raise StringTooLongError({column.name!r})"
                )
            self.length(code, "text")
            self.line("out(text)")

    def array(self, column: SchemaField, value: str) -> None:
        with self.unless_null(column.is_nullable, value, self.null("i")):
            self.line(f"items = {value}")
            self.length("i", "items")
            if column.kind in FIXED and column.kind != "uuid":
                self.line(f"out(pack(f'>{{len(items)}}{FIXED[column.kind]}', *items))")
            else:
                with self.block("for item in items:"):
                    self.value(column._replace(is_nullable=False), "item")

    def struct(self, layout: MessageSchema, column: SchemaField, value: str) -> None:
        with self.unless_null(column.is_nullable, value, b"\xff" if column.tag is None else b"\0"):
            if column.is_nullable:  # KIP-893; a tagged one says the same as a varint, where null is 0
                self.fixed("b", "1")
            write = self.source.bind("write", self.source.writer(layout))
            self.line(f"{write}({value}, out)")

    def null(self, code: str) -> bytes:
        """The length of what is null."""
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
