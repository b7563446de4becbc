"""Splits a long partition of the log into ranges of offsets, so that several tasks read it.

A number of offsets does not tell how much there is to read: compaction may have left ten records of a million offsets, while
behind them every offset has a record. So the density is sampled at some offsets, and a range is halved until it has about
RANGE_BYTES by this estimate. A wrong estimate makes a range longer, but does not change what is read.
"""

from collections.abc import Callable

from groupcoord.pipeline.sources.segment_files import PIECE_BYTES

RANGE_BYTES = PIECE_BYTES
"""How much one task reads, as of segment files: about a second of decoding, while starting a task takes some 50 ms."""
FEWEST_OFFSETS = 50_000
"""Shorter ranges are not split: they are read faster than another task starts."""


def cut_offsets(start: int, end: int, density: Callable[[int], float]) -> list[int]:
    """The offsets between ``start`` and ``end`` at which to split, in order. ``density`` gives the bytes per offset around an
    offset."""

    def cuts(low: int, high: int, at_low: float, at_high: float) -> list[int]:
        if high - low < 2 * FEWEST_OFFSETS or (high - low) * max(at_low, at_high) <= RANGE_BYTES:
            return []
        middle = (low + high) // 2
        at_middle = density(middle)
        return [*cuts(low, middle, at_low, at_middle), middle, *cuts(middle, high, at_middle, at_high)]

    if end - start < 2 * FEWEST_OFFSETS:
        return []
    return cuts(start, end, density(start), density(end - 1))
