"""The sticky algorithm for different subscriptions. Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.

Members keep their partitions, free partitions go to the subscriber that has fewest, and then partitions move from members with
more to members with fewer until no move improves the balance (``performReassignments``, ``PartitionMovements``).

Before every step Kafka checks whether the assignment is balanced, and compares for every partition all subscribers of its
topic. Here a heap per set of subscribers returns the subscriber that has fewest, and a partition whose owner does not have two
more than that subscriber is skipped: the same moves in the same order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count

from groupcoord.assignors.interface import Assignment, JavaFailure, Subscription, TopicPartition
from groupcoord.assignors.java_order import MemberHeap, PartitionSet, java_sorted
from groupcoord.assignors.racks import RackInfo, Racks
from groupcoord.assignors.sticky.previous_assignment import (
    DEFAULT_GENERATION,
    Ownership,
    PreviousAssignment,
    unassigned_partitions,
)
from groupcoord.core.java_hash_order import compare_key


class Bag:
    """A multiset of partitions, for a member that may have a partition twice; slower than the ``dict`` used otherwise."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[int]) -> None:
        self._items = list(items)

    def __iter__(self) -> Iterator[int]:
        return iter(self._items)

    def __contains__(self, item: int) -> bool:
        return item in self._items

    def __setitem__(self, item: int, _value: None) -> None:
        self._items.append(item)

    def __delitem__(self, item: int) -> None:
        self._items.remove(item)


class WorkingAssignment:
    """The assignment while it changes: members, topics, partitions and their owners, as numbers."""

    def __init__(self, members: Mapping[str, Subscription], table: Mapping[str, int]) -> None:
        self.hash_order = list(members)
        self.ids = java_sorted(members)
        self.rank = {member_id: rank for rank, member_id in enumerate(self.ids)}
        wanting: dict[str, list[int]] = {topic: [] for topic in table}
        for member_id, subscription in members.items():
            for topic in subscription.topics:
                if topic in wanting:
                    wanting[topic].append(self.rank[member_id])
        self.topics = sorted(table, key=lambda topic: (len(wanting[topic]), compare_key(topic)))
        self.topic_number = {topic: number for number, topic in enumerate(self.topics)}
        self.subscribers = [wanting[topic] for topic in self.topics]
        """The subscribers of each topic; a member that names it twice is in it twice."""
        self.counts = [table[topic] for topic in self.topics]
        self.wants = [
            [self.topic_number[topic] for topic in members[member_id].topics if topic in table]
            for member_id in self.ids
        ]
        """The topics of each member, as often as it names them."""
        self.partitions: list[TopicPartition] = []
        """All partitions in order; after them, claimed partitions that do not exist."""
        self.ranges: list[range] = []
        """The partitions of each topic."""
        for topic, partitions in zip(self.topics, self.counts, strict=True):
            start = len(self.partitions)
            self.partitions += [(topic, partition) for partition in range(partitions)]
            self.ranges.append(range(start, start + partitions))
        self.total = len(self.partitions)
        self.owner = [-1] * self.total
        self.held: list[dict[int, None] | Bag] = [{} for _ in self.ids]
        """The partitions of each member, in the order in which it got them."""
        self.sizes = [0] * len(self.ids)
        """The number of partitions of each member."""

    @property
    def has_phantoms(self) -> bool:
        """Does any member claim a partition that does not exist?"""
        return len(self.partitions) > self.total

    def allow_twice(self) -> None:
        """Allow from now on that a member gets a partition it already has."""
        self.held = [Bag(held) for held in self.held]

    def number(self, partition: TopicPartition) -> int | None:
        """The number of ``partition``; None if it does not exist."""
        topic, index = partition
        if topic not in self.topic_number:
            return None
        place = self.ranges[self.topic_number[topic]]
        return place[index] if 0 <= index < len(place) else None

    def keep(self, member: int, partition: TopicPartition) -> None:
        """``member`` keeps ``partition``."""
        number = self.number(partition)
        if number is None:
            number = len(self.partitions)
            self.partitions.append(partition)
            self.owner.append(member)
        self.give(number, member)

    def give(self, partition: int, member: int) -> None:
        """Assign the free ``partition`` to ``member``."""
        self.owner[partition] = member
        self.held[member][partition] = None
        self.sizes[member] += 1

    def move(self, partition: int, receiver: int) -> None:
        """Move ``partition`` from its owner to ``receiver``."""
        giver = self.owner[partition]
        del self.held[giver][partition]
        self.sizes[giver] -= 1
        self.give(partition, receiver)

    def restore(self, before: Mapping[int, Iterable[int]]) -> None:
        """Restore the partitions of each member in ``before``, as if nothing had moved."""
        for member, partitions in before.items():
            held = list(partitions)
            self.held[member] = Bag(held) if self.has_phantoms else dict.fromkeys(held)
            self.sizes[member] = len(held)
            for partition in held:
                self.owner[partition] = member

    def most_possible(self, member: int) -> int:
        """The number of partitions of all topics of ``member``.

        As in Kafka, a member that names as many topics as exist is taken to subscribe to all.
        """
        wants = self.wants[member]
        return self.total if len(wants) == len(self.topics) else sum([self.counts[topic] for topic in wants])

    def is_contested(self, topic: int) -> bool:
        """Has ``topic`` several subscribers, so that its partitions can move?"""
        return len(self.subscribers[topic]) >= 2

    def by_topic(self, partitions: Iterable[int]) -> list[tuple[int, list[int]]]:
        """``partitions``, which are in order, grouped by topic."""
        grouped: dict[int, list[int]] = {}
        for partition in partitions:
            grouped.setdefault(self.topic_number[self.partitions[partition][0]], []).append(partition)
        return list(grouped.items())

    def assignment(self) -> Assignment:
        """The assignment by member ids and topic names."""
        names: Sequence[TopicPartition] = self.partitions
        return {
            member_id: [names[partition] for partition in self.held[self.rank[member_id]]]
            for member_id in self.hash_order
        }


Pair = tuple[int, int]
"""(from, to)."""


class PartitionMovements:
    """The moves of the partitions of one topic."""

    __slots__ = ("_by_pair", "_pairs", "_topic")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._pairs: dict[int, Pair] = {}
        """Partition → its first owner, and its current one."""
        self._by_pair: dict[Pair, PartitionSet] = {}

    def instead_of(self, partition: int, owner: int, receiver: int) -> int:
        """The partition to move if ``partition`` is to move from ``owner`` to ``receiver``.

        If another partition has moved the opposite way, that one moves back instead; of several, the first of a ``HashSet``.
        """
        source = self._pairs[partition][0] if partition in self._pairs else owner
        back = self._by_pair.get((receiver, source))
        return partition if back is None else back.first()

    def record(self, partition: int, owner: int, receiver: int) -> None:
        """Record the move of ``partition``; its first owner stays recorded, unless the partition is back there."""
        source = owner
        if partition in self._pairs:
            pair = self._pairs.pop(partition)
            source = pair[0]
            others = self._by_pair[pair]
            others.remove(partition)
            if not len(others):
                del self._by_pair[pair]
            if source == receiver:
                return
        self._pairs[partition] = pair = (source, receiver)
        if pair not in self._by_pair:
            self._by_pair[pair] = PartitionSet(self._topic)
        self._by_pair[pair].add(partition)


class Reassignment:
    """Moves partitions in ``working`` among the members ``in_play``.

    ``previous`` has the owner of a partition in an older generation: it moves back there if that improves the balance. With
    ``strict`` a previous owner that is not in play is an error, as in Kafka; otherwise it is ignored.
    """

    def __init__(
        self, working: WorkingAssignment, in_play: Sequence[int], previous: Mapping[int, int], strict: bool
    ) -> None:
        self._working = working
        self._in_play = in_play
        self._playing = frozenset(in_play)
        self._previous = previous
        self._strict = strict
        # Before each move Kafka checks whether everything is balanced. Comparing the owner with the subscriber that has fewest
        # gives the same result, unless a partition does not exist or can move to a member that does not subscribe to its topic.
        self._must_ask = working.has_phantoms or any(
            member not in self._playing or self._topic_of(partition) not in working.wants[member]
            for partition, member in previous.items()
        )
        self._pools: dict[tuple[int, ...], MemberHeap] = {}
        self._pools_of_topic: dict[int, MemberHeap] = {}
        self._pools_of_member: list[list[MemberHeap]] = [[] for _ in working.ids]
        self._movements: dict[int, PartitionMovements] = {}
        self.before: dict[int, list[int]] = {}
        """The partitions of changed members before any move."""

    def run(self, by_topic: Sequence[tuple[int, Sequence[int]]]) -> bool:
        """Sweep over these partitions until nothing moves; returns whether anything did."""
        moved = False
        while self._pass(by_topic):
            moved = True
        return moved

    def _pass(self, by_topic: Sequence[tuple[int, Sequence[int]]]) -> bool:
        working, previous, modified = self._working, self._previous, False
        owner, sizes = working.owner, working.sizes
        largest = max([sizes[member] for member in self._in_play], default=0)
        for topic, partitions in by_topic:
            pool = self._pool(topic)
            enough = sizes[pool.least()] + 1
            if enough >= largest and not previous:
                continue  # no owner has enough for a subscriber of this topic to get one
            for partition in partitions:
                if sizes[owner[partition]] <= enough and partition not in previous:
                    continue
                if self._must_ask and self.is_balanced():
                    return modified
                receiver = self._receiver(partition, pool, enough)
                if receiver is not None:
                    self._move(topic, partition, receiver)
                    modified = True
                    enough = sizes[pool.least()] + 1
        return modified

    def _receiver(self, partition: int, pool: MemberHeap, enough: int) -> int | None:
        """The member to which ``partition`` should move, if any."""
        size = self._working.sizes[self._working.owner[partition]]
        back = self._previous.get(partition)
        if back is not None and back not in self._playing:
            if self._strict:
                raise JavaFailure(
                    "NullPointerException",
                    f"{self._working.partitions[partition]} was once owned by {self._working.ids[back]}, "
                    "which has been set aside as unable to give or take anything",
                )
        elif back is not None and size > self._working.sizes[back] + 1:
            return back
        return pool.least() if size > enough else None

    def _move(self, topic: int, partition: int, receiver: int) -> None:
        working = self._working
        if topic not in self._movements:
            self._movements[topic] = PartitionMovements(working.topics[topic])
        movements, start = self._movements[topic], working.ranges[topic].start
        index = movements.instead_of(partition - start, working.owner[partition], receiver)
        giver = working.owner[start + index]
        for member in (giver, receiver):
            if member not in self.before:
                self.before[member] = list(working.held[member])
        movements.record(index, giver, receiver)
        working.move(start + index, receiver)
        for pool in self._pools_of_member[giver]:
            pool.shrunk(giver)

    def is_balanced(self) -> bool:
        """Can no partition move to a member with at least two fewer than its owner? (``isBalanced``)"""
        working, sizes = self._working, self._working.sizes
        playing = [sizes[member] for member in self._in_play]
        if min(playing) >= max(playing) - 1:
            return True
        owner = dict(enumerate(working.owner))
        for member_id in working.hash_order if working.has_phantoms else ():
            member = working.rank[member_id]
            if member in self._playing:
                owner.update(dict.fromkeys(working.held[member], member))
        largest = [max([sizes[owner[partition]] for partition in of_topic]) for of_topic in working.ranges]
        return not any(
            sizes[member] != working.most_possible(member)
            and any(
                sizes[member] + 1 < largest[topic]
                and any(
                    sizes[member] + 1 < sizes[owner[partition]] and partition not in working.held[member]
                    for partition in working.ranges[topic]
                )
                for topic in working.wants[member]
            )
            for member in self._in_play
        )

    def _topic_of(self, partition: int) -> int:
        return self._working.topic_number[self._working.partitions[partition][0]]

    def _pool(self, topic: int) -> MemberHeap:
        """The members in play that subscribe to ``topic``; topics with the same subscribers share one heap."""
        if topic not in self._pools_of_topic:
            members = tuple([member for member in self._working.subscribers[topic] if member in self._playing])
            if members not in self._pools:
                self._pools[members] = pool = MemberHeap(members, self._working.sizes)
                for member in dict.fromkeys(members):
                    self._pools_of_member[member].append(pool)
            self._pools_of_topic[topic] = self._pools[members]
        return self._pools_of_topic[topic]


def assign_general(
    members: Mapping[str, Subscription],
    claims: Mapping[str, PreviousAssignment],
    table: Mapping[str, int],
    ownership: Ownership,
    racks: RackInfo,
    *,
    strict: bool,
) -> Assignment:
    """Assign; ``members`` are in ``HashMap`` order.

    Raises JavaFailure, if ``strict``, where Kafka throws: a partition's owner of an older generation cannot take part in moves.
    """
    working = WorkingAssignment(members, table)
    revoked = _keep(working, members, ownership, racks)
    free = _free(working)
    begins = not any(working.sizes)
    _give_out(working, free, racks)

    in_play = [member for member in range(len(working.ids)) if _can_take_part(working, member)]
    everything = [(topic, working.ranges[topic]) for topic in range(len(working.topics)) if working.is_contested(topic)]
    previous = _previous_owners(working, members, claims, ownership.max_generation)
    reassignment = Reassignment(working, in_play, previous, strict)
    sizes = [working.sizes[member] for member in in_play]
    if not revoked:
        reassignment.run([(topic, part) for topic, part in working.by_topic(free) if working.is_contested(topic)])
    moved = reassignment.run(everything)
    if moved and not begins and balance_score([working.sizes[member] for member in in_play]) >= balance_score(sizes):
        working.restore(reassignment.before)
    return working.assignment()


def balance_score(sizes: Iterable[int]) -> int:
    """The imbalance: the sum of the differences over all pairs of members, in Java's 32 bits."""
    ascending = sorted(sizes)
    score = sum(
        [
            place * size - before
            for place, size, before in zip(count(), ascending, accumulate(ascending, initial=0), strict=False)
        ]
    )
    return (score + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def _keep(
    working: WorkingAssignment, members: Mapping[str, Subscription], ownership: Ownership, racks: RackInfo
) -> bool:
    """Assign what members keep; returns whether any partition was lost: unsubscribed, or on other racks."""
    revoked = False
    for member_id, partitions in ownership.kept.items():
        wanted, member = frozenset(members[member_id].topics), working.rank[member_id]
        for partition in partitions:
            if partition[0] not in wanted or racks.mismatch(member_id, partition):
                revoked = True
            else:
                working.keep(member, partition)
    return revoked


def _free(working: WorkingAssignment) -> list[int]:
    if not working.has_phantoms:
        return [partition for partition, owner in enumerate(working.owner) if owner < 0]
    working.allow_twice()
    kept = [working.partitions[partition] for held in working.held for partition in held]
    everything = working.partitions[: working.total]
    place = {partition: number for number, partition in enumerate(everything)}
    return [place[partition] for partition in unassigned_partitions(everything, kept)]


def _give_out(working: WorkingAssignment, free: Iterable[int], racks: RackInfo) -> None:
    """Assign each of ``free`` to the subscriber with fewest; if racks matter, first those with a subscriber on a replica's
    rack."""
    if racks.matter:
        nearby: dict[tuple[int, Racks], MemberHeap] = {}
        rest = []
        for partition in free:
            name = working.partitions[partition]
            key = working.topic_number[name[0]], racks.racks(name)
            if key not in nearby:
                nearby[key] = MemberHeap(_fitting(working, name, racks), working.sizes)
            if nearby[key]:
                working.give(partition, nearby[key].least())
            else:
                rest.append(partition)
        free = rest
    pools: dict[tuple[int, ...], MemberHeap] = {}
    for topic, partitions in working.by_topic(free):
        subscribers = tuple(working.subscribers[topic])
        if subscribers not in pools:
            pools[subscribers] = MemberHeap(subscribers, working.sizes)
        pool = pools[subscribers]
        for partition in partitions:
            working.give(partition, pool.least())


def _fitting(working: WorkingAssignment, partition: TopicPartition, racks: RackInfo) -> list[int]:
    """The subscribers of ``partition`` without a rack mismatch."""
    subscribers = working.subscribers[working.topic_number[partition[0]]]
    return [member for member in subscribers if not racks.mismatch(working.ids[member], partition)]


def _can_take_part(working: WorkingAssignment, member: int) -> bool:
    """Could ``member`` get more, or give something to another subscriber?"""
    if working.sizes[member] < working.most_possible(member):
        return True
    topics = {working.partitions[partition][0] for partition in working.held[member]}
    return any(working.is_contested(working.topic_number[topic]) for topic in topics)


def _previous_owners(
    working: WorkingAssignment,
    members: Iterable[str],
    claims: Mapping[str, PreviousAssignment],
    max_generation: int,
) -> dict[int, int]:
    """Partition → its owner in the latest generation before the current one, according to the members' claims.

    All claims count, even if they were rejected or the topic is no longer subscribed.
    """
    owners: dict[int, tuple[int, int]] = {}
    for member_id in members:
        previous = claims[member_id]
        generation = DEFAULT_GENERATION if previous.generation is None else previous.generation
        if generation >= max_generation:
            continue
        for claim in previous.partitions:
            partition = working.number(claim)
            if partition is not None and (partition not in owners or generation > owners[partition][0]):
                owners[partition] = generation, working.rank[member_id]
    return {partition: member for partition, (_, member) in owners.items()}
