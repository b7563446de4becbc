"""Where a long partition of the log is cut, so that several tasks read it.

Offsets do not say how much there is to read: compaction may have left ten records of a million offsets, and behind them each
offset has one. So what is around some offsets is asked for, and a stretch is halved until it is about RANGE_BYTES. Between
the places that were asked for it may hold more than it seems to: a range is then longer, and what is read is the same.
"""

from collections.abc import Callable

from groupcoord.pipeline.sources.segment_files import PIECE_BYTES

RANGE_BYTES = PIECE_BYTES
"""How much one task reads, the same as of a segment file: a second or so of decoding, where a task begins in some 50 ms."""
FEWEST_OFFSETS = 50_000
"""A shorter range is not worth a task: it is read before the task has begun."""


def cut_offsets(start: int, end: int, density: Callable[[int], float]) -> list[int]:
    """The offsets between ``start`` and ``end`` at which to cut, in order. ``density`` says of an offset how many bytes there
    are for each offset around it."""

    def cuts(low: int, high: int, at_low: float, at_high: float) -> list[int]:
        if high - low < 2 * FEWEST_OFFSETS or (high - low) * max(at_low, at_high) <= RANGE_BYTES:
            return []
        middle = (low + high) // 2
        at_middle = density(middle)
        return [*cuts(low, middle, at_low, at_middle), middle, *cuts(middle, high, at_middle, at_high)]

    if end - start < 2 * FEWEST_OFFSETS:
        return []
    return cuts(start, end, density(start), density(end - 1))
