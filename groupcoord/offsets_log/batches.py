"""Batches of ``__consumer_offsets``, wherever they come from: what every part of this package speaks of.

Nothing in here needs files, so it can be imported on every system.
"""

from typing import NamedTuple

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.protocol.batches.record_batch import BatchHeader


class SourceError(Exception):
    """There is nothing to read, or nothing to write to; the text says why, and what to do about it."""


class Batch(NamedTuple):
    """A batch as it is stored, whole and with the right checksum. ``segment`` is the base offset of its segment."""

    partition: int
    segment: int
    header: BatchHeader
    data: bytes
    topic: str = CONSUMER_OFFSETS


class UnreadableData(NamedTuple):
    """Something in ``partition`` that cannot be read, at ``offset`` or behind it; ``place`` is a file and a byte, if any is."""

    partition: int
    offset: int
    reason: str
    place: str = ""
    topic: str = CONSUMER_OFFSETS

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.topic}-{self.partition} at offset {self.offset}: {self.reason}{place}"
