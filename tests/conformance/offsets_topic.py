"""Reads a group's records in ``__consumer_offsets`` with raw Fetch requests, and decodes them with its own decoder.

The layouts are those of Kafka's ``OffsetCommitKey``, ``OffsetCommitValue``, ``GroupMetadataKey``, ``GroupMetadataValue``, and,
for the consumer groups of KIP-848, ``ConsumerGroupMetadataKey`` and so on. groupcoord has a decoder of its own; the stories do
not use it, so that one mistake cannot hide on both sides.
"""

import itertools
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
)
from tests.conformance.batches import end_of, raw_records
from tests.conformance.normalise import Names, is_random
from tests.conformance.plain import text_of

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 50


def partition_of(group_id: str) -> int:
    """Kafka's ``Utils.abs(groupId.hashCode()) % 50``."""
    value = 0
    units = group_id.encode("utf-16-be")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % PARTITIONS


def end_request(partition: int) -> ListOffsetsRequest:
    """Asks where partition ``partition`` of the offsets topic ends."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=(wanted,)),))


def fetch_request(partition: int, offset: int) -> FetchRequest:
    """Asks for the records from ``offset`` on; version 12, the last that says topics by name."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24)
    topic = FetchTopic(topic=OFFSETS_TOPIC, partitions=(wanted,))
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 24, topics=(topic,))


def records_of(data: bytes, group_ids: set[str]) -> list[dict[str, Any]]:
    """The records in ``data`` that belong to one of ``group_ids``, in log order."""
    shown = []
    for _, key, value in raw_records(data):
        if key is None:
            continue
        decoded = _Reader(key).key()
        if decoded.get("group") in group_ids:
            shown.append({"key": decoded, "value": None if value is None else _Reader(value).value(decoded)})
    return shown


def in_comparable_order(records: list[dict[str, Any]], names: Names) -> list[dict[str, Any]]:
    """``records``, where those that a consumer group writes for its members one after the other are sorted by member.

    They come in the order of hash maps over member ids. Only where one of the ids is random is that order not compared.
    """
    ordered: list[dict[str, Any]] = []
    for _, run in itertools.groupby(records, _kind_of):
        members = list(run)
        if members[0]["key"]["type"] in {5, 7, 8} and any(is_random(each["key"]["member_id"]) for each in members):
            members.sort(key=lambda record: names.member(record["key"]["member_id"]))
        ordered += members
    return ordered


def _kind_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["key"]["type"], record["key"]["group"], record["value"] is None


def next_offset(data: bytes, start_offset: int) -> int:
    """Where to fetch on."""
    return end_of(data, start_offset)


class _Reader:
    """Reads one key or value, old style (int16 lengths) or flexible (varints)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.flexible = data, 0, False

    def key(self) -> dict[str, Any]:
        kind = self._number("h", 2)
        if kind in {0, 1}:
            return {
                "type": kind,
                "group": self._string(),
                "topic": self._string(),
                "partition": self._number("i", 4),
                **self._rest(),
            }
        if kind == 2:
            return {"type": kind, "group": self._string(), **self._rest()}
        if kind in CONSUMER_GROUP:
            more = {5: "member_id", 7: "member_id", 8: "member_id", 16: "regex"}.get(kind)
            group = self._string()
            return {"type": kind, "group": group, **({more: self._string()} if more else {}), **self._rest()}
        return {"type": kind, "undecoded": self.data.hex()}

    def value(self, key: dict[str, Any]) -> dict[str, Any]:
        version = self._number("h", 2)
        shown: dict[str, Any] = {"version": version}
        if key["type"] in {0, 1}:
            self.flexible = version >= 4
            shown |= self._offset(version)
        elif key["type"] in CONSUMER_GROUP:
            self.flexible = True
            shown |= CONSUMER_GROUP[key["type"]](self)
        else:
            self.flexible = version >= 4
            shown |= self._group(version)
        return shown | self._rest()

    def _offset(self, version: int) -> dict[str, Any]:
        shown: dict[str, Any] = {"offset": self._number("q", 8)}
        if version >= 3:
            shown["leader_epoch"] = self._number("i", 4)
        shown["metadata"] = self._string()
        shown["commit_timestamp"] = self._number("q", 8)
        if version == 1:
            shown["expire_timestamp"] = self._number("q", 8)
        if self.flexible:
            shown |= self._tags()
        return shown

    def _group(self, version: int) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "protocol_type": self._string(),
            "generation": self._number("i", 4),
            "protocol": self._string(),
            "leader": self._string(),
        }
        if version >= 2:
            shown["current_state_timestamp"] = self._number("q", 8)
        shown["members"] = [self._member(version) for _ in range(self._length(4))]
        if self.flexible:
            shown |= self._tags()
        return shown

    def _member(self, version: int) -> dict[str, Any]:
        shown: dict[str, Any] = {"member_id": self._string()}
        if version >= 3:
            shown["group_instance_id"] = self._string()
        shown["client_id"] = self._string()
        shown["client_host"] = self._string()
        if version >= 1:
            shown["rebalance_timeout_ms"] = self._number("i", 4)
        shown["session_timeout_ms"] = self._number("i", 4)
        shown["subscription"] = self._bytes()
        shown["assignment"] = self._bytes()
        if self.flexible:
            shown |= self._tags()
        return shown

    def _consumer_group(self) -> dict[str, Any]:
        return {"epoch": self._number("i", 4), **self._tagged({0: ("metadata_hash", lambda: self._number("q", 8))})}

    def _partition_metadata(self) -> dict[str, Any]:
        return {"undecoded": self._take(len(self.data) - self.at).hex()}  # Kafka has not written it since 4.1

    def _consumer_member(self) -> dict[str, Any]:
        shown = {
            "instance_id": self._string(),
            "rack_id": self._string(),
            "client_id": self._string(),
            "client_host": self._string(),
            "subscribed_topic_names": [self._string() for _ in range(self._length(4))],
            "subscribed_topic_regex": self._string(),
            "rebalance_timeout_ms": self._number("i", 4),
            "server_assignor": self._string(),
        }
        return shown | self._tagged({0: ("classic_member_metadata", self._classic_member)})

    def _classic_member(self) -> dict[str, Any] | None:
        if self._varint() == 0:
            return None
        shown: dict[str, Any] = {"session_timeout_ms": self._number("i", 4), "supported_protocols": []}
        for _ in range(self._length(4)):
            shown["supported_protocols"].append({"name": self._string(), "metadata": self._bytes(), **self._tagged({})})
        return shown | self._tagged({})

    def _target_epoch(self) -> dict[str, Any]:
        timestamp = {0: ("assignment_timestamp", lambda: self._number("q", 8))}
        return {"assignment_epoch": self._number("i", 4), **self._tagged(timestamp)}

    def _target(self) -> dict[str, Any]:
        return {"topic_partitions": self._partitions(), **self._tagged({})}

    def _current(self) -> dict[str, Any]:
        return {
            "member_epoch": self._number("i", 4),
            "previous_member_epoch": self._number("i", 4),
            "state": self._number("b", 1),
            "assigned_partitions": self._partitions(),
            "partitions_pending_revocation": self._partitions(),
            **self._tagged({}),
        }

    def _partitions(self) -> list[dict[str, Any]]:
        shown = []
        for _ in range(self._length(4)):
            topic = {"topic_id": str(uuid.UUID(bytes=self._take(16))), "partitions": self._integers()}
            shown.append(topic | self._tagged({0: ("assignment_epochs", self._integers)}))
        return shown

    def _integers(self) -> list[int] | None:
        size = self._length(4)
        return None if size < 0 else [self._number("i", 4) for _ in range(size)]

    def _regex(self) -> dict[str, Any]:
        return {
            "topics": [self._string() for _ in range(self._length(4))],
            "metadata_version": self._number("q", 8),
            "timestamp": self._number("q", 8),
            **self._tagged({}),
        }

    def _tagged(self, known: dict[int, tuple[str, Callable[[], Any]]]) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            end = self.at + size
            name, read = known.get(tag, (f"tag {tag}", lambda size=size: self._take(size).hex()))
            shown[name] = read()
            if self.at != end:
                shown[f"{name} of another size"] = size
        return shown

    def _number(self, code: str, size: int) -> int:
        (value,) = struct.unpack_from(f">{code}", self.data, self.at)
        self.at += size
        return int(value)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _length(self, size: int) -> int:
        if self.flexible:
            return self._varint() - 1
        return self._number("h" if size == 2 else "i", size)

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def _string(self) -> str | None:
        size = self._length(2)
        return None if size < 0 else self._take(size).decode()

    def _bytes(self) -> str | None:
        size = self._length(4)
        return None if size < 0 else text_of(self._take(size))

    def _tags(self) -> dict[str, Any]:
        shown: dict[str, Any] = {}
        for _ in range(self._varint()):
            tag = self._varint()
            data = self._take(self._varint())
            shown["topic_id" if tag == 0 else f"tag {tag}"] = str(uuid.UUID(bytes=data)) if tag == 0 else data.hex()
        return shown

    def _rest(self) -> dict[str, Any]:
        left = self.data[self.at :]
        return {"trailing bytes": left.hex()} if left else {}


CONSUMER_GROUP: Mapping[int, Callable[[_Reader], dict[str, Any]]] = {
    3: _Reader._consumer_group,
    4: _Reader._partition_metadata,
    5: _Reader._consumer_member,
    6: _Reader._target_epoch,
    7: _Reader._target,
    8: _Reader._current,
    16: _Reader._regex,
}
"""The values of consumer groups by the type of their record."""
