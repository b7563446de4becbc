"""The previous assignment of a group, from user data or owned partitions, and the resolution of conflicting claims.

User data is the serialised form of ``StickyAssignor`` (versions 0 and 1) and ``CooperativeStickyAssignor``. Source:
``AbstractStickyAssignor.allSubscriptionsEqual`` and ``getUnassignedPartitions``.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from groupcoord.assignors.interface import Subscription, TopicPartition
from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import computed_map_order, string_hash

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


class UnreadableUserData(ValueError):
    """These bytes are not an assignor's user data."""


class PreviousAssignment(NamedTuple):
    """The partitions that one member claims, in order, and their generation; None if it is unknown."""

    partitions: Sequence[TopicPartition]
    generation: int | None


def write_sticky(partitions: Sequence[TopicPartition], generation: int | None) -> bytes:
    """``partitions`` as V1, or as V0 if ``generation`` is None.

    They are grouped by topic, in the order of Kafka's ``HashMap``.
    """
    by_topic = grouped(partitions)
    written = [_INT32.pack(len(by_topic))]
    for topic in computed_map_order([topic for topic, _ in partitions], string_hash):
        name, numbers = topic.encode(), by_topic[topic]
        written += [_INT16.pack(len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if generation is not None:
        written.append(_INT32.pack(generation))
    return b"".join(written)


def read_sticky(data: bytes) -> PreviousAssignment:
    """Parses ``data``; V0 has no generation. Raises UnreadableUserData."""
    try:
        partitions, at = _read_partitions(data)
    except struct.error as error:
        raise UnreadableUserData(str(error)) from None
    generation = _INT32.unpack_from(data, at)[0] if len(data) >= at + _INT32.size else None
    return PreviousAssignment(partitions, generation)


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
    """A topic's name; equal names share one string."""
    return name.decode(errors="replace")


def write_cooperative(generation: int) -> bytes:
    """The generation of the member's last assignment; -1 before the first."""
    return _INT32.pack(generation)


def read_cooperative(data: bytes) -> int:
    """The generation in ``data``. Raises UnreadableUserData."""
    if len(data) < _INT32.size:
        raise UnreadableUserData(f"{len(data)} bytes are not a generation")
    generation: int = _INT32.unpack_from(data)[0]
    return generation


DEFAULT_GENERATION = -1
"""``DEFAULT_GENERATION``."""


def previous_of_sticky(subscription: Subscription) -> PreviousAssignment:
    """Members of sticky have revoked everything when they join, so their previous partitions are in user data."""
    if not subscription.user_data:
        return PreviousAssignment((), None)
    try:
        return read_sticky(subscription.user_data)
    except UnreadableUserData:
        return PreviousAssignment((), DEFAULT_GENERATION)


def previous_of_cooperative(subscription: Subscription) -> PreviousAssignment:
    """Cooperative members still own their partitions; old clients have the generation in user data."""
    if subscription.generation_id is not None:
        return PreviousAssignment(subscription.owned_partitions, subscription.generation_id)
    if subscription.user_data is None:
        return PreviousAssignment(subscription.owned_partitions, None)
    try:
        return PreviousAssignment(subscription.owned_partitions, read_cooperative(subscription.user_data))
    except UnreadableUserData:
        return PreviousAssignment(subscription.owned_partitions, DEFAULT_GENERATION)


@dataclass(frozen=True, slots=True)
class Ownership:
    """The partitions that members keep, before balancing."""

    kept: dict[str, list[TopicPartition]]
    """Member id → its valid claims, in order; members in ``HashMap`` order."""
    double_claimed: set[TopicPartition]
    """Partitions that two members claimed in the same generation."""
    max_generation: int
    """The highest generation ever seen."""


def collect_ownership(
    members: Mapping[str, Subscription],
    claims: Mapping[str, PreviousAssignment],
    table: Mapping[str, int],
    max_generation: int = DEFAULT_GENERATION,
) -> Ownership:
    """Resolve the claims on the topics of ``table``, member by member.

    Of two members that claim a partition the one with the higher generation keeps it; in the same generation neither does. As
    in Kafka the earlier claimant is compared by the generation in its subscription, not in its user data, and an uncontested
    claim of an old generation is valid.
    """
    claimant: dict[TopicPartition, str] = {}
    disowned: set[TopicPartition] = set()
    double_claimed: set[TopicPartition] = set()
    for member_id in members:
        previous = claims[member_id]
        generation = DEFAULT_GENERATION if previous.generation is None else previous.generation
        max_generation = max(max_generation, generation)
        for partition in previous.partitions:
            if partition[0] not in table:
                continue
            if partition not in claimant:
                claimant[partition] = member_id
                continue
            other = claimant[partition]
            stated = members[other].generation_id
            rival = DEFAULT_GENERATION if stated is None else stated
            if generation < rival:
                continue
            del claimant[partition]  # so that it is last among the member's partitions
            claimant[partition] = member_id
            if generation == rival:
                double_claimed.add(partition)
                disowned.add(partition)
            elif other != member_id:  # a member that claims twice does not win against itself
                disowned.discard(partition)
    kept: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for partition, member_id in claimant.items():
        if partition not in disowned:
            kept[member_id].append(partition)
    return Ownership(kept, double_claimed, max_generation)


def subscriptions_are_equal(members: Mapping[str, Subscription]) -> bool:
    """Do all members subscribe to the same topics, whether or not these exist?

    As in Kafka a member without topics is ignored if no member before it has any.
    """
    first: set[str] = set()
    for subscription in members.values():
        if not first:
            first.update(subscription.topics)
        elif len(subscription.topics) != len(first) or not first.issuperset(subscription.topics):
            return False
    return True


def unassigned_partitions(
    everything: Sequence[TopicPartition], assigned: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """``everything`` without ``assigned``, in its order: topic by topic, partitions ascending."""
    taken = set(assigned)
    free = [partition for partition in everything if partition not in taken]
    if len(free) + len(taken) == len(everything):
        return free
    # A member may claim a partition that does not exist, because the topic was recreated with fewer. Kafka compares both sorted
    # lists side by side, and such a claim ends the comparison: everything after it counts as free, even if it is assigned.
    places = {topic: place for place, topic in enumerate(dict.fromkeys(topic for topic, _ in everything))}
    walk = iter(sorted(taken, key=lambda partition: (places[partition[0]], partition[1])))
    following = next(walk)
    free = []
    for partition in everything:
        if partition == following:
            following = next(walk, ("", -1))
        else:
            free.append(partition)
    return free
