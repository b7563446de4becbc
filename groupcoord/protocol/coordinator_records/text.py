"""Any record of ``__consumer_offsets`` as a line for people.

Moments are in UTC, ids in Kafka's text form, states have their names, and what consumers told each other within a classic
group is taken apart where it can be read; other bytes are in hexadecimal digits.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from groupcoord.protocol.consumer_protocol import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from groupcoord.protocol.coordinator_records.generic import Fields, RecordKey, RecordValue, id_text, present
from groupcoord.protocol.coordinator_records.schemas import RecordField, RecordStruct
from groupcoord.protocol.errors import WireError


def key_text(key: RecordKey) -> str:
    """``OffsetCommit group="g" topic="t" partition=0``."""
    return " ".join([key.kind.name, *_Words({}, consumers=False).of(key.kind.key, key.fields)])


def value_text(value: RecordValue | None) -> str:
    """``v4 offset=5 leaderEpoch=0 metadata="" commitTimestamp=2026-11-21T18:00:00.000Z``; ``tombstone`` for None."""
    if value is None:
        return "tombstone"
    states = _STATES.get(value.kind.name.partition("Group")[0], {})
    # Classic groups say what their members speak. Of the others only consumers can have members of the classic protocol.
    consumers = value.fields.get("protocolType", PROTOCOL_TYPE) == PROTOCOL_TYPE
    return " ".join([f"v{value.version}", *_Words(states, consumers).of(value.kind.value, value.fields)])


_MEMBER_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 127: "UNKNOWN"}
_STATES: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {
        "Consumer": _MEMBER_STATES,
        "Share": _MEMBER_STATES,
        "Streams": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS", 127: "UNKNOWN"},
    }
)
"""States of members, by the kind of their group (``MemberState`` of the package modern and of the package streams)."""


class _Words(NamedTuple):
    """How the values of one record are told: ``states`` of members by number; do its members speak as ``consumers`` do?"""

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
        if field.name.lower().endswith("timestamp"):
            return _moment(value)
        return self.states.get(value, str(value)) if field.name == "state" else str(value)

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


def _moment(at_ms: int) -> str:
    """ISO 8601; a number that is no moment of the years 1 to 9999 stays a number, and so does -1, for none."""
    seconds, ms = divmod(at_ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    return str(at_ms) if at_ms < 0 else f"{moment:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def _subscription(data: bytes) -> str:
    said: Subscription = read_subscription(data)
    words = [f"topics={_listed(_quoted(topic) for topic in said.topics)}"]
    if said.owned_partitions:
        words.append(f"ownedPartitions={_partitions(said.owned_partitions)}")
    if said.generation_id >= 0:
        words.append(f"generationId={said.generation_id}")
    if said.rack_id is not None:
        words.append(f"rackId={_quoted(said.rack_id)}")
    return _braced([*words, *_user_data(said.user_data)])


def _assignment(data: bytes) -> str:
    said: Assignment = read_assignment(data)
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
