"""How far members are in the partitions they read: a model of a log that never ends, read at a steady pace."""

from groupcoord.assignors import TopicPartition

_SLOWEST_MS = 40
"""A record of partition 0 takes so long, one of partition 1 a little less, and so on."""


class Positions:
    """Where one member is in each partition. Where nothing is known of a partition yet, it has no position."""

    def __init__(self) -> None:
        self._at: dict[TopicPartition, tuple[int, int | None]] = {}

    def begin(self, partition: TopicPartition, offset: int, now_ms: int, *, reading: bool) -> None:
        """The next record of ``partition`` is that at ``offset``."""
        self._at[partition] = offset, now_ms if reading else None

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._at

    def keep_only(self, partitions: frozenset[TopicPartition]) -> None:
        """Forget the others."""
        for partition in [partition for partition in self._at if partition not in partitions]:
            del self._at[partition]

    def stop(self, now_ms: int) -> None:
        """Nothing is read from now on."""
        self._at = {partition: (offset, None) for partition, offset in self.all(now_ms).items()}

    def go_on(self, now_ms: int) -> None:
        """It is read again."""
        self._at = {partition: (offset, now_ms) for partition, offset in self.all(now_ms).items()}

    def all(self, now_ms: int) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition, in order."""
        return {
            partition: offset if since_ms is None else offset + (now_ms - since_ms) // (_SLOWEST_MS - partition[1])
            for partition, (offset, since_ms) in sorted(self._at.items())
        }
