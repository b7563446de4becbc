"""Where records without a key go: to one partition until a batch is full, then to another (KIP-794).

Source: ``BuiltInPartitioner``. Records that lie in one batch cost the broker less than records that are spread.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from groupcoord.partitioners.key_hashes import positive


class StickyPartition:
    """The current partition of one topic. ``random`` gives any 32-bit integer; ``batch_size`` is in bytes, at least 1."""

    def __init__(self, batch_size: int, random: Callable[[], int]) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch cannot have {batch_size} bytes")
        self._batch_size = batch_size
        self._random = random
        self._current: int | None = None
        self._produced = 0
        self._loads: tuple[Sequence[int], Sequence[int]] | None = None

    def current(self, available: Sequence[int], count: int) -> int:
        """The partition for the next record. ``available`` are those of ``count`` partitions that have a leader."""
        if self._current is None:
            self._switch(available, count)
        return self._current  # type: ignore[return-value]

    def appended(self, size: int, available: Sequence[int], count: int, *, batch_full: bool = True) -> None:
        """A record took ``size`` bytes of the current partition: time to switch?

        With a whole batch produced the partition changes, but if the last batch in the queue is not full that waits, up to
        a second batch size, so that lingering does not tear batches apart.
        """
        self._produced += size
        if self._produced >= self._batch_size * (1 if batch_full else 2):
            self._switch(available, count)

    def loads(self, queued: Sequence[int] | None, partitions: Sequence[int] = (), left_out: int = 0) -> None:
        """Batches queued for each of ``partitions``, those with a leader: prefer the shorter queues from now on.

        ``left_out`` partitions with a leader are not listed because nobody takes what is queued for them. Queues of equal
        length, or fewer than two, or None, mean no preference.
        """
        self._loads = None
        if queued and len(queued) + left_out >= 2 and (left_out or len(set(queued)) > 1):
            longest = max(queued)
            self._loads = list(accumulate([longest + 1 - length for length in queued])), partitions

    @property
    def cumulative(self) -> Sequence[int] | None:
        """The cumulative weights by which the next partition is drawn; None if all are equal."""
        return None if self._loads is None else self._loads[0]

    def _switch(self, available: Sequence[int], count: int) -> None:
        drawn = positive(self._random())
        if self._loads is not None:
            cumulative, partitions = self._loads
            self._current = partitions[bisect_right(cumulative, drawn % cumulative[-1])]
        else:
            self._current = available[drawn % len(available)] if available else drawn % count
        self._produced = 0
