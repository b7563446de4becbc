"""The uniform assignor (KIP-848), the default of consumer groups.

Sources: ``UniformHomogeneousAssignmentBuilder`` if all members subscribe to the same topics, else
``UniformHeterogeneousAssignmentBuilder`` with its ``MemberAssignmentBalancer``.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, islice
from operator import itemgetter
from uuid import UUID

from groupcoord.assignors.server_side.group_spec import (
    ChangedTarget,
    ChangedTargets,
    GroupSpec,
    MemberTarget,
    PartitionAssignorError,
    SubscriptionType,
    TargetAssignment,
    uuid_order,
)
from groupcoord.core.java_hash_order import uuid_hash
from groupcoord.core.java_map import JavaMap, size_for


class MemberAssignmentBalancer:
    """The members ordered by load, for balancing. ``loads`` has the number of partitions of each member; the caller updates
    it."""

    def __init__(self, members: Iterable[int], loads: Sequence[int]) -> None:
        self._loads = loads
        self._row = sorted(members, key=lambda member: (loads[member], member))
        lowest, highest = loads[self._row[0]], loads[self._row[-1]]
        self.imbalance = highest - lowest
        """The difference between the highest and the lowest load at the start."""
        self._low_level, self._low_end, self._low_next = lowest - 1, 0, 0
        size = len(self._row)
        self._high_level, self._high_start, self._high_end, self._high_next = highest + 1, size, size, size - 1

    def next_least(self) -> int:
        """A member with the lowest load; it counts as having one more from now on."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._row) and self._loads[self._row[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._row[self._low_next - 1]

    def next_most(self) -> int | None:
        """A member with the highest load, which counts as having one less from now on; None if there is none."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_level = self._loads[self._row[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._loads[self._row[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._row[self._high_next + 1]

    def exclude_most(self) -> None:
        """Exclude the member that ``next_most`` has returned, because it has nothing to give."""
        row, place, last = self._row, self._high_next + 1, self._high_end - 1
        row[place], row[last] = row[last], row[place]
        self._high_end = last

    @property
    def is_balanced(self) -> bool:
        """Do the highest and the lowest load differ by one or less?"""
        return self._high_level - self._low_level <= 1


def assign_uniform(spec: GroupSpec) -> TargetAssignment:
    """The most balanced assignment, with as few changes as possible (``UniformAssignor``). Raises PartitionAssignorError."""
    if not spec.members:
        return {}
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        return _assign_homogeneous(spec)
    return _HeterogeneousBuilder(spec).target()


def _assign_homogeneous(spec: GroupSpec) -> TargetAssignment:
    """Assign the same number of partitions to each member, and one more to some.

    Members that have one more keep it while there are enough; the rest go to the last members of the map. Members keep what
    fits in their quota, and are filled up with consecutive partitions. Raises PartitionAssignorError if a topic does not exist,
    or if a partition has no owner and no member has room.
    """
    member_ids = spec.member_ids()
    first = spec.members[member_ids[0]]
    if not first.topic_ids:
        return {member_id: {} for member_id in member_ids}
    wanted: JavaMap[UUID, None] = JavaMap(uuid_hash, max(16, size_for(len(first.topic_ids) + first.unknown_topics)))
    for topic_id in first.topic_ids:
        wanted.put(topic_id, None)
    taken: dict[UUID, set[int]] = {topic_id: set() for topic_id in first.topic_ids}
    for member in spec.members.values():
        for topic_id, partitions in member.assigned.items():
            if topic_id in taken:
                taken[topic_id].update(partitions)
    free: list[tuple[UUID, int]] = []
    total = 0
    for topic_id in wanted.listed():
        count, owned = spec.partition_count(topic_id), taken[topic_id]
        total += count
        free += [(topic_id, partition) for partition in range(count) if partition not in owned]
    least, extras = divmod(total, len(member_ids))
    target: dict[str, MemberTarget] = {}
    changed: dict[str, ChangedTarget] = {}
    lacking: dict[str, int] = {}
    for left, member_id in zip(range(len(member_ids), 0, -1), member_ids, strict=True):
        target[member_id] = assigned = spec.members[member_id].assigned
        quota = least + (extras > 0)
        held = sum(map(len, assigned.values()))
        if held <= quota and assigned.keys() <= taken.keys():
            quota -= held
        else:
            quota, changed[member_id] = _revoke(spec.assigned(member_id), quota, taken.keys(), free)
        if extras and (quota == 0 or left <= extras):
            extras -= 1
        elif extras:
            quota -= 1  # the extra one is for a member that has it, or for one of the last members
        if quota:
            lacking[member_id] = quota
    _fill(spec, changed, lacking, iter(free))
    return target | {member_id: change.target() for member_id, change in changed.items()}


def _revoke(
    assigned: Sequence[tuple[UUID, Sequence[int]]], quota: int, wanted: AbstractSet[UUID], free: list[tuple[UUID, int]]
) -> tuple[int, ChangedTarget]:
    """Revoke partitions that are not subscribed, and, into ``free``, those over ``quota``; returns the remaining quota and
    target."""
    change = ChangedTarget(assigned)
    for topic_id, partitions in assigned:
        if topic_id not in wanted:
            change.remove_topic(topic_id)
            continue
        for partition in partitions[quota:]:
            change.remove(topic_id, partition)
            free.append((topic_id, partition))
        if len(partitions) > quota:
            change.remove_if_empty(topic_id)
        quota = max(0, quota - len(partitions))
    return quota, change


def _fill(
    spec: GroupSpec, changed: dict[str, ChangedTarget], lacking: dict[str, int], free: Iterator[tuple[UUID, int]]
) -> None:
    for member_id, quota in lacking.items():
        given = list(islice(free, quota))
        if given and member_id not in changed:
            changed[member_id] = ChangedTarget(spec.assigned(member_id))
        for topic_id, run in groupby(given, itemgetter(0)):
            changed[member_id].add_run(topic_id, [partition for _, partition in run])
    if next(free, None) is not None:
        raise PartitionAssignorError("Partitions were left unassigned")


MOST_SWEEPS = 16
"""Each sweep is expected to halve the imbalance."""


class _HeterogeneousBuilder:
    """Keeps what is still subscribed, assigns free partitions to the least loaded members, then balances topic by topic."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._member_ids = spec.member_ids()
        self._subscribers: dict[UUID, list[int]] = {}
        for number, member_id in enumerate(self._member_ids):
            for topic_id in spec.members[member_id].topic_ids:
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners = {topic_id: [-1] * spec.partition_count(topic_id) for topic_id in self._subscribers}
        """Topic id → the owner of each partition, or -1."""
        self._loads = [0] * len(self._member_ids)
        self._targets = ChangedTargets(spec)
        self._keep()
        self._give_out()
        self._even_out()

    def target(self) -> TargetAssignment:
        """The target assignment of all members."""
        return self._targets.target()

    def _keep(self) -> None:
        for number, member_id in enumerate(self._member_ids):
            member = self._spec.members[member_id]
            wanted = frozenset(member.topic_ids)
            for topic_id, partitions in member.assigned.items():
                if topic_id not in wanted:
                    self._targets.change(number).remove_topic(topic_id)
                    continue
                self._loads[number] += len(partitions)
                owners = self._owners[topic_id]
                for partition in partitions:
                    if not 0 <= partition < len(owners):  # Kafka fails with an ArrayIndexOutOfBoundsException
                        raise PartitionAssignorError(
                            f"{member_id} has partition {partition} of {len(owners)} of {topic_id}"
                        )
                    owners[partition] = number

    def _give_out(self) -> None:
        free = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner < 0]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted([topic_id for topic_id, partitions in free.items() if partitions]):
            balancer = MemberAssignmentBalancer(self._subscribers[topic_id], self._loads)
            size = self._set_size(topic_id)
            for partition in free[topic_id]:
                member = balancer.next_least()
                self._owners[topic_id][partition] = member
                self._loads[member] += 1
                self._targets.change(member).add(topic_id, partition, size)

    def _sorted(self, topic_ids: Sequence[UUID]) -> list[UUID]:
        """By partitions per subscriber, most first, then by subscribers, then by id."""

        def key(topic_id: UUID) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic_id])
            return -len(self._owners[topic_id]) / subscribers, subscribers, uuid_order(topic_id)

        return sorted(topic_ids, key=key)

    def _even_out(self) -> None:
        """Sweep over the topics until a full sweep changes nothing."""
        topic_ids = self._sorted([topic_id for topic_id, members in self._subscribers.items() if len(members) >= 2])
        last_changed = -1
        for _ in range(MOST_SWEEPS):
            for place, topic_id in enumerate(topic_ids):
                if place == last_changed:
                    return
                if self._even_out_topic(topic_id) or last_changed < 0:
                    last_changed = place

    def _even_out_topic(self, topic_id: UUID) -> bool:
        """Move partitions of the topic from the most to the least loaded members; returns whether any moved."""
        balancer = MemberAssignmentBalancer(self._subscribers[topic_id], self._loads)
        if balancer.imbalance <= 1:
            return False
        held: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            held.setdefault(owner, []).append(partition)
        changed = False
        while (giver := balancer.next_most()) is not None:
            if not held.get(giver):
                balancer.exclude_most()
                continue
            partition = held[giver].pop()
            receiver = balancer.next_least()
            if balancer.is_balanced:
                break
            self._targets.change(giver).remove(topic_id, partition)
            self._targets.change(giver).remove_if_empty(topic_id)
            self._targets.change(receiver).add(topic_id, partition, self._set_size(topic_id))
            self._owners[topic_id][partition] = receiver
            self._loads[giver] -= 1
            self._loads[receiver] += 1
            changed = True
        return changed

    def _set_size(self, topic_id: UUID) -> int:
        """The size of Kafka's new set for a member's partitions of the topic."""
        return size_for(-(-len(self._owners[topic_id]) // len(self._subscribers[topic_id])))
