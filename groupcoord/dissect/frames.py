"""Dissects a request or response frame field by field: header, body, and embedded messages."""

import struct
import uuid
from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType

from groupcoord.dissect.dissection import (
    DissectedField,
    Dissection,
    Problem,
    dissection,
    moved,
    with_rest,
)
from groupcoord.dissect.embedded_messages import INDEX, Dissect, assignment, opened, schema_fields, subscription
from groupcoord.dissect.meanings import meaning_of
from groupcoord.dissect.message_schemas import FieldNote, MessageLayout, api_name, request_layout, response_layout
from groupcoord.dissect.record_batches import record_batch_fields
from groupcoord.protocol.api_descriptor import ApiKey
from groupcoord.protocol.codec.field_by_field_decoder import iter_fields
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import REQUEST_HEADER

_INT32, _API_AND_VERSION = struct.Struct(">i"), struct.Struct(">hh")
_CORRELATION_ID = MessageSchema(dict, 0, flexible=False, fields=(SchemaField("correlation_id", "int32"),))
_SIZE = MessageSchema(dict, 0, flexible=False, fields=(SchemaField("frame_length_bytes", "int32"),))
_UNSUPPORTED_VERSION = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_NO_NOTE = FieldNote("", "")
_TAGGED_FIELDS = MessageSchema(dict, 1, flexible=True, fields=())
"""Flexible headers end with tagged fields, of which Kafka has none so far."""
_BLOBS: Mapping[tuple[str, str], Dissect] = MappingProxyType(
    {
        ("JoinGroupRequest", "protocols.metadata"): subscription,
        ("JoinGroupResponse", "members.metadata"): subscription,
        ("SyncGroupRequest", "assignments.assignment"): assignment,
        ("SyncGroupResponse", "assignment"): assignment,
        ("DescribeGroupsResponse", "groups.members.member_metadata"): subscription,
        ("DescribeGroupsResponse", "groups.members.member_assignment"): assignment,
    }
)
"""Byte fields with known contents if the protocol type is ``consumer``: by message and path."""


def dissect_request(
    frame: bytes, *, sized: bool = False, topic_names: Mapping[uuid.UUID, str] = MappingProxyType({})
) -> Dissection:
    """The request in ``frame``, which begins with its int32 length if it is ``sized``.

    ``topic_names`` has the names of topic ids: since v13 Produce and Fetch have only ids, and names tell how to read records.
    Nothing is raised: errors are the ``problem`` of the result.
    """
    data = frame[4:] if sized else frame
    return _dissect(_request_title(data), frame, sized, _request_fields(data, topic_names))


def dissect_response(
    frame: bytes,
    api_key: int,
    version: int,
    *,
    sized: bool = False,
    topic_names: Mapping[uuid.UUID, str] = MappingProxyType({}),
) -> Dissection:
    """The response in ``frame`` to a request of that API and version; otherwise as ``dissect_request``."""
    data = frame[4:] if sized else frame
    title = f"{name_of(api_key)} v{version} response"
    return _dissect(title, frame, sized, _response_fields(data, api_key, version, topic_names))


def name_of(api_key: int) -> str:
    """The name of the API, or its number if Kafka 4.3 does not have it."""
    try:
        return api_name(api_key)
    except WireError:
        return f"API {api_key}"


def _request_title(data: bytes) -> str:
    if len(data) < _API_AND_VERSION.size:
        return "request without a header"
    key, version = _API_AND_VERSION.unpack_from(data)
    return f"{name_of(key)} v{version} request"


def _dissect(title: str, frame: bytes, sized: bool, fields: Iterator[DissectedField]) -> Dissection:
    if not sized:
        return dissection(title, frame, fields)
    if len(frame) < _INT32.size:
        return dissection(title, frame, schema_fields(_SIZE, frame))
    (size,) = _INT32.unpack_from(frame)
    here = len(frame) - _INT32.size
    found = dissection(title, frame, chain(schema_fields(_SIZE, frame), moved(fields, _INT32.size)))
    if size <= here:
        return found
    cut = f"the frame is cut: {size} bytes should follow its length, {here} are here"
    where, reason = found.problem or (len(frame), "")
    return found._replace(problem=Problem(where, f"{cut}; {reason}" if reason else cut))


def _request_fields(data: bytes, topic_names: Mapping[uuid.UUID, str]) -> Iterator[DissectedField]:
    end = 0
    for field in schema_fields(REQUEST_HEADER.schema, data):
        end = field.end
        yield field
    key, version = _API_AND_VERSION.unpack_from(data)
    layout = request_layout(key, version)
    yield from _message_fields(layout, data, end, topic_names)


def _response_fields(
    data: bytes, key: int, version: int, topic_names: Mapping[uuid.UUID, str]
) -> Iterator[DissectedField]:
    yield from schema_fields(_CORRELATION_ID, data)
    if key == ApiKey.API_VERSIONS and data[4:6] == _UNSUPPORTED_VERSION:
        version = 0  # so that a client of any version can read the supported versions
    yield from _message_fields(response_layout(key, version), data, _INT32.size, topic_names)


def _message_fields(
    layout: MessageLayout, data: bytes, at: int, topic_names: Mapping[uuid.UUID, str]
) -> Iterator[DissectedField]:
    """The end of the header at ``at``, and the message after it."""
    if layout.flexible_header:
        for field in schema_fields(_TAGGED_FIELDS, data, at):
            at = field.end
            yield field._replace(path=f"header {field.path}")
    seen: dict[str, object] = {}
    for path, offset, size, value, kind in iter_fields(layout.schema, data, at, every_byte=True):
        plain = INDEX.sub("", path)
        name = plain.rpartition(".")[2]
        kafka_type, description = layout.notes.get(plain, _NO_NOTE)
        seen[name] = value
        meaning = "" if "array" in kind else meaning_of(layout.api, name, kafka_type, value)
        field = DissectedField(offset, offset + size, path, kind, value, meaning, description)
        blob = _BLOBS.get((layout.schema.message.__name__, plain))
        if not isinstance(value, bytes):
            yield field
        elif kafka_type == "records":
            start = field.end - len(value)
            yield field._replace(end=start, value=len(value), meaning="bytes of record batches, which follow")
            yield from moved(with_rest(record_batch_fields(value, _topic(seen, topic_names)), value), start, path)
        elif blob is not None and seen.get("protocol_type", PROTOCOL_TYPE) in (PROTOCOL_TYPE, None):
            yield from opened(field, blob)
        else:
            yield field


def _topic(seen: Mapping[str, object], topic_names: Mapping[uuid.UUID, str]) -> str | None:
    """The last topic seen, by name or by id."""
    name = seen.get("topic", seen.get("name"))
    topic_id = seen.get("topic_id")
    return name if isinstance(name, str) else topic_names.get(topic_id) if isinstance(topic_id, uuid.UUID) else None
