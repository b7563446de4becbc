"""LogSource, the interface of everything that batches of ``__consumer_offsets`` are read from, and Batch.

It imports no code for files, so that it can be imported on every operating system.
"""

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from groupcoord.broker.topic_names import CONSUMER_OFFSETS
from groupcoord.protocol.batches.record_batch import BatchHeader


class SourceError(Exception):
    """The source cannot be read or the target cannot be written; the message says why, and what to do."""


class Batch(NamedTuple):
    """A stored batch, complete and with a valid CRC. ``segment`` is the base offset of its segment."""

    partition: int
    segment: int
    header: BatchHeader
    data: bytes
    topic: str = CONSUMER_OFFSETS


class UnreadableData(NamedTuple):
    """Unreadable data in ``partition``, at or after ``offset``; ``place`` names the file and the byte position, if known."""

    partition: int
    offset: int
    reason: str
    place: str = ""
    topic: str = CONSUMER_OFFSETS

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.topic}-{self.partition} at offset {self.offset}: {self.reason}{place}"


class LogSource(Protocol):
    """A source with the partitions of ``topic``, or some of them."""

    @property
    def topic(self) -> str:
        """``__consumer_offsets``, unless it was opened for ``__transaction_state``."""

    @property
    def partitions(self) -> Sequence[int]:
        """The existing partitions, in ascending order."""

    @property
    def topic_id(self) -> uuid.UUID | None:
        """The topic id, if it is known."""

    def read(self, partition: int) -> Iterator[Batch | UnreadableData]:
        """The batches of ``partition`` in order, with UnreadableData in place of unreadable ones. Raises SourceError."""
