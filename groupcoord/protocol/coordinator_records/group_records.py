"""The records of groups and offsets in ``__consumer_offsets``: dataclasses, reading and writing
(``GroupCoordinatorRecordSerde``).

A key is an int16 record type and its fields; a value is an int16 version and its fields; a null value is a tombstone.
Sources: ``CoordinatorRecordType``, ``OffsetCommitKey.json``, ``OffsetCommitValue.json``, ``GroupMetadataKey.json``,
``GroupMetadataValue.json``. ``consumer_group_records`` has the classes of KIP-848; records of share groups and of Streams
groups have none.
"""

import dataclasses
import struct
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField, parse_annotation
from groupcoord.protocol.coordinator_records import consumer_group_records as consumer
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES, RecordStruct
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.message_dataclass import message

OFFSET_COMMIT_VALUE_VERSION = 4
"""The version that Kafka 4.3 writes for a commit without an expire time."""
OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION = 1
"""The only version that has an expire time; it has no leader epoch and no topic id."""
GROUP_METADATA_VALUE_VERSION = 3
"""The version that Kafka 4.3 writes; it reads version 4 too."""


@message
class OffsetCommitKey:
    """The key of a committed offset: record types 0 and 1, which have the same fields; Kafka writes 1."""

    group: str
    topic: str
    partition: int


@message
class OffsetCommitValue:
    """A committed offset: versions 0–4."""

    offset: int
    leader_epoch: int = -1  # v3+
    metadata: str
    commit_timestamp_ms: int  # when the coordinator received the commit
    expire_timestamp_ms: int = -1  # v1; -1: by the broker's retention
    topic_id: uuid.UUID | None = None  # v4+, tag 0


@message
class GroupMetadataKey:
    """The key of a classic group (record type 2)."""

    group: str


@message
class MemberMetadata:
    """One member of the generation: versions 0–4."""

    member_id: str
    group_instance_id: str | None = None  # v3+
    client_id: str
    client_host: str
    rebalance_timeout_ms: int = -1  # v1+
    session_timeout_ms: int
    subscription: bytes  # the member's metadata for the chosen protocol
    assignment: bytes


@message
class GroupMetadataValue:
    """A classic group in one generation: versions 0–4."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1  # v2+; when the group entered its state
    members: tuple[MemberMetadata, ...] = ()


class UnknownKey(NamedTuple):
    """A key with a record type without a class here."""

    record_type: int


Key = OffsetCommitKey | GroupMetadataKey | consumer.ConsumerGroupKey
Value = OffsetCommitValue | GroupMetadataValue | consumer.ConsumerGroupValue


def write_key(key: Key) -> bytes:
    """The bytes of ``key``, its record type first. Equal keys give equal bytes, as compaction needs."""
    record_type = _WRITTEN_TYPES[type(key)]
    return _INT16.pack(record_type) + _CODECS[type(key), record_type].encode(key)


def write_value(value: Value, version: int) -> bytes:
    """The bytes of ``value`` at ``version``; fields that the version does not have are omitted, as by Kafka."""
    return _INT16.pack(version) + _CODECS[type(value), version].encode(value)


def read_key(data: bytes) -> Key | UnknownKey:
    """The key in ``data``. Raises WireError for a malformed key of a known record type."""
    record_type = _version(data, "record type")
    classes = _CLASSES.get(record_type)
    if classes is None:
        return UnknownKey(record_type)
    key: Key = _CODECS[classes[0], record_type].decode(data, _INT16.size)
    return key


def read_value(key: Key, data: bytes | None) -> Value | None:
    """The value in ``data`` of a record with ``key``; None is a tombstone. Raises WireError."""
    if data is None:
        return None
    record_type = _WRITTEN_TYPES[type(key)]
    value_class, versions = _CLASSES[record_type][1], RECORD_TYPES[record_type].versions
    version = _version(data, "version")
    if version not in versions:
        known = (
            f"versions {versions[0]} to {versions[-1]} are known" if len(versions) > 1 else "only version 0 is known"
        )
        raise WireError(known, api=value_class.__name__, version=version, offset=0, field="version")
    value: Value = _CODECS[value_class, version].decode(data, _INT16.size)
    return value


_INT16 = struct.Struct(">h")
_CLASSES: dict[int, tuple[type[Key], type[Value]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
    4: (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue),
    5: (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
    6: (consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue),
    7: (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue),
    8: (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
    16: (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue),
}
"""The classes of keys and values by record type. Type 0, the old one for offsets, is not written."""

_WRITTEN_TYPES: dict[type[Key], int] = {classes[0]: record_type for record_type, classes in _CLASSES.items()}


def _version(data: bytes, field: str) -> int:
    if len(data) < _INT16.size:
        raise WireError(f"a record of __consumer_offsets cannot have {len(data)} bytes", offset=0, field=field)
    version: int = _INT16.unpack_from(data)[0]
    return version


def schema_of(cls: type[Any], struct: RecordStruct, version: int) -> MessageSchema:
    """The schema of ``cls``, whose fields are those of ``struct`` in the same order."""
    schema_fields = []
    for stored, field in zip(struct.fields, dataclasses.fields(cls), strict=True):
        if version in stored.versions:
            of = stored.struct and schema_of(parse_annotation(field.type).inner, stored.struct, version)
            schema_fields.append(
                SchemaField(field.name, stored.kind, stored.is_array, stored.is_nullable, stored.tag, of)
            )
    return MessageSchema(cls, version, flexible=version >= struct.flexible_from, fields=tuple(schema_fields))


def _codecs() -> Iterator[tuple[tuple[type[Any], int], Codec[Any]]]:
    """Codecs by class and, of a key, record type, of a value, version."""
    for record_type, (key_class, value_class) in _CLASSES.items():
        stored = RECORD_TYPES[record_type]
        yield (key_class, record_type), Codec(schema_of(key_class, stored.key, 0)._replace(version=record_type))
        for version in stored.versions if record_type else ():
            yield (value_class, version), Codec(schema_of(value_class, stored.value, version))


_CODECS = dict(_codecs())
