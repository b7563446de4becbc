"""What has moved from whom to whom in one rebalance, so that nothing is sent there and back within a topic.

Source: ``AbstractStickyAssignor.PartitionMovements``.
"""

from groupcoord.assignors.java_order import PartitionSet

Pair = tuple[int, int]
"""(from, to)."""


class Movements:
    """The movements of the partitions of one topic."""

    __slots__ = ("_by_pair", "_pairs", "_topic")

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._pairs: dict[int, Pair] = {}
        """Partition → where it was at first, and where it is now."""
        self._by_pair: dict[Pair, PartitionSet] = {}

    def instead_of(self, partition: int, owner: int, receiver: int) -> int:
        """What to move if ``partition`` is to go from ``owner`` to ``receiver``.

        If another partition has come the other way, that one goes back instead; of several, the first of a ``HashSet``.
        """
        source = self._pairs[partition][0] if partition in self._pairs else owner
        back = self._by_pair.get((receiver, source))
        return partition if back is None else back.first()

    def record(self, partition: int, owner: int, receiver: int) -> None:
        """``partition`` goes from ``owner`` to ``receiver``; where it was at first stays on record, unless it is back there."""
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
