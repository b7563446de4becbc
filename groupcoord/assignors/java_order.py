"""The iteration orders of members, topics and partitions in Kafka's Java assignors, which break ties; and MemberHeap."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from heapq import heapify, heappush, heapreplace
from itertools import chain

from groupcoord.assignors.interface import GroupSubscription, Subscription, TopicPartition
from groupcoord.core.java_hash_order import compare_key, hash_order, string_hash


def java_sorted(texts: Iterable[str]) -> list[str]:
    """``texts`` in the order of ``String.compareTo``."""
    return sorted(texts, key=compare_key)


def members_in_hash_order(group: GroupSubscription) -> dict[str, Subscription]:
    """The subscriptions in the leader's iteration order, that of a ``HashMap``."""
    return {member_id: group.subscriptions[member_id] for member_id in hash_order(group.subscriptions)}


def members_in_order(members: Mapping[str, Subscription]) -> list[str]:
    """Static members by instance id, then dynamic ones by member id (``AbstractPartitionAssignor.MemberInfo``)."""

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].instance_id
        return instance_id is None, compare_key(member_id if instance_id is None else instance_id)

    return sorted(members, key=key)


def topic_table(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> dict[str, int]:
    """Topic → partition count, of subscribed topics that have partitions, in the order of a ``HashMap``.

    Every assignor of Kafka starts with this (``AbstractPartitionAssignor.assign``).
    """
    wanted = frozenset[str]().union(*[subscription.topics for subscription in members.values()])
    present = [topic for topic, count in partitions.items() if count > 0 and topic in wanted]
    return {topic: partitions[topic] for topic in hash_order(present)}


def as_leader(group: GroupSubscription) -> GroupSubscription:
    """``group`` with its topics in the order of the leader, which collects them from the subscriptions.

    Only range depends on that order, and only for topics whose names share a bucket of a ``HashMap``.
    """
    members = members_in_hash_order(group)
    wanted = hash_order(topic for subscription in members.values() for topic in subscription.topics)
    return replace(group, partitions={topic: group.partitions[topic] for topic in wanted if topic in group.partitions})


def subscribers_of(topics: Iterable[str], members: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """Topic → its subscribers, in member order; a member that names a topic twice counts once.

    Topics with the same subscribers share one list: in most groups that is a single list.
    """
    ids = members_in_order(members)
    places: dict[tuple[str, ...], list[int]] = {}
    for place, member_id in enumerate(ids):
        places.setdefault(tuple(members[member_id].topics), []).append(place)
    wishes: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, wish in enumerate(places):
        for topic in dict.fromkeys(wish):
            if topic in wishes:
                wishes[topic].append(number)
    of_wish = list(places.values())

    @cache
    def together(numbers: tuple[int, ...]) -> list[str]:
        return [ids[place] for place in sorted(chain.from_iterable(of_wish[number] for number in numbers))]

    return {topic: together(tuple(numbers)) for topic, numbers in wishes.items()}


def partition_hash(topic_hash: int, partition: int) -> int:
    """``TopicPartition.hashCode()`` for a topic name with the hash ``topic_hash``; only its lower 32 bits are valid."""
    return 31 * (31 + partition) + topic_hash


class PartitionSet:
    """A ``HashSet<TopicPartition>`` of partitions of one topic, which tells its first element."""

    __slots__ = ("_capacity", "_hashes", "_topic_hash")

    def __init__(self, topic: str) -> None:
        self._topic_hash = string_hash(topic)
        self._hashes: dict[int, int] = {}
        self._capacity = 16

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, partition: int) -> None:
        """Add ``partition``; the table doubles when it is more than three quarters full."""
        unsigned = partition_hash(self._topic_hash, partition) & 0xFFFFFFFF
        self._hashes[partition] = unsigned ^ unsigned >> 16
        while 4 * len(self._hashes) > 3 * self._capacity:
            self._capacity *= 2

    def remove(self, partition: int) -> None:
        """Remove ``partition``. Raises KeyError."""
        del self._hashes[partition]

    def first(self) -> int:
        """The first partition in iteration order: buckets in order, within a bucket the order of insertion."""
        hashes, mask = self._hashes, self._capacity - 1
        return min(hashes, key=lambda partition: hashes[partition] & mask)


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """All partitions of ``topic``, ascending."""
    return [(topic, partition) for partition in range(count)]


class MemberHeap:
    """Finds the member with the fewest partitions. Members are ordered by (size, rank) and identified by rank; all heaps share
    ``sizes``.

    A member that has grown is noticed when it comes to the top; one that has shrunk must be reported with ``shrunk``.
    """

    __slots__ = ("_heap", "_sizes")

    def __init__(self, members: Iterable[int], sizes: list[int]) -> None:
        self._sizes = sizes
        count = len(sizes)
        self._heap = [sizes[member] * count + member for member in members]
        heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def least(self) -> int:
        """The member with the fewest partitions; of several, the one with the lowest rank. The heap must not be empty."""
        heap, sizes = self._heap, self._sizes
        count = len(sizes)
        while True:
            # A member that has shrunk has several entries; the topmost is never more than its size.
            member = heap[0] % count
            now = sizes[member] * count + member
            if heap[0] == now:
                return member
            heapreplace(heap, now)

    def shrunk(self, member: int) -> None:
        """``member`` has fewer partitions than before."""
        heappush(self._heap, self._sizes[member] * len(self._sizes) + member)
