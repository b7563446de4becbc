"""The user data of the sticky assignors, byte for byte. Sources: ``StickyAssignor``, ``CooperativeStickyAssignor``.

Sticky's has no version: V0 is an array of (topic, array of int32 partitions), V1 has an int32 generation behind it. It is
read as V1, then as V0; what follows is ignored, so that a reader of V0 can read V1. Cooperative-sticky's is an int32.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from groupcoord.assignors.model import TopicPartition
from groupcoord.core.java import computed_map_order, string_hash

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class UnreadableUserData(ValueError):
    """These bytes are not an assignor's user data."""


class StickyUserData(NamedTuple):
    """What a member says it had; ``generation`` is None in V0."""

    partitions: list[TopicPartition]
    generation: int | None


def write_sticky(partitions: Sequence[TopicPartition], generation: int | None) -> bytes:
    """``partitions`` as V1, or as V0 if ``generation`` is None.

    Grouped by topic, the topics in the order of the ``HashMap`` that Kafka groups them with.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    written = [_INT32.pack(len(by_topic))]
    for topic in computed_map_order([topic for topic, _ in partitions], string_hash):
        name, numbers = topic.encode(), by_topic[topic]
        written += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if generation is not None:
        written.append(_INT32.pack(generation))
    return b"".join(written)


def read_sticky(data: bytes) -> StickyUserData:
    """What is in ``data``. Raises UnreadableUserData."""
    try:
        partitions, at = _read_partitions(data)
    except struct.error as error:
        raise UnreadableUserData(str(error)) from None
    generation = _INT32.unpack_from(data, at)[0] if len(data) >= at + _INT32.size else None
    return StickyUserData(partitions, generation)


def _read_partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    partitions: list[TopicPartition] = []
    (topics,) = _INT32.unpack_from(data)
    at, size = _INT32.size, len(data)
    if topics < 0:
        raise UnreadableUserData("a negative number of topics")
    for _ in range(topics):
        (length,) = _INT16.unpack_from(data, at)
        start = at + _INT16.size
        at = start + length
        if not start <= at <= size:
            raise UnreadableUserData("a topic that is longer than the data")
        topic = _text(data[start:at])
        (count,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        if not 0 <= count <= (size - at) // _INT32.size:
            raise UnreadableUserData("more partitions than data")
        partitions += [(topic, partition) for partition in struct.unpack_from(f">{count}i", data, at)]
        at += count * _INT32.size
    return partitions, at


@lru_cache(maxsize=4096)
def _text(name: bytes) -> str:
    """A topic's name: one and the same string for all members that say it."""
    return name.decode(errors="replace")


def write_cooperative(generation: int) -> bytes:
    """The generation in which the member last got an assignment; -1 before the first."""
    return _INT32.pack(generation)


def read_cooperative(data: bytes) -> int:
    """The generation in ``data``. Raises UnreadableUserData."""
    if len(data) < _INT32.size:
        raise UnreadableUserData(f"{len(data)} bytes are no generation")
    generation: int = _INT32.unpack_from(data)[0]
    return generation
