"""Formats any record of ``__consumer_offsets`` or ``__transaction_state``: as a dictionary, as JSON, and as a line of text.

All record types of Kafka 4.3 are supported, also those of groups that this coordinator does not have (see ``schemas``).
``group_records`` has classes for the records that this coordinator writes and loads. The JSON is that of Kafka's own tools
(``OffsetsMessageFormatter``, ``GroupMetadataMessageFormatter``): Kafka's field names, bytes in Base64, ids in Kafka's text
form, without tagged fields that have their default. In the text, times are in UTC, states have their names, and subscriptions
and assignments of classic groups are decoded if possible; other bytes are in hexadecimal.
"""

import base64
import json
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from groupcoord.protocol.coordinator_records.schemas import RECORD_TYPES, RecordField, RecordStruct, RecordType
from groupcoord.protocol.coordinator_records.transaction_log import STATES
from groupcoord.protocol.errors import WireError

Fields = dict[str, Any]
"""Kafka's field names, as in its JSON, and their values: str, int, bytes, UUID (None for the zero id), None, tuples of these,
and nested Fields. Fields that the version lacks are missing, and so may be tagged ones."""


class RecordKey(NamedTuple):
    """The key of a record: its type and fields."""

    record_type: RecordType
    fields: Fields


class RecordValue(NamedTuple):
    """The value of a record: its type, version and fields."""

    record_type: RecordType
    version: int
    fields: Fields


class RecordError(WireError):
    """A key or value is malformed, or of a record type or version that is unknown to Kafka 4.3.

    ``api`` is the name of the key or value (``ConsumerGroupMemberMetadataValue``), ``version``, ``field`` and ``offset`` (bytes
    from the start of the key or value) the place, if they are known.
    """


class UnknownRecordTypeError(RecordError):
    """The key has an unknown record type; a broker skips such records with a warning."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no record type {number}", api="key", offset=0, field="kind")
        self.number = number


class UnknownVersionError(RecordError):
    """The value has an unknown version; a broker fails to load a partition with such a record."""

    def __init__(self, record_type: RecordType, version: int) -> None:
        known = (
            f"{record_type.versions[0]} to {record_type.versions[-1]} are"
            if len(record_type.versions) > 1
            else "only 0 is"
        )
        super().__init__(f"{known} known", api=record_type.value.name, version=version, offset=0, field="version")


def parse_key(data: bytes | None, types: Mapping[int, RecordType] = RECORD_TYPES) -> RecordKey:
    """The key in ``data``, of one of ``types``. Raises RecordError; for an unknown number its subclass
    UnknownRecordTypeError."""
    number = _int16(b"" if data is None else data, "key", "kind")
    record_type = types.get(number)
    if record_type is None:
        raise UnknownRecordTypeError(number)
    return RecordKey(record_type, _read(record_type.key, 0, data or b""))


def group_of(key: RecordKey) -> str | None:
    """The group in this key."""
    group: str | None = key.fields.get("group", key.fields.get("groupId"))
    return group


def parse_value(record_type: RecordType, data: bytes | None) -> RecordValue | None:
    """The value in ``data`` of a record of this type; None is a tombstone.

    Raises RecordError; for an unknown version its subclass UnknownVersionError.
    """
    if data is None:
        return None
    version = _int16(data, record_type.value.name, "version")
    if version not in record_type.versions:
        raise UnknownVersionError(record_type, version)
    return RecordValue(record_type, version, _read(record_type.value, version, data))


def key_json(key: RecordKey) -> dict[str, Any]:
    """``{"type": 1, "data": {"group": …}}``, as Kafka's tools print it."""
    return {"type": key.record_type.number, "data": _plain(key.record_type.key, key.fields)}


def value_json(value: RecordValue | None) -> dict[str, Any] | None:
    """``{"version": 4, "data": {"offset": …}}``, as Kafka's tools print it; None for a tombstone."""
    return value and {"version": value.version, "data": _plain(value.record_type.value, value.fields)}


def id_text(value: uuid.UUID | None) -> str:
    """An id as Kafka prints it: 22 characters of URL-safe Base64."""
    return base64.urlsafe_b64encode(bytes(16) if value is None else value.bytes).rstrip(b"=").decode()


_INT16 = struct.Struct(">h")


def _int16(data: bytes, name: str, field: str) -> int:
    if len(data) < _INT16.size:
        raise RecordError(f"{len(data)} bytes are too few for the {field}", api=name, offset=0, field=field)
    number: int = _INT16.unpack_from(data)[0]
    return number


_CODECS: dict[tuple[str, int], Codec[Fields]] = {}


def _read(part: RecordStruct, version: int, data: bytes) -> Fields:
    codec = _CODECS.get((part.name, version))
    if codec is None:
        codec = _CODECS[part.name, version] = Codec(part.schema(version))
    try:
        return codec.decode(data, _INT16.size)
    except WireError as problem:
        raise RecordError(
            problem.reason, api=part.name, version=version, offset=problem.offset, field=problem.field
        ) from None


def present(part: RecordStruct, fields: Fields) -> Iterator[tuple[RecordField, Any]]:
    """The present fields of ``part``, without tagged ones that have their default."""
    for field in part.fields:
        if field.name in fields and (field.tag is None or fields[field.name] != field.default):
            yield field, fields[field.name]


def _plain(part: RecordStruct, fields: Fields) -> dict[str, Any]:
    return {field.name: _plain_value(field, value) for field, value in present(part, fields)}


def _plain_value(field: RecordField, value: Any) -> Any:
    if field.is_array and value is not None:
        item = field._replace(is_array=False)
        return [_plain_value(item, one) for one in value]
    if field.kind == "uuid":
        return id_text(value)
    if field.kind == "bytes":
        return base64.b64encode(value).decode()
    if field.struct is not None and value is not None:
        return _plain(field.struct, value)
    return value


def key_text(key: RecordKey) -> str:
    """``OffsetCommit group="g" topic="t" partition=0``."""
    return " ".join([key.record_type.name, *_ValueFormatter({}, consumers=False).of(key.record_type.key, key.fields)])


def value_text(value: RecordValue | None) -> str:
    """``v4 offset=5 leaderEpoch=0 metadata="" commitTimestamp=2026-11-21T18:00:00.000Z``; ``tombstone`` for None."""
    if value is None:
        return "tombstone"
    states = _states_of(value.record_type)
    # Classic groups have a protocol type. Of the others only consumer groups can have members with the classic protocol.
    consumers = value.fields.get("protocolType", PROTOCOL_TYPE) == PROTOCOL_TYPE
    return " ".join(
        [f"v{value.version}", *_ValueFormatter(states, consumers).of(value.record_type.value, value.fields)]
    )


_MEMBER_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 127: "UNKNOWN"}
_STATES: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "Consumer": _MEMBER_STATES,
        "Share": _MEMBER_STATES,
        "Streams": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS", 127: "UNKNOWN"},
        "TransactionLog": dict(enumerate(STATES)),
    }
)
"""The states of members, by the kind of group (``MemberState`` of the packages modern and streams), and of transactions."""
_STATE_FIELDS = ("state", "transactionStatus")


def state_name(record_type: RecordType, field: str, value: object) -> str:
    """The name of the state ``value`` of ``field`` in a value of this type; empty if it is not a state."""
    if field not in _STATE_FIELDS or not isinstance(value, int):
        return ""
    return _states_of(record_type).get(value, "")


def _states_of(record_type: RecordType) -> Mapping[int, str]:
    return _STATES.get(record_type.name.partition("Group")[0], {})


class _ValueFormatter(NamedTuple):
    """Formats the values of one record: ``states`` by number; ``consumers``: member metadata is a subscription."""

    states: Mapping[int, str]
    consumers: bool

    def of(self, part: RecordStruct, fields: Fields) -> list[str]:
        return [f"{field.name}={self.value(field, value)}" for field, value in present(part, fields)]

    def value(self, field: RecordField, value: Any) -> str:
        if value is None and field.kind != "uuid":
            return "null"
        if field.is_array:
            item = field._replace(is_array=False)
            return _listed(self.value(item, one) for one in value)
        if field.struct is not None:
            return _braced(self.of(field.struct, value))
        if field.kind == "bytes":
            return self.blob(field.name, value)
        if field.kind == "string":
            return _quoted(value)
        if field.kind == "uuid":
            return id_text(value)
        if field.name.lower().removesuffix("ms").endswith("timestamp"):
            return moment(value)
        return self.states.get(value, str(value)) if field.name in _STATE_FIELDS else str(value)

    def blob(self, name: str, data: bytes) -> str:
        if self.consumers and data:
            try:
                return _BLOBS[name](data)
            except WireError:
                pass
        return data.hex() or '""'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(words: Iterable[str]) -> str:
    return f"[{', '.join(words)}]"


def _braced(words: Iterable[str]) -> str:
    return f"{{{' '.join(words)}}}"


def moment(at_ms: int) -> str:
    """ISO 8601, in UTC; a number outside of the years 1 to 9999 stays a number, and so does -1 (none)."""
    seconds, ms = divmod(at_ms, 1000)
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    return str(at_ms) if at_ms < 0 else f"{when:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def _subscription(data: bytes) -> str:
    said: ConsumerProtocolSubscription = read_subscription(data)
    words = [f"topics={_listed(_quoted(topic) for topic in said.topics)}"]
    if said.owned_partitions:
        words.append(f"ownedPartitions={_partitions(said.owned_partitions)}")
    if said.generation_id >= 0:
        words.append(f"generationId={said.generation_id}")
    if said.rack_id is not None:
        words.append(f"rackId={_quoted(said.rack_id)}")
    return _braced([*words, *_user_data(said.user_data)])


def _assignment(data: bytes) -> str:
    said: ConsumerProtocolAssignment = read_assignment(data)
    return _braced([f"assignedPartitions={_partitions(said.assigned_partitions)}", *_user_data(said.user_data)])


def _partitions(owned: Iterable[TopicPartition]) -> str:
    return _listed(
        _braced([f"topic={_quoted(topic.topic)}", f"partitions={list(topic.partitions)}"]) for topic in owned
    )


def _user_data(data: bytes | None) -> list[str]:
    return [f"userData={data.hex()}"] if data else []


_BLOBS: Mapping[str, Callable[[bytes], str]] = MappingProxyType(
    {"subscription": _subscription, "metadata": _subscription, "assignment": _assignment}
)
