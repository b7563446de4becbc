"""Uniform for members that want different topics. Source: ``UniformHeterogeneousAssignmentBuilder``.

Members are their numbers in the order of the map.
"""

from collections.abc import Sequence
from uuid import UUID

from groupcoord.assignors.server.balancer import Balancer
from groupcoord.assignors.server.spec import Lists, Spec, Target, uuid_order

MOST_SWEEPS = 16
"""Each is expected to halve what is left of the imbalance."""


def assign_heterogeneous(spec: Spec) -> Target:
    """Keep what is still wanted, give what is free to those with least, and then even out topic by topic.

    Raises PartitionAssignorError if a topic does not exist.
    """
    return _Run(spec).target()


class _Run:
    def __init__(self, spec: Spec) -> None:
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

    def target(self) -> Target:
        """Who has what."""
        target: Lists = {member_id: {} for member_id in self._member_ids}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                target[self._member_ids[owner]].setdefault(topic_id, []).append(partition)
        return target

    def _keep(self, spec: Spec) -> None:
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
            balancer = Balancer(self._subscribers[topic_id], self._loads)
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
        balancer = Balancer(self._subscribers[topic_id], self._loads)
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
