"""What a server-side assignor sees and answers. Sources: ``GroupSpec``, ``MemberSubscription``, ``GroupAssignment``."""

import base64
import enum
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias
from uuid import UUID

from groupcoord.assignors.interface import AssignorError
from groupcoord.core.java_hash_order import hash_order, uuid_hash
from groupcoord.core.java_map import IntSet, JavaMap, copied_set, table_size

MemberTarget: TypeAlias = Mapping[UUID, Sequence[int]]
"""Topic id → partitions, each once, both in the order of Kafka's maps, which is the order that they have in a record."""

TargetAssignment: TypeAlias = Mapping[str, MemberTarget]
"""Member id → what it is to be meant to have; an entry for every member.

For a member that is meant to have the same partitions as before, Kafka writes no record, and the order means nothing."""


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
    """The topics it wants, each once, in the order of Java's set of their names (``TopicIds``)."""
    unknown_topics: int = 0
    """How many names it subscribes to besides, of topics that do not exist: Kafka makes room for them, too."""
    assigned: MemberTarget = field(default_factory=dict)
    """What it is meant to have so far, in the order in which its record has it."""
    instance_id: str | None = None
    rack_id: str | None = None
    """Kafka shows it to assignors, but none of Kafka's own looks at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group: its members in the order in which they were put into the coordinator's map, and the topics there are."""

    members: Mapping[str, MemberSubscription]
    subscription_type: SubscriptionType
    partitions: Mapping[UUID, int]
    """Topic id → how many partitions it has."""
    assignable: Mapping[UUID, Collection[int]] | None = None
    """Topic id → the partitions that may be given out, for a share group; None: all."""

    def member_ids(self) -> list[str]:
        """The members in the order in which the assignors walk through them: that of a ``HashMap``."""
        return hash_order(self.members)

    def assigned(self, member_id: str) -> list[tuple[UUID, list[int]]]:
        """What the member has, in the order of the map that Kafka makes of its record (``Assignment.fromRecord``)."""
        topics: JavaMap[UUID, list[int]] = JavaMap(uuid_hash)
        for topic_id, partitions in self.members[member_id].assigned.items():
            topics.put(topic_id, copied_set(partitions).listed())
        return topics.items()

    def partition_count(self, topic_id: UUID) -> int:
        """How many partitions the topic has. Raises PartitionAssignorError if it does not exist."""
        if topic_id not in self.partitions:
            text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
            raise PartitionAssignorError(
                f"Members are subscribed to topic {text} which doesn't exist in the topic metadata."
            )
        return self.partitions[topic_id]

    def assignable_partitions(self, topic_id: UUID) -> list[int]:
        """The partitions of the topic that may be given out, ascending. Raises PartitionAssignorError."""
        every = range(self.partition_count(topic_id))
        if self.assignable is None:
            return list(every)
        allowed = self.assignable.get(topic_id, ())
        return [partition for partition in every if partition in allowed]


class ChangedTarget:
    """What a member had (``GroupSpec.assigned``), copied to be changed, as ``AssignorHelpers.deepCopyAssignment`` does it."""

    __slots__ = ("_topics",)

    def __init__(self, assigned: Sequence[tuple[UUID, Sequence[int]]]) -> None:
        self._topics: JavaMap[UUID, IntSet] = JavaMap(uuid_hash, table_size(len(assigned)))
        for topic_id, partitions in assigned:
            self._topics.put(topic_id, copied_set(partitions))

    def add(self, topic_id: UUID, partition: int, size: int = 16) -> None:
        """Give it a partition; ``size`` is how many buckets Kafka gives to a new set."""
        self._topics.computed(topic_id, partial(IntSet, size)).add(partition)

    def add_run(self, topic_id: UUID, partitions: Sequence[int]) -> None:
        """Give it partitions of one topic."""
        for _ in partitions[
            :2
        ]:  # that the map is asked again may let it grow; that it is asked more often changes nothing
            given = self._topics.computed(topic_id, IntSet)
        for partition in partitions:
            given.add(partition)

    def remove(self, topic_id: UUID, partition: int) -> None:
        """Take a partition away; its topic stays, even with none. Raises KeyError."""
        self._topics[topic_id].remove(partition)

    def remove_topic(self, topic_id: UUID) -> None:
        """Take a topic away. Raises KeyError."""
        self._topics.remove(topic_id)

    def remove_if_empty(self, topic_id: UUID) -> None:
        """Take a topic away that has no partitions left. Raises KeyError."""
        if not self._topics[topic_id]:
            self._topics.remove(topic_id)

    def target(self) -> MemberTarget:
        """What it has now, in Java's order."""
        return {topic_id: partitions.listed() for topic_id, partitions in self._topics.items()}


def subscription_type(members: Mapping[str, MemberSubscription]) -> SubscriptionType:
    """Homogeneous if every topic that is wanted is wanted by all, as the group itself counts it."""
    wanted = Counter(topic_id for member in members.values() for topic_id in dict.fromkeys(member.topic_ids))
    same = all(count == len(members) for count in wanted.values())
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def uuid_order(topic_id: UUID) -> tuple[int, int]:
    """A key that sorts as ``Uuid.compareTo`` does: two signed 64-bit halves."""
    return _signed(topic_id.int >> 64), _signed(topic_id.int & 0xFFFFFFFFFFFFFFFF)


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


class ChangedTargets:
    """The targets of ``spec.member_ids()``, by their places there: what a member has, until it is changed."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec, self._member_ids = spec, spec.member_ids()
        self._changed: dict[int, ChangedTarget] = {}

    def change(self, number: int) -> ChangedTarget:
        """The target of a member, to be changed."""
        if number not in self._changed:
            self._changed[number] = ChangedTarget(self._spec.assigned(self._member_ids[number]))
        return self._changed[number]

    def clear(self) -> None:
        """Nobody has anything."""
        self._changed = {number: ChangedTarget(()) for number in range(len(self._member_ids))}

    def target(self) -> TargetAssignment:
        """The assignment of every member."""
        return {
            member_id: self._changed[number].target()
            if number in self._changed
            else self._spec.members[member_id].assigned
            for number, member_id in enumerate(self._member_ids)
        }
