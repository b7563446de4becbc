"""Message schemas: the fields of a message in one version, in wire order, with their types.

They are derived from kio, which has one generated class per message and version, with the fields in wire order. Names are ours,
and types are plain integers where kio has dates, durations and enums.
"""

import dataclasses
import types
import typing
from typing import Any, NamedTuple

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The kinds of fixed size, which cannot be null, with their ``struct`` codes."""

PLAIN_KINDS = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "records": "bytes",
}


class SchemaField(NamedTuple):
    """One field on the wire.

    ``kind`` is Kafka's type, of the items if the field is an array; ``struct`` is the schema of kind ``"struct"``; ``tag`` is
    the number of a tagged field (KIP-482).
    """

    name: str
    kind: str
    is_array: bool = False
    is_nullable: bool = False
    tag: int | None = None
    struct: "MessageSchema | None" = None


class MessageSchema(NamedTuple):
    """The fields of ``message`` at ``version``, in wire order; ``flexible`` means compact lengths and tagged fields."""

    message: type[Any]
    version: int
    flexible: bool
    fields: tuple[SchemaField, ...]

    @property
    def name(self) -> str:
        """The name of the message; for a request, that of its API."""
        return self.message.__name__.removesuffix("Request")

    def defaults(self) -> dict[str, object]:
        """The defaults of the message's fields; fields without a default are missing here."""
        return {
            field.name: field.default
            for field in dataclasses.fields(self.message)
            if field.default is not dataclasses.MISSING
        }

    def may_hold_none(self) -> frozenset[str]:
        """The fields of the message that can be None, on the wire or only here."""
        return frozenset(
            field.name for field in dataclasses.fields(self.message) if parse_annotation(field.type).is_nullable
        )


class ParsedAnnotation(NamedTuple):
    """A parsed annotation: ``tuple[str, ...] | None`` is ``(str, True, True)``."""

    inner: Any
    is_array: bool
    is_nullable: bool


def parse_annotation(annotation: Any) -> ParsedAnnotation:
    """Parse an annotation: the type of one item, is it an array, can it be None."""
    is_nullable = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    if is_nullable:
        (annotation,) = (member for member in typing.get_args(annotation) if member is not types.NoneType)
    if typing.get_origin(annotation) is tuple:
        return ParsedAnnotation(typing.get_args(annotation)[0], is_array=True, is_nullable=is_nullable)
    return ParsedAnnotation(annotation, is_array=False, is_nullable=is_nullable)


def schema_of(ours: type[Any], theirs: type[Any]) -> MessageSchema:
    """The schema of our class ``ours`` in the version that kio's class ``theirs`` describes."""
    our_types = {field.name: field.type for field in dataclasses.fields(ours)}
    schema_fields = []
    for field in dataclasses.fields(theirs):
        inner, is_array, is_nullable = parse_annotation(field.type)
        kafka_type = field.metadata.get("kafka_type", "struct")
        name = field_name_of(field.name, kafka_type)
        kind = PLAIN_KINDS.get(kafka_type, kafka_type)
        struct = schema_of(parse_annotation(our_types[name]).inner, inner) if kind == "struct" else None
        # kio has None for an all-zero id and a date of -1; neither is null on the wire.
        is_nullable = is_nullable and (is_array or kind not in FIXED)
        schema_fields.append(SchemaField(name, kind, is_array, is_nullable, field.metadata.get("tag"), struct))
    return MessageSchema(ours, theirs.__version__, theirs.__flexible__, tuple(schema_fields))


def field_name_of(kio_name: str, kafka_type: str) -> str:
    """Our name for a field of kio, which drops the unit of times."""
    return f"{kio_name}_ms" if kafka_type.startswith(("timedelta", "datetime")) else kio_name
