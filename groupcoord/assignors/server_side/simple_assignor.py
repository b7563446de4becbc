"""The simple assignor of share groups (KIP-932), in which several members can have the same partition.

Sources: ``SimpleAssignor``, ``SimpleHomogeneousAssignmentBuilder``, ``SimpleHeterogeneousAssignmentBuilder``. Both builders do
the same, one for all topics together, the other topic by topic.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from uuid import UUID

from groupcoord.assignors.interface import JavaFailure
from groupcoord.assignors.server_side.group_spec import (
    ChangedTargets,
    GroupSpec,
    SubscriptionType,
    TargetAssignment,
)
from groupcoord.core.java_hash_order import uuid_hash
from groupcoord.core.java_map import IntSet, JavaMap, size_for

TopicIdPartition = tuple[UUID, int]


def assign_simple(spec: GroupSpec) -> TargetAssignment:
    """Assign each partition to as many members as needed for each member to have some, balanced and with few changes.

    Raises PartitionAssignorError if a topic does not exist, JavaFailure where Kafka's class throws.
    """
    builder = _Builder(spec)
    if spec.subscription_type is SubscriptionType.HOMOGENEOUS:
        builder.assign_together()
    else:
        builder.assign_each_topic()
    return builder.target()


class _Builder:
    """Builds the target assignment. Members are numbers: their indexes in ``GroupSpec.member_ids``."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._member_ids = spec.member_ids()
        self._assigned = [dict(spec.assigned(member_id)) for member_id in self._member_ids]
        self._targets = ChangedTargets(spec)

    def target(self) -> TargetAssignment:
        """The target assignment so far."""
        return self._targets.target()

    def assign_together(self) -> None:
        """Assign all topics together: every member subscribes to the topics of the first one."""
        wanted = list(self._spec.members[self._member_ids[0]].topic_ids) if self._member_ids else []
        for number, assigned in enumerate(self._assigned):
            for topic_id in assigned.keys() - set(wanted):
                self._targets.change(number).remove_topic(topic_id)
        self._share(wanted, range(len(self._member_ids)), _hash)

    def assign_each_topic(self) -> None:
        """Assign topic by topic. Members keep partitions of topics to which nobody subscribes any more."""
        subscribers: dict[UUID, list[int]] = {}
        for number, member_id in enumerate(self._member_ids):
            for topic_id in self._spec.members[member_id].topic_ids:
                subscribers.setdefault(topic_id, []).append(number)
        if not subscribers:
            self._targets.clear()
        topics: JavaMap[UUID, list[int]] = JavaMap(uuid_hash)
        for topic_id, members in subscribers.items():
            self._spec.partition_count(topic_id)  # raises if any topic does not exist, before the first is assigned
            topics.put(topic_id, members)
        for topic_id, members in topics.items():
            self._share([topic_id], members, lambda key: key[1])

    def _share(
        self, topic_ids: Sequence[UUID], members: Sequence[int], hash_code: Callable[[TopicIdPartition], int]
    ) -> None:
        """Assign the partitions of the topics to ``members``."""
        given_out = [
            (topic_id, partition) for topic_id in topic_ids for partition in self._spec.assignable_partitions(topic_id)
        ]
        sharing = -(-len(members) // len(given_out)) if given_out else 0  # the number of members per partition
        share = sharing * len(given_out) / len(members) if members else 0.0
        quotas = dict.fromkeys(range(len(self._member_ids)), 0)
        for place, number in enumerate(members):
            quotas[number] = ceil(share * (place + 1)) - ceil(share * place)
        by_partition: JavaMap[TopicIdPartition, IntSet] = JavaMap(hash_code, size_for(len(given_out) + 1))
        by_member: dict[int, JavaMap[TopicIdPartition, None]] = {}
        shared = frozenset(topic_ids)
        for number, assigned in enumerate(self._assigned):
            by_member[number] = JavaMap(hash_code)
            for topic_id in [topic_id for topic_id in assigned if topic_id in shared]:
                for partition in assigned[topic_id]:
                    by_partition.computed((topic_id, partition), IntSet).add(number)
                    by_member[number].put((topic_id, partition), None)
        self._revoke(quotas, sharing, by_partition, by_member)
        for key in given_out:
            by_partition.computed(key, IntSet)
        lacking = {number for number in members if len(by_member[number]) < quotas[number]}
        for number, key in _handed_out(lacking, quotas, sharing, by_partition, by_member):
            self._targets.change(number).add(*key)

    def _revoke(
        self,
        quotas: dict[int, int],
        sharing: int,
        by_partition: JavaMap[TopicIdPartition, IntSet],
        by_member: dict[int, JavaMap[TopicIdPartition, None]],
    ) -> None:
        """Revoke partitions of members over their quota, then members of partitions that have too many."""
        for number, held in by_member.items():
            for key in held.listed()[: max(0, len(held) - quotas[number])]:
                self._targets.change(number).remove(*key)
                by_partition[key].remove(number)
                held.remove(key)
        for key, sharers in by_partition.items():
            for number in sharers.listed()[: max(0, len(sharers) - sharing)]:
                self._targets.change(number).remove(*key)
                sharers.remove(number)
                by_member[number].remove(key)


def _handed_out(
    lacking: set[int],
    quotas: dict[int, int],
    sharing: int,
    by_partition: JavaMap[TopicIdPartition, IntSet],
    by_member: dict[int, JavaMap[TopicIdPartition, None]],
) -> Iterator[tuple[int, TopicIdPartition]]:
    """(member, partition) pairs for members that lack partitions: one each in turn, until a full turn assigns nothing.

    Then no more partitions are assigned, as in ``assignRemainingPartitions``.
    """
    turn = iter(sorted(lacking))
    given_in_turn = False
    for key, sharers in by_partition.items():
        missing = sharing - len(sharers)
        while missing > 0:
            number = next(turn, None)
            if number is None:
                if not given_in_turn:
                    break
                if not lacking:
                    raise JavaFailure("NoSuchElementException", "all members are full before all partitions are shared")
                turn, given_in_turn = iter(sorted(lacking)), False
                continue
            if number in sharers:
                continue
            yield number, key
            if key not in by_member[number]:  # a repeated pair is not skipped: Kafka counts it as shared
                by_member[number].put(key, None)
            missing -= 1
            given_in_turn = True
            if len(by_member[number]) >= quotas[number]:
                lacking.remove(number)
        if not lacking:
            return


def _hash(key: TopicIdPartition) -> int:
    """The hash of the record ``TopicIdPartition``."""
    return 31 * uuid_hash(key[0]) + key[1]
