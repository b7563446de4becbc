"""The state of a general assignment: who holds what, in numbers.

A member is its rank among the sorted ids, a topic its place in the order in which topics are given out (those with fewest
subscribers first), and a partition its place in the list of all partitions in that order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groupcoord.assignors.java_order import java_sorted
from groupcoord.assignors.model import Assignment, Subscription, TopicPartition
from groupcoord.core.java import compare_key


class Bag:
    """What a member holds if it may hold a partition twice: slower than the ``dict`` that otherwise does."""

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


class Board:
    """Members, topics, partitions and their owners."""

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
        """Of each topic; a member that names it twice is twice in here."""
        self.counts = [table[topic] for topic in self.topics]
        self.wants = [
            [self.topic_number[topic] for topic in members[member_id].topics if topic in table]
            for member_id in self.ids
        ]
        """Of each member the topics, as often as it names them."""
        self.partitions: list[TopicPartition] = []
        """All partitions in order; behind them what is claimed though it does not exist."""
        self.ranges: list[range] = []
        """Of each topic its partitions."""
        for topic, count in zip(self.topics, self.counts, strict=True):
            start = len(self.partitions)
            self.partitions += [(topic, partition) for partition in range(count)]
            self.ranges.append(range(start, start + count))
        self.total = len(self.partitions)
        self.owner = [-1] * self.total
        self.held: list[dict[int, None] | Bag] = [{} for _ in self.ids]
        """Of each member its partitions, in the order in which it got them."""
        self.sizes = [0] * len(self.ids)
        """How many those are."""

    @property
    def has_phantoms(self) -> bool:
        """Is anything claimed that does not exist?"""
        return len(self.partitions) > self.total

    def allow_twice(self) -> None:
        """From now on a partition may be given to a member that holds it already."""
        self.held = [Bag(held) for held in self.held]

    def number(self, partition: TopicPartition) -> int | None:
        """The number of ``partition``; None if it does not exist."""
        topic, index = partition
        if topic not in self.topic_number:
            return None
        place = self.ranges[self.topic_number[topic]]
        return place[index] if 0 <= index < len(place) else None

    def keep(self, member: int, partition: TopicPartition) -> None:
        """``member`` has had ``partition`` and still has it."""
        number = self.number(partition)
        if number is None:
            number = len(self.partitions)
            self.partitions.append(partition)
            self.owner.append(member)
        self.give(number, member)

    def give(self, partition: int, member: int) -> None:
        """Give ``partition``, which is free, to ``member``."""
        self.owner[partition] = member
        self.held[member][partition] = None
        self.sizes[member] += 1

    def move(self, partition: int, receiver: int) -> None:
        """Take ``partition`` from its owner and give it to ``receiver``."""
        giver = self.owner[partition]
        del self.held[giver][partition]
        self.sizes[giver] -= 1
        self.give(partition, receiver)

    def restore(self, before: Mapping[int, Iterable[int]]) -> None:
        """Let each member in ``before`` hold what it says, as if nothing had moved since."""
        for member, partitions in before.items():
            held = list(partitions)
            self.held[member] = Bag(held) if self.has_phantoms else dict.fromkeys(held)
            self.sizes[member] = len(held)
            for partition in held:
                self.owner[partition] = member

    def most_possible(self, member: int) -> int:
        """How many partitions the topics of ``member`` have together.

        As in Kafka, whoever names as many topics as there are is taken to want them all.
        """
        wants = self.wants[member]
        return self.total if len(wants) == len(self.topics) else sum([self.counts[topic] for topic in wants])

    def is_contested(self, topic: int) -> bool:
        """Can a partition of ``topic`` go from one member to another?"""
        return len(self.subscribers[topic]) >= 2

    def by_topic(self, partitions: Iterable[int]) -> list[tuple[int, list[int]]]:
        """``partitions``, which are in order, with their topic."""
        grouped: dict[int, list[int]] = {}
        for partition in partitions:
            grouped.setdefault(self.topic_number[self.partitions[partition][0]], []).append(partition)
        return list(grouped.items())

    def assignment(self) -> Assignment:
        """Who holds what, in names."""
        names: Sequence[TopicPartition] = self.partitions
        return {
            member_id: [names[partition] for partition in self.held[self.rank[member_id]]]
            for member_id in self.hash_order
        }
