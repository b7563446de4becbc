"""One segment of a partition's log, in memory: its batches in one buffer, and the position of each. Retention deletes whole
segments.

Batches are found by bisection. Compaction leaves gaps in the offsets, between batches and inside them.

A fetch response references bytes of the segment instead of copying them (zero copy). A slow client may take minutes to read a
response of 60 MB, and a segment that is deleted or compacted meanwhile has to stay readable, within a limit of memory. Kafka
keeps the files of a deleted segment for ``file.delete.delay.ms``, and closes the connections of clients that have not read them
by then.

A long search by timestamp (ListOffsets) runs in the background, and the request is retried when the result is there. Source:
``LogSegment``.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.core.background_work import BackgroundWork
from groupcoord.protocol.batches.record_batch import (
    INT32_MAX,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    drop_traceback,
    read_header,
    records_of,
    validation_cost,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, Record

MAX_DELETED_BYTES = 64 << 20
"""How many bytes of deleted in-memory segments are kept for unsent responses, over all logs."""

MAX_DELETED_SEGMENTS = 256
"""How many deleted segments are kept for unsent responses; each file segment holds a descriptor and disk space."""


class SegmentDeletedError(Exception):
    """The records of a response were deleted before it was sent."""


class SliceableSegment(Protocol):
    """A segment as unsent responses reference it. See LogSegment, the implementation in memory."""

    slices: int
    """The number of responses that reference it."""

    @property
    def bytes_in_memory(self) -> int:
        """How many of its bytes are in memory."""

    def copy(self, position: int, length: int) -> bytes:
        """The ``length`` bytes at ``position``; fewer if they were forgotten."""

    def detach(self) -> None:
        """The log has removed this segment; it stays readable until ``forget`` is called."""

    def forget(self) -> None:
        """Release the memory or file: no response references this segment any more, or none may."""


class DeletedSegments:
    """Deleted segments that unsent responses still reference; beyond the limits the oldest are forgotten."""

    def __init__(self, most_bytes: int = MAX_DELETED_BYTES, most_segments: int = MAX_DELETED_SEGMENTS) -> None:
        self._most_bytes, self._most_segments = most_bytes, most_segments
        self._segments: deque[SliceableSegment] = deque()

    def add(self, segments: Iterable[SliceableSegment]) -> None:
        """Keep ``segments``, which are about to be deleted or replaced."""
        kept = self._segments
        for segment in segments:
            if segment.slices and segment not in kept:
                segment.detach()
                kept.append(segment)
        in_memory = sum(segment.bytes_in_memory for segment in kept)
        while kept and (in_memory > self._most_bytes or len(kept) > self._most_segments):
            oldest = kept.popleft()
            in_memory -= oldest.bytes_in_memory
            oldest.forget()

    def leave(self, segment: SliceableSegment) -> None:
        """No response references ``segment`` any more."""
        if segment in self._segments:
            self._segments.remove(segment)
            segment.forget()


DELETED_SEGMENTS = DeletedSegments()


class RecordSlice:
    """``length`` bytes of ``segment`` from ``position`` on, read only when the response is sent: a LazyBytes.

    Appended bytes never change, so that they can be read at any time. Reading raises SegmentDeletedError if the segment has
    been forgotten, and OSError if a file cannot be read.
    """

    __slots__ = ("_length", "_position", "_segment")

    def __init__(self, segment: SliceableSegment, position: int, length: int) -> None:
        self._segment, self._position, self._length = segment, position, length
        segment.slices += 1

    def __del__(self) -> None:
        self._segment.slices -= 1
        if not self._segment.slices:
            DELETED_SEGMENTS.leave(self._segment)

    def __repr__(self) -> str:
        return f"<RecordSlice of {self._length} bytes at {self._position} of {self._segment}>"

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        return self[:]

    def __getitem__(self, where: slice) -> bytes:
        start, stop, _ = where.indices(self._length)
        data = self._segment.copy(self._position + start, stop - start)
        if len(data) < stop - start:
            raise SegmentDeletedError(f"{self._segment} was deleted before all of it was read")
        return data


INLINE_BYTES = 2_000_000
"""The largest ``validation_cost`` that a request may do in the event loop: some milliseconds."""

_HELD_BYTES = 64 * 1024 * 1024

_Key = tuple[BatchHeader, int, int]


def find_first_since(batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Record | None:
    """The first record from ``start_offset`` on whose timestamp is at least ``timestamp_ms``; without key and value.

    Raises BatchError, InvalidRecordsError.
    """
    for record in records_of(batch, header):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return record._replace(key=None, value=None, headers=())
    return None


BatchSearch = Callable[[bytes, BatchHeader, int, int], Record | None]
"""A search like ``find_first_since``."""


class SearchDeferredError(Exception):
    """The search takes too long for the event loop, and is to be done in the background."""


class TimestampSearch:
    """The searches of one request by timestamp; an instance is called like ``find_first_since``."""

    def __init__(self) -> None:
        self.wanted: dict[_Key, bytes] = {}
        """The batches to search in the background."""
        self._found: dict[_Key, Record | BatchError | InvalidRecordsError | None] = {}
        self._held = 0
        self._spent = 0

    def __call__(self, batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Record | None:
        """As ``find_first_since``; raises SearchDeferredError if the result needs ``work`` first."""
        key = header, timestamp_ms, start_offset
        if key not in self._found:
            self._spent += validation_cost(batch, header)
            if self._spent > INLINE_BYTES:
                if self._held < _HELD_BYTES and key not in self.wanted:
                    self.wanted[key] = batch
                    self._held += len(batch)
                raise SearchDeferredError
            return find_first_since(batch, header, timestamp_ms, start_offset)
        found = self._found[key]
        if isinstance(found, Exception):
            raise found
        return found

    def work(self) -> BackgroundWork[None]:
        """Background work that searches the ``wanted`` batches."""
        for key, batch in self.wanted.items():
            try:
                self._found[key] = find_first_since(batch, *key)
            except (BatchError, InvalidRecordsError) as problem:
                self._found[key] = drop_traceback(problem)
            yield
        self.wanted.clear()
        self._held = self._spent = 0


INDEX_INTERVAL_BYTES = 4096
"""Kafka's default of index.interval.bytes."""


class LogSegment:
    """The batches from ``base_offset`` on. Times are milliseconds.

    ``index_interval_bytes`` is the distance between entries of Kafka's offset index. It is not used for lookups here, but it
    decides which aborted transactions a fetch response lists.
    """

    __slots__ = (
        "_base_offsets",
        "_index_interval_bytes",
        "_indexed_offsets",
        "_indexed_positions",
        "_latest",
        "_positions",
        "aborted",
        "base_offset",
        "created_ms",
        "data",
        "modified_ms",
        "slices",
    )

    def __init__(self, base_offset: int, now_ms: int, *, index_interval_bytes: int = INDEX_INTERVAL_BYTES) -> None:
        self.base_offset = base_offset
        self.created_ms = self.modified_ms = now_ms
        self.data = bytearray()
        self.slices = 0
        """The number of responses that reference it."""
        self.aborted: list[AbortedTransaction] = []
        """The aborted transactions whose markers are in it, in order."""
        self._base_offsets = array("q")
        self._positions = array("q")
        self._index_interval_bytes = index_interval_bytes
        self._indexed_offsets = array("q")
        self._indexed_positions = array("q")
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
        """The timestamp that counts for retention: the largest one, or the time of the last append if there is none."""
        latest = self.max_timestamp_ms
        return latest if latest >= 0 else self.modified_ms

    def append(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        """Append a batch."""
        latest = max(self.max_timestamp_ms, header.max_timestamp_ms)
        position = len(self.data)
        if position - (self._indexed_positions[-1] if self._indexed_positions else 0) > self._index_interval_bytes:
            self._indexed_offsets.append(header.last_offset)
            self._indexed_positions.append(position)
        self._base_offsets.append(header.base_offset)
        self._positions.append(position)
        self._latest.append(latest)
        self.data += batch
        self.modified_ms = now_ms

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Record that the last batch is the marker of ``aborted``."""
        self.aborted.append(aborted)

    def upper_bound(self, position: int) -> int | None:
        """An offset of an index entry at or after ``position``; None if there is none.

        As in Kafka, the first entry is skipped if it is exactly at ``position``. Source: ``AbstractIndex.indexSlotRangeFor``.
        """
        index = bisect_left(self._indexed_positions, position)
        if index == 0 and self._indexed_positions and self._indexed_positions[0] == position:
            index = 1
        return self._indexed_offsets[index] if index < len(self._indexed_offsets) else None

    def age_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """How old the segment is at an append of ``timestamp_ms``: by its first batch's time, else by the clock."""
        first = self._latest[0] if self._latest else NO_TIMESTAMP
        return timestamp_ms - first if first >= 0 else now_ms - self.created_ms

    def is_full_for(self, last_offset: int) -> bool:
        """Is ``last_offset`` too far from the base offset? Kafka's offset index has four bytes for the difference."""
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
