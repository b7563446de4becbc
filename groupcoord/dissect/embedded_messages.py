"""Dissects messages embedded in byte fields: consumers' subscriptions and assignments, and records of coordinator topics."""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from groupcoord.dissect.dissection import DissectedField, moved
from groupcoord.dissect.meanings import meaning_of
from groupcoord.dissect.message_schemas import data_notes
from groupcoord.protocol.codec.field_by_field_decoder import iter_fields
from groupcoord.protocol.codec.message_codec import Codec, codec_for
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from groupcoord.protocol.consumer_protocol import (
    HIGHEST_VERSION,
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from groupcoord.protocol.coordinator_records.record_formatting import state_name
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES, RecordType
from groupcoord.protocol.coordinator_records.transaction_log import TRANSACTION_STATE_TYPES
from groupcoord.protocol.errors import WireError

INDEX = re.compile(r"\[\d+\]")
"""An index in a path; paths of notes have none."""
FOLLOWS = "bytes, which are the fields that follow"
Dissect = Callable[[bytes], Iterator[DissectedField]]
"""Yields the fields of a message in bytes. Raises WireError if they are not one."""

COORDINATOR_TOPICS: Mapping[str, Mapping[int, RecordType]] = MappingProxyType(
    {"__consumer_offsets": RECORD_TYPES, "__transaction_state": TRANSACTION_STATE_TYPES}
)
"""The record types of each coordinator topic."""
_INT16 = struct.Struct(">h")


def schema_fields(schema: MessageSchema, data: bytes, at: int = 0) -> Iterator[DissectedField]:
    """The fields of ``schema`` from ``at`` on, with meanings that follow from their names. Raises WireError."""
    for path, offset, size, value, kind in iter_fields(schema, data, at, every_byte=True):
        name = path.rpartition(".")[2]
        yield DissectedField(offset, offset + size, path, kind, value, meaning_of("", name, "", value))


def subscription(data: bytes) -> Iterator[DissectedField]:
    """The subscription of a consumer (``ConsumerProtocolSubscription.json``). Raises WireError."""
    return _versioned(ConsumerProtocolSubscription, "consumer_protocol_subscription", data)


def assignment(data: bytes) -> Iterator[DissectedField]:
    """The assignment of a consumer (``ConsumerProtocolAssignment.json``). Raises WireError."""
    return _versioned(ConsumerProtocolAssignment, "consumer_protocol_assignment", data)


def _versioned(message: type, package: str, data: bytes) -> Iterator[DissectedField]:
    version = _int16(data, message.__name__, "version")
    if version < 0:
        raise WireError(f"version {version} is negative", api=message.__name__, offset=0, field="version")
    meaning = "" if version <= HIGHEST_VERSION else f"read as {HIGHEST_VERSION}, the highest that is known"
    yield DissectedField(0, 2, "version", "int16", version, meaning)
    codec: Codec[Any] = codec_for(message, package, min(version, HIGHEST_VERSION), "data")
    notes = data_notes(package, codec.schema.version)
    for field in schema_fields(codec.schema, data, 2):
        note = notes.get(INDEX.sub("", field.path))
        yield field if note is None else field._replace(description=note.description)


def is_read_whole(dissect: Dissect, data: bytes) -> bool:
    """Are the bytes exactly such a message, and not empty?"""
    try:
        return max((field.end for field in dissect(data)), default=0) == len(data) > 0
    except WireError:
        return False


def record_key(types: Mapping[int, RecordType], data: bytes) -> Iterator[DissectedField]:
    """The fields of a key in a coordinator topic. Raises WireError."""
    number = _int16(data, "key", "record_type")
    record_type = types.get(number)
    name = "no record type that Kafka 4.3 knows" if record_type is None else record_type.name
    yield DissectedField(0, 2, "record_type", "int16", number, name)
    if record_type is not None:
        yield from schema_fields(record_type.key.schema(0), data, 2)


def record_value(types: Mapping[int, RecordType], key: bytes | None, data: bytes) -> Iterator[DissectedField]:
    """The fields of a value with this key; none if the key has an unknown type. Raises WireError."""
    record_type = types.get(_int16(key or b"", "key", "record_type"))
    if record_type is None:
        return
    name = record_type.value.name
    version = _int16(data, name, "version")
    if version not in record_type.versions:
        known = f"{record_type.versions[0]} to {record_type.versions[-1]} are known"
        raise WireError(
            f"{name} has no version {version}; {known}", api=name, version=version, offset=0, field="version"
        )
    yield DissectedField(0, 2, "version", "int16", version, name)
    protocol_type: object = PROTOCOL_TYPE
    for field in schema_fields(record_type.value.schema(version), data, 2):
        leaf = field.path.rpartition(".")[2]
        if leaf == "protocolType":
            protocol_type = field.value
        inner = _BLOBS.get(leaf)
        if inner is not None and protocol_type == PROTOCOL_TYPE:
            yield from opened(field, inner)
        else:
            yield field._replace(meaning=field.meaning or state_name(record_type, leaf, field.value))


_BLOBS: Mapping[str, Dissect] = MappingProxyType(
    {"subscription": subscription, "metadata": subscription, "assignment": assignment}
)


def opened(field: DissectedField, dissect: Dissect) -> Iterator[DissectedField]:
    """The length of a byte ``field``, and the fields of the message in it; the field itself if it has no such message."""
    content = field.value
    if not isinstance(content, bytes) or not is_read_whole(dissect, content):
        yield field
        return
    start = field.end - len(content)
    yield field._replace(end=start, value=len(content), meaning=FOLLOWS)
    yield from moved(dissect(content), start, field.path)


def _int16(data: bytes, api: str, field: str) -> int:
    if len(data) < _INT16.size:
        raise WireError(f"{len(data)} bytes are too few for the {field}", api=api, offset=0, field=field)
    number: int = _INT16.unpack_from(data)[0]
    return number


MARKER_KEY = MessageSchema(
    dict, 0, flexible=False, fields=(SchemaField("version", "int16"), SchemaField("type", "int16"))
)
MARKER_VALUE = MessageSchema(
    dict, 0, flexible=False, fields=(SchemaField("version", "int16"), SchemaField("coordinator_epoch", "int32"))
)
