"""The uniform assignor of KIP-848.

Sources: ``UniformHomogeneousAssignmentBuilder`` where all members subscribe to the same topics, else
``UniformHeterogeneousAssignmentBuilder`` with its ``MemberAssignmentBalancer``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from uuid import UUID

from groupcoord.assignors.server_side.spec import (
    GroupSpec,
    PartitionAssignorError,
    TargetAssignment,
    TargetLists,
    uuid_hash,
    uuid_order,
)
from groupcoord.core.java import hash_set_order


class MemberAssignmentBalancer:
    """One row of members; ``loads`` is how much each member has now, and is kept by the caller."""

    def __init__(self, members: Iterable[int], loads: Sequence[int]) -> None:
        self._loads = loads
        self._row = sorted(members, key=lambda member: (loads[member], member))
        lowest, highest = loads[self._row[0]], loads[self._row[-1]]
        self.imbalance = highest - lowest
        """By how much the loads differ at first."""
        self._low_level, self._low_end, self._low_next = lowest - 1, 0, 0
        size = len(self._row)
        self._high_level, self._high_start, self._high_end, self._high_next = highest + 1, size, size, size - 1

    def next_least(self) -> int:
        """A member with least, which is taken to get one more."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._row) and self._loads[self._row[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._row[self._low_next - 1]

    def next_most(self) -> int | None:
        """A member with most, which is taken to lose one; None if none is left."""
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
        """The member that ``next_most`` has just named has nothing to give: it leaves the range."""
        row, place, last = self._row, self._high_next + 1, self._high_end - 1
        row[place], row[last] = row[last], row[place]
        self._high_end = last

    @property
    def is_balanced(self) -> bool:
        """Do the two ranges differ by one or less?"""
        return self._high_level - self._low_level <= 1


def assign_homogeneous(spec: GroupSpec) -> TargetAssignment:
    """Give each member the same number of partitions, and the first members of the map one more until none is left over.

    Members keep what fits, and are filled up in long runs. Raises PartitionAssignorError if a topic does not exist, or if a
    partition has no owner and no member has room for it: the caller must treat partitions of former members as free.
    """
    member_ids = spec.member_ids()
    wanted = spec.members[member_ids[0]].topic_ids
    target: TargetLists = {member_id: {} for member_id in member_ids}
    if not wanted:
        return target
    taken = {
        (topic_id, partition)
        for member in spec.members.values()
        for topic_id, partitions in member.assigned.items()
        for partition in partitions
    }
    free: list[tuple[UUID, int]] = []
    total = 0
    for topic_id in hash_set_order(wanted, uuid_hash):
        count = spec.partition_count(topic_id)
        total += count
        free += [(topic_id, partition) for partition in range(count) if (topic_id, partition) not in taken]
    least, more = divmod(total, len(member_ids))
    lacking: dict[str, int] = {}
    for number, member_id in enumerate(member_ids):
        quota = least + (number < more)
        for topic_id, partitions in spec.assigned(member_id):
            if topic_id in wanted:
                if kept := partitions[:quota]:
                    target[member_id][topic_id] = kept
                free += [(topic_id, partition) for partition in partitions[quota:]]
                quota -= len(kept)
        if quota:
            lacking[member_id] = quota
    _fill(target, lacking, iter(free))
    return target


def _fill(target: TargetLists, lacking: dict[str, int], free: Iterator[tuple[UUID, int]]) -> None:
    for member_id, quota in lacking.items():
        for topic_id, partition in islice(free, quota):
            target[member_id].setdefault(topic_id, []).append(partition)
    if next(free, None) is not None:
        raise PartitionAssignorError("Partitions were left unassigned")


MOST_SWEEPS = 16
"""Each is expected to halve what is left of the imbalance."""


def assign_heterogeneous(spec: GroupSpec) -> TargetAssignment:
    """Keep what is still wanted, give what is free to those with least, and then even out topic by topic.

    Raises PartitionAssignorError if a topic does not exist.
    """
    return _HeterogeneousBuilder(spec).target()


class _HeterogeneousBuilder:
    def __init__(self, spec: GroupSpec) -> None:
        self._member_ids = spec.member_ids()
        self._subscribers: dict[UUID, list[int]] = {}
        for number, member_id in enumerate(self._member_ids):
            for topic_id in dict.fromkeys(spec.members[member_id].topic_ids):
                spec.partition_count(topic_id)
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners = {topic_id: [-1] * spec.partitions[topic_id] for topic_id in self._subscribers}
        """Topic id → of each partition the member that has it, or -1."""
        self._loads = [0] * len(self._member_ids)
        self._keep(spec)
        self._give_out()
        self._even_out()

    def target(self) -> TargetAssignment:
        """The assignment of every member."""
        target: TargetLists = {member_id: {} for member_id in self._member_ids}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                target[self._member_ids[owner]].setdefault(topic_id, []).append(partition)
        return target

    def _keep(self, spec: GroupSpec) -> None:
        for number, member_id in enumerate(self._member_ids):
            wanted = frozenset(spec.members[member_id].topic_ids)
            for topic_id, partitions in spec.assigned(member_id):
                if topic_id in wanted:
                    self._loads[number] += len(partitions)
                    for partition in partitions:
                        self._owners[topic_id][partition] = number

    def _give_out(self) -> None:
        free = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner < 0]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted([topic_id for topic_id, partitions in free.items() if partitions]):
            balancer = MemberAssignmentBalancer(self._subscribers[topic_id], self._loads)
            for partition in free[topic_id]:
                self._give(topic_id, partition, balancer.next_least())

    def _sorted(self, topic_ids: Sequence[UUID]) -> list[UUID]:
        """By partitions per subscriber, most first, then by subscribers, then by id."""

        def key(topic_id: UUID) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic_id])
            return -len(self._owners[topic_id]) / subscribers, subscribers, uuid_order(topic_id)

        return sorted(topic_ids, key=key)

    def _even_out(self) -> None:
        """Sweep over the topics until a whole sweep has changed nothing."""
        topic_ids = self._sorted([topic_id for topic_id, members in self._subscribers.items() if len(members) >= 2])
        last_changed = -1
        for _ in range(MOST_SWEEPS):
            for place, topic_id in enumerate(topic_ids):
                if place == last_changed:
                    return
                if self._even_out_topic(topic_id) or last_changed < 0:
                    last_changed = place

    def _even_out_topic(self, topic_id: UUID) -> bool:
        """Move partitions of the topic from those with most to those with least; says whether any moved."""
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
            self._give(topic_id, partition, receiver)
            changed = True
        return changed

    def _give(self, topic_id: UUID, partition: int, member: int) -> None:
        before = self._owners[topic_id][partition]
        if before >= 0:
            self._loads[before] -= 1
        self._owners[topic_id][partition] = member
        self._loads[member] += 1
