"""The input and output of server-side assignors. Sources: ``GroupSpec``, ``MemberSubscription``, ``GroupAssignment``."""

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
"""Topic id → partitions, in the order of Kafka's maps, which is also that in the record."""

TargetAssignment: TypeAlias = Mapping[str, MemberTarget]
"""Member id → its target; every member has an entry.

If the target of a member has the same partitions as before, Kafka writes no record, and the order does not matter."""


class PartitionAssignorError(AssignorError):
    """The group cannot be assigned (Kafka's ``PartitionAssignorException``)."""


class SubscriptionType(enum.Enum):
    """Do all members subscribe to the same topics?"""

    HOMOGENEOUS = "HOMOGENEOUS"
    HETEROGENEOUS = "HETEROGENEOUS"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """One member: its subscription, and its current target."""

    topic_ids: Sequence[UUID] = ()
    """The subscribed topics, in the order of Java's set of their names (``TopicIds``)."""
    unknown_topics: int = 0
    """The number of further subscribed names, of topics that do not exist: they count in the size of Kafka's map."""
    assigned: MemberTarget = field(default_factory=dict)
    """The current target, in the order of its record."""
    instance_id: str | None = None
    rack_id: str | None = None
    """Passed to assignors by Kafka, but ignored by all of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group: its members in the order in which they were added to the coordinator's map, and its topics."""

    members: Mapping[str, MemberSubscription]
    subscription_type: SubscriptionType
    partitions: Mapping[UUID, int]
    """Topic id → number of partitions."""
    assignable: Mapping[UUID, Collection[int]] | None = None
    """Topic id → the partitions of a share group that can be assigned; None: all."""

    def member_ids(self) -> list[str]:
        """The members in the iteration order of the assignors, that of a ``HashMap``."""
        return hash_order(self.members)

    def assigned(self, member_id: str) -> list[tuple[UUID, list[int]]]:
        """The member's current target, in the order of the map that Kafka makes of its record (``Assignment.fromRecord``)."""
        topics: JavaMap[UUID, list[int]] = JavaMap(uuid_hash)
        for topic_id, partitions in self.members[member_id].assigned.items():
            topics.put(topic_id, copied_set(partitions).listed())
        return topics.items()

    def partition_count(self, topic_id: UUID) -> int:
        """The number of partitions of the topic. Raises PartitionAssignorError if it does not exist."""
        if topic_id not in self.partitions:
            text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
            raise PartitionAssignorError(
                f"Members are subscribed to topic {text} which doesn't exist in the topic metadata."
            )
        return self.partitions[topic_id]

    def assignable_partitions(self, topic_id: UUID) -> list[int]:
        """The partitions of the topic that can be assigned, ascending. Raises PartitionAssignorError."""
        every = range(self.partition_count(topic_id))
        if self.assignable is None:
            return list(every)
        allowed = self.assignable.get(topic_id, ())
        return [partition for partition in every if partition in allowed]


class ChangedTarget:
    """A copy of a member's target (``GroupSpec.assigned``) for changes, as made by ``AssignorHelpers.deepCopyAssignment``."""

    __slots__ = ("_topics",)

    def __init__(self, assigned: Sequence[tuple[UUID, Sequence[int]]]) -> None:
        self._topics: JavaMap[UUID, IntSet] = JavaMap(uuid_hash, table_size(len(assigned)))
        for topic_id, partitions in assigned:
            self._topics.put(topic_id, copied_set(partitions))

    def add(self, topic_id: UUID, partition: int, size: int = 16) -> None:
        """Add a partition; ``size`` is the number of buckets of a new Java set."""
        self._topics.computed(topic_id, partial(IntSet, size)).add(partition)

    def add_run(self, topic_id: UUID, partitions: Sequence[int]) -> None:
        """Add partitions of one topic."""
        for _ in partitions[:2]:  # a second lookup may resize Kafka's map; further ones change nothing
            given = self._topics.computed(topic_id, IntSet)
        for partition in partitions:
            given.add(partition)

    def remove(self, topic_id: UUID, partition: int) -> None:
        """Remove a partition; its topic stays, even without partitions. Raises KeyError."""
        self._topics[topic_id].remove(partition)

    def remove_topic(self, topic_id: UUID) -> None:
        """Remove a topic. Raises KeyError."""
        self._topics.remove(topic_id)

    def remove_if_empty(self, topic_id: UUID) -> None:
        """Remove a topic if it has no partitions left. Raises KeyError."""
        if not self._topics[topic_id]:
            self._topics.remove(topic_id)

    def target(self) -> MemberTarget:
        """The target, in Java's order."""
        return {topic_id: partitions.listed() for topic_id, partitions in self._topics.items()}


def subscription_type(members: Mapping[str, MemberSubscription]) -> SubscriptionType:
    """Homogeneous if all members subscribe to every topic that anyone subscribes to, as the group counts it."""
    wanted = Counter(topic_id for member in members.values() for topic_id in dict.fromkeys(member.topic_ids))
    same = all(count == len(members) for count in wanted.values())
    return SubscriptionType.HOMOGENEOUS if same else SubscriptionType.HETEROGENEOUS


def uuid_order(topic_id: UUID) -> tuple[int, int]:
    """A key that sorts as ``Uuid.compareTo`` does: two signed 64-bit halves."""
    return _signed(topic_id.int >> 64), _signed(topic_id.int & 0xFFFFFFFFFFFFFFFF)


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


class ChangedTargets:
    """The targets of ``spec.member_ids()``, by index; copied only when they change."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec, self._member_ids = spec, spec.member_ids()
        self._changed: dict[int, ChangedTarget] = {}

    def change(self, number: int) -> ChangedTarget:
        """The target of a member, for changes."""
        if number not in self._changed:
            self._changed[number] = ChangedTarget(self._spec.assigned(self._member_ids[number]))
        return self._changed[number]

    def clear(self) -> None:
        """Remove all partitions of all members."""
        self._changed = {number: ChangedTarget(()) for number in range(len(self._member_ids))}

    def target(self) -> TargetAssignment:
        """The target assignment of all members."""
        return {
            member_id: self._changed[number].target()
            if number in self._changed
            else self._spec.members[member_id].assigned
            for number, member_id in enumerate(self._member_ids)
        }
