"""A stretch of a log: batches one behind the other, and where each begins. Retention deletes whole segments.

The batches lie in one buffer as they would in Kafka's file, and are found by bisection; offsets may have gaps, between batches
and inside them, as compaction leaves them. Source: ``LogSegment``.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from groupcoord.broker.timestamp_search import BatchSearch, find_first_since
from groupcoord.protocol.batches.record_batch import INT32_MAX, NO_TIMESTAMP, BatchHeader, read_header
from groupcoord.protocol.batches.records import Record


class LogSegment:
    """The batches from ``base_offset`` on. Times are milliseconds."""

    __slots__ = (
        "_base_offsets",
        "_latest",
        "_positions",
        "base_offset",
        "created_ms",
        "data",
        "modified_ms",
        "slices",
    )

    def __init__(self, base_offset: int, now_ms: int) -> None:
        self.base_offset = base_offset
        self.created_ms = self.modified_ms = now_ms
        self.data = bytearray()
        self.slices = 0
        """How many answers refer to it."""
        self._base_offsets = array("q")
        self._positions = array("q")
        self._latest = array("q")  # the largest timestamp of all batches up to this one

    def __repr__(self) -> str:
        return f"<LogSegment from {self.base_offset} batches={len(self._positions)} bytes={len(self.data)}>"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return len(self.data)

    bytes_in_memory = size

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of all records, or -1."""
        return self._latest[-1] if self._latest else NO_TIMESTAMP

    @property
    def largest_timestamp_ms(self) -> int:
        """What counts for retention: the largest timestamp; without any, the time of the last append."""
        latest = self.max_timestamp_ms
        return latest if latest >= 0 else self.modified_ms

    def append(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        """Add a batch that lies behind all others."""
        latest = max(self.max_timestamp_ms, header.max_timestamp_ms)
        self._base_offsets.append(header.base_offset)
        self._positions.append(len(self.data))
        self._latest.append(latest)
        self.data += batch
        self.modified_ms = now_ms

    def age_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """How old the segment is at an append of ``timestamp_ms``: by its first batch's time, else by the clock."""
        first = read_header(self.data).max_timestamp_ms if self.data else NO_TIMESTAMP
        return timestamp_ms - first if first >= 0 else now_ms - self.created_ms

    def is_full_for(self, last_offset: int) -> bool:
        """Is ``last_offset`` too far from the first? An index of Kafka's has four bytes for the distance."""
        return last_offset - self.base_offset > INT32_MAX

    def batches(self) -> Iterator[tuple[bytes, BatchHeader]]:
        """All batches."""
        for position in self._positions:
            header = read_header(self.data, position)
            yield self.copy(position, header.size), header

    def find(self, offset: int) -> "FoundBatch | None":
        """The first batch that holds ``offset`` or a later one."""
        index = max(0, bisect_right(self._base_offsets, offset) - 1)
        while index < len(self._positions):
            header = read_header(self.data, self._positions[index])
            if header.last_offset >= offset:
                return FoundBatch(self._positions[index], header)
            index += 1
        return None

    def copy(self, position: int, length: int) -> bytes:
        """The ``length`` bytes at ``position``."""
        with memoryview(self.data) as view:
            return bytes(view[position : position + length])

    def detach(self) -> None:
        """It is part of no log any more, and stays as it is."""

    def forget(self) -> None:
        """It is part of no log any more: give back the memory."""
        self.data = bytearray()

    def first_record_since(
        self, timestamp_ms: int, start_offset: int, find: BatchSearch = find_first_since
    ) -> Record | None:
        """The first record from ``start_offset`` on that is not older than ``timestamp_ms``."""
        for index in range(bisect_left(self._latest, timestamp_ms), len(self._positions)):
            header = read_header(self.data, self._positions[index])
            if header.max_timestamp_ms < timestamp_ms or header.last_offset < start_offset:
                continue
            batch = self.copy(self._positions[index], header.size)
            if (record := find(batch, header, timestamp_ms, start_offset)) is not None:
                return record
        return None

    def latest_record(self, find: BatchSearch = find_first_since) -> Record | None:
        """The first record that has the largest timestamp of all, or None if there is no record."""
        if not self._positions:
            return None
        latest = self.max_timestamp_ms
        position = self._positions[bisect_left(self._latest, latest)]
        header = read_header(self.data, position)
        return find(self.copy(position, header.size), header, latest, 0)


class FoundBatch(NamedTuple):
    """A batch of a segment, and where in it the batch begins."""

    position: int
    header: BatchHeader
