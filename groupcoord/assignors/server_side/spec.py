"""What a server-side assignor sees and answers. Sources: ``GroupSpec``, ``MemberSubscription``, ``GroupAssignment``."""

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from groupcoord.assignors.interface import AssignorError
from groupcoord.core.java import computed_map_order, hash_map_order, hash_order

TargetAssignment: TypeAlias = Mapping[str, Mapping[UUID, Sequence[int]]]
"""Member id → topic id → partitions. An entry for every member; the order of partitions means nothing."""

TargetLists: TypeAlias = dict[str, dict[UUID, list[int]]]
"""A target while it is made."""


class PartitionAssignorError(AssignorError):
    """The group cannot be assigned (Kafka's ``PartitionAssignorException``)."""


class SubscriptionType(enum.Enum):
    """Do all members want the same?"""

    HOMOGENEOUS = "HOMOGENEOUS"
    HETEROGENEOUS = "HETEROGENEOUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """One member: what it wants, and what it is meant to have so far."""

    topic_ids: Sequence[UUID] = ()
    assigned: Mapping[UUID, Sequence[int]] = field(default_factory=dict)
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group: its members in the order in which they were put into the coordinator's map, and the topics there are."""

    members: Mapping[str, MemberSubscription]
    partitions: Mapping[UUID, int]
    """Topic id → how many partitions it has."""
    as_listed: bool = False
    """Walk through members and assigned partitions as they are listed here, not in the order of a ``HashMap``."""

    def member_ids(self) -> list[str]:
        """The members in the order in which the assignors walk through them."""
        return list(self.members) if self.as_listed else hash_order(self.members)

    def assigned(self, member_id: str) -> list[tuple[UUID, list[int]]]:
        """What the member has, in the order of a map of sets that was filled as listed."""
        assigned = self.members[member_id].assigned
        if self.as_listed:
            return [(topic_id, list(partitions)) for topic_id, partitions in assigned.items()]
        # The map is asked for its topic before every partition that goes in.
        asked = [topic_id for topic_id, partitions in assigned.items() for _ in partitions]
        return [
            (topic_id, hash_map_order(assigned[topic_id], int.__index__))
            for topic_id in computed_map_order(asked, uuid_hash)
        ]

    def partition_count(self, topic_id: UUID) -> int:
        """How many partitions the topic has. Raises PartitionAssignorError if it does not exist."""
        if topic_id not in self.partitions:
            raise PartitionAssignorError(f"Members are subscribed to topic {topic_id} which does not exist.")
        return self.partitions[topic_id]


def subscription_type(members: Mapping[str, MemberSubscription]) -> SubscriptionType:
    """Homogeneous if every topic that is wanted is wanted by all, as the group itself counts it."""
    wanted = Counter(topic_id for member in members.values() for topic_id in dict.fromkeys(member.topic_ids))
    same = all(count == len(members) for count in wanted.values())
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def uuid_hash(topic_id: UUID) -> int:
    """``Uuid.hashCode()``; only its lower 32 bits count."""
    both = topic_id.int >> 64 ^ topic_id.int & 0xFFFFFFFFFFFFFFFF
    return both >> 32 ^ both & 0xFFFFFFFF


def uuid_order(topic_id: UUID) -> tuple[int, int]:
    """A key that sorts as ``Uuid.compareTo`` does: two signed 64-bit halves."""
    return _signed(topic_id.int >> 64), _signed(topic_id.int & 0xFFFFFFFFFFFFFFFF)


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half
