"""The consumer embedded protocol: subscriptions and assignments in JoinGroup and SyncGroup (``ConsumerProtocol``).

The coordinator reads only the topics; the rest is for assignors. The bytes have an int16 version and the fields of that
version. Future versions may only add fields at the end, so a higher version is read as the highest known one and the rest is
ignored. Sources: ``ConsumerProtocolSubscription.json``, ``ConsumerProtocolAssignment.json``; KIP-429 (owned partitions),
KIP-792 (generation), KIP-881 (rack).
"""

import struct
from dataclasses import replace
from typing import Any, TypeVar

from groupcoord.protocol.codec.message_codec import Codec, codec_for
from groupcoord.protocol.errors import TruncatedError, WireError
from groupcoord.protocol.message_dataclass import message

PROTOCOL_TYPE = "consumer"
"""The protocol type of consumers in JoinGroup; only for this type the broker parses the topics."""
HIGHEST_VERSION = 3
"""The highest known version of both."""


@message
class TopicPartition:
    """A topic and some of its partitions."""

    topic: str
    partitions: tuple[int, ...] = ()


@message
class ConsumerProtocolSubscription:
    """A subscription, from a consumer to the leader's assignor: versions 0–3. ``version`` is that in the bytes."""

    version: int = HIGHEST_VERSION
    topics: tuple[str, ...] = ()
    user_data: bytes | None = None  # the assignor's own
    owned_partitions: tuple[TopicPartition, ...] = ()  # v1+
    generation_id: int = -1  # v2+; the generation in which it owned them
    rack_id: str | None = None  # v3+


@message
class ConsumerProtocolAssignment:
    """An assignment, from the leader's assignor to one consumer: versions 0–3, all with the same fields."""

    version: int = HIGHEST_VERSION
    assigned_partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


Blob = TypeVar("Blob", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


class MalformedError(WireError):
    """The bytes are too short, or have a negative version (Kafka's ``SchemaException``)."""


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """The subscription in ``data``. Raises MalformedError, and WireError for what Kafka does not expect."""
    return _read(ConsumerProtocolSubscription, data)


def write_subscription(subscription: ConsumerProtocolSubscription) -> bytes:
    """The bytes of ``subscription`` at its version, or at the highest known if that is lower."""
    return _write(subscription)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """The assignment in ``data``. Raises MalformedError, and WireError for what Kafka does not expect."""
    return _read(ConsumerProtocolAssignment, data)


def write_assignment(assignment: ConsumerProtocolAssignment) -> bytes:
    """The bytes of ``assignment`` at its version, or at the highest known if that is lower."""
    return _write(assignment)


def subscribed_topics(data: bytes) -> frozenset[str] | None:
    """The topics in the subscription ``data``; None if it is not a subscription.

    A broker needs only the topics, and parses every version as version 0, even invalid ones: all versions begin like version 0
    (``ClassicGroup.computeSubscribedTopics``). None if the bytes end where a number should begin. Raises OverrunError for a
    length beyond the end.
    """
    try:
        return frozenset(_read_topics(data))
    except struct.error:
        return None


class OverrunError(ValueError):
    """A length is null or exceeds the data, an error that Kafka does not handle."""


def _read_topics(data: bytes) -> list[str]:
    (count,) = _INT32.unpack_from(data, _INT16.size)
    position = _INT16.size + _INT32.size
    if not 0 <= count <= len(data) - position:
        raise OverrunError(f"{count} topics where {len(data) - position} bytes are left")
    topics = []
    for _ in range(count):
        (length,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        if not 0 <= length <= len(data) - position:
            raise OverrunError(f"a topic's name of {length} bytes where {len(data) - position} are left")
        topics.append(data[position : position + length].decode(errors="replace"))
        position += length
    (length,) = _INT32.unpack_from(data, position)
    position += _INT32.size
    if length > len(data) - position:
        raise OverrunError(f"user data of {length} bytes where {len(data) - position} are left")
    return topics


_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_PACKAGES: dict[type[ConsumerProtocolSubscription] | type[ConsumerProtocolAssignment], str] = {
    ConsumerProtocolSubscription: "consumer_protocol_subscription",
    ConsumerProtocolAssignment: "consumer_protocol_assignment",
}


def _codec(cls: type[Blob], version: int) -> Codec[Blob]:
    return codec_for(cls, _PACKAGES[cls], min(version, HIGHEST_VERSION), "data")


def _read(cls: type[Blob], data: bytes) -> Blob:
    try:
        (version,) = _INT16.unpack_from(data)
    except struct.error:
        raise MalformedError(
            f"{len(data)} bytes are too few for the version", api=cls.__name__, offset=0, field="version"
        ) from None
    if version < 0:
        raise MalformedError(f"version {version} is negative", api=cls.__name__, offset=0, field="version")
    try:
        return replace(_codec(cls, version).decode(data, _INT16.size), version=version)
    except TruncatedError as problem:
        raise MalformedError(
            problem.reason, api=problem.api, version=problem.version, offset=problem.offset, field=problem.field
        ) from problem


def _write(blob: ConsumerProtocolSubscription | ConsumerProtocolAssignment) -> bytes:
    version = min(blob.version, HIGHEST_VERSION)
    codec_: Codec[Any] = _codec(type(blob), version)
    return _INT16.pack(version) + codec_.encode(blob)
