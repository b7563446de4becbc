"""Builds the large groups that ``assignor-large-digests.json`` describes."""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from groupcoord.assignors.interface import Assignment, GroupSubscription, Subscription
from groupcoord.assignors.server_side import GroupSpec, MemberSubscription, SubscriptionType
from groupcoord.assignors.sticky.previous_assignment import write_sticky
from groupcoord.partitioners.java_random import JavaRandom

OPS = ("fresh", "lost0", "leave0", "join")
"""From nothing; the first member has lost its past; it has left; another has joined."""
CLIENT_SHAPES = {
    "A": (500, 2000, 2000),
    "B": (500, 2000, 2000),
    "C": (100, 200, 500),
    "D": (50, 2000, 2000),
    "D2": (50, 2000, 2000),
    "E": (10, 100, 100),
    "F": (50, 200, 1000),
    "G": (40, 10, 200),
    "H": (50, 40, 100),
    "I": (100, 100, 300),
}
"""Topics, partitions of each, members."""
SERVER_SHAPES = {
    "S1": (500, 2000, 2000),
    "S2": (500, 2000, 2000),
    "S3": (100, 1000, 10_000),
    "S3b": (100, 1000, 10_000),
    "S4": (10, 100, 100),
}
BUCKETS = {"S2", "S3b"}


def group(shape: str, assignor: str, op: str, fresh: Assignment | None = None) -> GroupSubscription:
    """The group of ``shape`` before ``op``; ``fresh`` is what "fresh" gave."""
    topics, partitions, members = CLIENT_SHAPES[shape]
    names, member_ids = _names("t", topics), _names("c", members)
    racks = shape in {"D", "D2"}
    subscriptions = {
        member_id: Subscription(
            topics=_wanted(shape, number, names, members),
            rack_id=f"rack{number % 3}" if racks else None,
            **(_past(assignor, fresh[member_id]) if fresh is not None and (op, number) != ("lost0", 0) else {}),
        )
        for number, member_id in enumerate(member_ids)
        if (op, number) != ("leave0", 0)
    }
    if op == "join":
        subscriptions["newMember"] = Subscription(
            topics=_wanted(shape, members - 1, names, members), rack_id=f"rack{members % 3}" if racks else None
        )
    return GroupSubscription(
        subscriptions=subscriptions,
        partitions=dict.fromkeys(names, partitions),
        racks={
            topic: [(f"rack{number % 3}", f"rack{(number + 1) % 3}") for number in range(partitions)] for topic in names
        }
        if racks
        else {},
    )


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{number:0{len(str(count))}}" for number in range(count)]


def _wanted(shape: str, number: int, topics: Sequence[str], members: int) -> Sequence[str]:
    if shape in {"B", "D2"} and number == members - 1:
        return topics[:1]
    if shape == "C":
        return topics[: len(topics) // 2] if number % 4 == 0 else topics[len(topics) // 2 :]
    if shape in {"G", "H", "I"}:
        return [topic for place, topic in enumerate(topics) if (7 * number + 3 * place) % 10 < 5]
    return topics


def _past(assignor: str, owned: Sequence[tuple[str, int]]) -> dict[str, Any]:
    if assignor == "sticky":
        return {"user_data": write_sticky(owned, 1), "generation_id": 1}
    return {"owned_partitions": owned, "generation_id": 1}


def digest(assignment: Mapping[str, Iterable[tuple[str, int]]]) -> str:
    """The digest of an answer, partitions in the order given."""
    hashed = hashlib.sha256()
    for member_id in sorted(assignment):
        line = ",".join(f"{topic}-{partition}" for topic, partition in assignment[member_id])
        hashed.update(f"{member_id}:{line}\n".encode())
    return hashed.hexdigest()


Target = Mapping[str, Mapping[uuid.UUID, Sequence[int]]]


def spec(shape: str, op: str, fresh: Target | None = None) -> tuple[GroupSpec, dict[uuid.UUID, str]]:
    """The group of a server-side ``shape`` before ``op``, and the names of its topics."""
    topics, partitions, members = SERVER_SHAPES[shape]
    chance = JavaRandom(42)
    ids = [uuid.UUID(int=_long(chance.next_bits) << 64 | _long(chance.next_bits)) for _ in range(topics)]

    def wanted(number: int) -> Sequence[uuid.UUID]:
        bucket = 5 * number // members
        return ids[bucket * topics // 5 : (bucket + 1) * topics // 5] if shape in BUCKETS else ids

    group = {
        f"member{number}": MemberSubscription(
            topic_ids=wanted(number), assigned=fresh[f"member{number}"] if fresh else {}
        )
        for number in range(members)
        if (op, number) != ("leave0", 0)
    }
    if op == "join":
        group["newMember"] = MemberSubscription(topic_ids=wanted(members - 1))
    kind = SubscriptionType.HETEROGENEOUS if shape in BUCKETS else SubscriptionType.HOMOGENEOUS
    names = {known: f"topic-{number}" for number, known in enumerate(ids)}
    return GroupSpec(members=group, subscription_type=kind, partitions=dict.fromkeys(ids, partitions)), names


def _long(next_bits: Callable[[int], int]) -> int:
    """``nextLong()``: two ints, the second with its sign."""
    upper, lower = next_bits(32), next_bits(32)
    return (upper << 32) + (lower - (1 << 32) if lower >> 31 else lower) & (1 << 64) - 1


def named_target(target: Target, names: Mapping[uuid.UUID, str]) -> dict[str, list[tuple[str, int]]]:
    """A target with names for ids, sorted."""
    return {
        member_id: sorted((names[known], partition) for known, given in topics.items() for partition in given)
        for member_id, topics in target.items()
    }
