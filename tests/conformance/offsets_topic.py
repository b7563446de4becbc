"""What a group left in ``__consumer_offsets``: found by raw Fetch, decoded by hand.

The layouts are those of Kafka's ``OffsetCommitKey``, ``OffsetCommitValue``, ``GroupMetadataKey`` and ``GroupMetadataValue``.
groupcoord has a decoder of its own; the stories do not use it, so that one mistake cannot hide on both sides.
"""

import struct
import uuid
from typing import Any

from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from groupcoord.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
)
from tests.conformance.batches import end_of, raw_records
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
        return {"type": kind, "undecoded": self.data.hex()}

    def value(self, key: dict[str, Any]) -> dict[str, Any]:
        version = self._number("h", 2)
        shown: dict[str, Any] = {"version": version}
        if key["type"] in {0, 1}:
            self.flexible = version >= 4
            shown |= self._offset(version)
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
