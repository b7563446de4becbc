"""TopicsView, a read-only view of the broker's topics, and the metadata hash in the record of a consumer group.

Sources: ``CoordinatorMetadataImage``; ``Utils.computeTopicHash`` and ``computeGroupHash`` of the group coordinator.
"""

import struct
import uuid
from collections.abc import Iterable, Sequence
from typing import Protocol

import xxhash


class TopicsView(Protocol):
    """A read-only view of the topics, which the broker implements (``CoordinatorMetadataImage``)."""

    @property
    def version(self) -> int:
        """A number that increases whenever topics, their partitions or the brokers of these change."""

    @property
    def version_of_newest(self) -> int:
        """The version in which the newest topic was created."""

    def names(self) -> Iterable[str]:
        """The names of all topics."""

    def partition_count(self, name: str) -> int | None:
        """The number of partitions of topic ``name``, or None if it does not exist."""

    def partition_racks(self, name: str) -> Sequence[Sequence[str]]:
        """The racks of the replicas of each partition of topic ``name``, for brokers with racks. Raises KeyError."""

    def topic_id(self, name: str) -> uuid.UUID | None:
        """The id of topic ``name``, or None."""

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with ``topic_id``, or None."""


class SubscribedTopics:
    """The topic metadata for consumer groups; hashes are cached until topics change."""

    def __init__(self, view: TopicsView) -> None:
        self.view = view
        self._hashes: dict[str, int] = {}
        self._version = -1

    def group_hash(self, names: Iterable[str]) -> int:
        """The signed 64-bit hash over those of these topics that exist; 0 if none does (``computeGroupHash``)."""
        if self.view.version != self._version:
            self._hashes.clear()
            self._version = self.view.version
        ids = ((name, self.view.topic_id(name)) for name in sorted(names))
        hashes = [self._topic_hash(name, topic_id) for name, topic_id in ids if topic_id is not None]
        return _signed(xxhash.xxh3_64_intdigest(struct.pack(f"<{len(hashes)}q", *hashes))) if hashes else 0

    def _topic_hash(self, name: str, topic_id: uuid.UUID) -> int:
        found = self._hashes.get(name)
        if found is None:
            found = self._hashes[name] = self._computed(name, topic_id)
        return found

    def _computed(self, name: str, topic_id: uuid.UUID) -> int:
        racks = self.view.partition_racks(name)
        text = b"\0" + struct.pack("<QQ", topic_id.int >> 64, topic_id.int & 0xFFFFFFFFFFFFFFFF)
        text += _string(name) + struct.pack("<i", len(racks))
        for partition, of_partition in enumerate(racks):
            text += struct.pack("<i", partition)
            for rack in sorted(of_partition):
                text += struct.pack("<i", len(rack.encode("utf-16-le")) // 2) + _string(rack)
        return _signed(xxhash.xxh3_64_intdigest(text))


def _string(text: str) -> bytes:
    """A string as hash4j's ``putString`` hashes it: its UTF-16 code units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + struct.pack("<i", len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
