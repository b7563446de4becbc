"""The message schemas of all APIs of Kafka 4.3 in all versions, served here or not, with Kafka's field descriptions.

Both come from kio, whose classes are generated from Kafka's message definitions: schemas as in the server's codec, descriptions
from the docstrings of fields.
"""

import ast
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from groupcoord.protocol.codec.schema import MessageSchema, field_name_of, parse_annotation, schema_of
from groupcoord.protocol.errors import WireError


class FieldNote(NamedTuple):
    """kio's information about a field: its detailed type (``error_code``, ``timedelta_i32``), and Kafka's description."""

    kafka_type: str
    description: str


class MessageLayout(NamedTuple):
    """A request or response in one version; ``notes`` are by path without indexes (``topics.name``)."""

    api: str
    version: int
    schema: MessageSchema
    flexible_header: bool
    notes: Mapping[str, FieldNote]


def api_name(key: int) -> str:
    """The name of the API (``JoinGroup``). Raises WireError for an unknown API key."""
    name = api_key_map.get(key)
    if name is None:
        raise WireError(f"{key} is no API of Kafka 4.3", offset=0, field="request_api_key")
    class_name: str = _class_of(name, max(schema_name_map[name]), EntityType.request).__name__
    return class_name.removesuffix("Request")


@cache
def request_layout(key: int, version: int) -> MessageLayout:
    """The layout of requests. Raises WireError for an API or version that Kafka 4.3 does not have."""
    return _layout(key, version, EntityType.request)


@cache
def response_layout(key: int, version: int) -> MessageLayout:
    """The layout of responses. Raises WireError for an API or version that Kafka 4.3 does not have."""
    return _layout(key, version, EntityType.response)


@cache
def data_notes(name: str, version: int) -> Mapping[str, FieldNote]:
    """The notes of a message that is not a request or response, by kio's name."""
    return MappingProxyType(dict(_notes(_class_of(name, version, EntityType.data), "")))


def _layout(key: int, version: int, kind: EntityType) -> MessageLayout:
    api = api_name(key)
    name = api_key_map[key]
    versions = schema_name_map[name]
    if version not in versions:
        known = f"{min(versions)} to {max(versions)}"
        raise WireError(
            f"{api} has no version {version} in Kafka 4.3; {known} are known",
            api=api,
            version=version,
            offset=2,
            field="request_api_version",
        )
    theirs = _class_of(name, version, kind)
    header: Any = theirs.__header_schema__
    return MessageLayout(
        api, version, schema_of(theirs, theirs), header.__flexible__, MappingProxyType(dict(_notes(theirs, "")))
    )


def _class_of(name: str, version: int, kind: Any) -> Any:
    module, _, class_name = schema_name_map[name][version][kind].partition(":")
    return getattr(import_module(module), class_name)


def _notes(theirs: Any, dot: str) -> Iterator[tuple[str, FieldNote]]:
    described = _descriptions(theirs.__module__).get(theirs.__name__, {})
    for field in dataclasses.fields(theirs):
        kafka_type = field.metadata.get("kafka_type", "struct")
        path = f"{dot}{field_name_of(field.name, kafka_type)}"
        yield path, FieldNote(kafka_type, described.get(field.name, ""))
        if kafka_type == "struct":
            yield from _notes(parse_annotation(field.type).inner, f"{path}.")


@cache
def _descriptions(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of fields in the classes of a module: by class, by field."""
    found: dict[str, dict[str, str]] = {}
    for part in ast.parse(inspect.getsource(import_module(module))).body:
        if isinstance(part, ast.ClassDef):
            for line, behind in zip(part.body, part.body[1:], strict=False):
                match line, behind:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found.setdefault(part.name, {})[name] = " ".join(text.split())
    return MappingProxyType(found)
