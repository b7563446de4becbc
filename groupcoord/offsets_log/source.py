"""Where the batches of ``__consumer_offsets`` come from, and what can be wrong with them."""

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from groupcoord.protocol.batches.record_batch import BatchHeader


class SourceError(Exception):
    """There is nothing to read, or nothing to write to; the text says why, and what to do about it."""


class Batch(NamedTuple):
    """A batch as it is stored, whole and with the right checksum. ``segment`` is the base offset of its segment."""

    partition: int
    segment: int
    header: BatchHeader
    data: bytes


class Fault(NamedTuple):
    """Something in ``partition`` that cannot be read, at ``offset`` or behind it; ``place`` is a file and a byte, if any is."""

    partition: int
    offset: int
    reason: str
    place: str = ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"__consumer_offsets-{self.partition} at offset {self.offset}: {self.reason}{place}"


class Source(Protocol):
    """Something that holds ``__consumer_offsets``, or some of its partitions."""

    @property
    def partitions(self) -> Sequence[int]:
        """The partitions that there are, ascending."""

    @property
    def topic_id(self) -> uuid.UUID | None:
        """The id of the topic, if it is known."""

    def read(self, partition: int) -> Iterator[Batch | Fault]:
        """What is in ``partition``, in its order. What cannot be read is a Fault, and the rest goes on. Raises SourceError."""
