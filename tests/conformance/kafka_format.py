"""Every message at every version, read and written by kio alone, into plain values.

groupcoord has codecs of its own; the stories do not use them, so that one mistake cannot hide on both sides of a
comparison. kio's generated classes would turn times and error codes into richer objects and refuse odd ones, which are what
stories are about: so each class gets a twin with the same layout and plain integers.
"""

import dataclasses
import datetime as dt
import io
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from kio.index import load_entity_schema
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

_PLAIN = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}


class Unreadable(Exception):
    """Bytes that are not the message they should be."""


class Format(NamedTuple):
    """Reads and writes one message at one version."""

    flexible: bool
    reader: Callable[[bytes, int], tuple[Any, int]]
    writer: Callable[[io.BytesIO, Any], None]

    def read(self, data: bytes, offset: int) -> tuple[Any, int]:
        """(entity, how many bytes it took). Raises Unreadable."""
        try:
            return self.reader(data, offset)
        except (SerialError, ValueError, OverflowError, MemoryError) as problem:
            raise Unreadable(str(problem)) from problem

    def write(self, message: Any) -> bytes:
        """The bytes of anything that has the fields as attributes."""
        buffer = io.BytesIO()
        self.writer(buffer, message)
        return buffer.getvalue()


@cache
def format_of(package: str, version: int, kind: str) -> Format:
    """``package`` is kio's name (``join_group``), ``kind`` is ``request`` or ``response``."""
    theirs = load_entity_schema(package, version, EntityType[kind])  # type: ignore[arg-type]
    twin = _twin(theirs)
    return Format(theirs.__flexible__, entity_reader(twin), entity_writer(twin))


def _twin(theirs: type[Any]) -> type[Any]:
    columns: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(theirs):
        metadata = dict(field.metadata)
        kafka_type = metadata.get("kafka_type", "")
        inner, is_array, is_nullable = _anatomy(field.type)
        if dataclasses.is_dataclass(inner):
            inner = _twin(typing.cast("type[Any]", inner))
        if kafka_type in _PLAIN:
            inner, is_nullable = int, False
            metadata["kafka_type"] = _PLAIN[kafka_type]
        annotation: Any = types.GenericAlias(tuple, (inner, ...)) if is_array else inner
        timed = kafka_type.startswith(("timedelta", "datetime"))
        default = _default(field, inner, kafka_type)
        columns.append(
            (
                f"{field.name}_ms" if timed else field.name,
                annotation | None if is_nullable else annotation,
                dataclasses.field(metadata=metadata, default=default),
            )
        )
    marks = {mark: getattr(theirs, mark) for mark in ("__type__", "__version__", "__flexible__")}
    return dataclasses.make_dataclass(
        theirs.__name__, columns, kw_only=True, init=False, repr=False, eq=False, namespace=marks
    )


def _default(field: "dataclasses.Field[Any]", inner: Any, kafka_type: str) -> Any:
    """A field's default, which a tagged field has when it is absent; of an entity, the twin with all defaults."""
    default = field.default
    if default is dataclasses.MISSING:
        return None
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return inner()
    if isinstance(default, dt.timedelta):
        return default // dt.timedelta(milliseconds=1)
    if kafka_type in _PLAIN:
        return -1 if default is None else int(typing.cast("int", default))
    return default


def _anatomy(annotation: Any) -> tuple[Any, bool, bool]:
    """(inner type, is it an array, may it be null)."""
    is_nullable = False
    if typing.get_origin(annotation) in {types.UnionType, typing.Union}:
        members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
        is_nullable = len(members) < len(typing.get_args(annotation))
        annotation = members[0]
    if typing.get_origin(annotation) is tuple:
        return typing.get_args(annotation)[0], True, is_nullable
    return annotation, False, is_nullable
