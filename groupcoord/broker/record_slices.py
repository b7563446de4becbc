"""Records that an answer refers to where they lie in their log, and that stay readable when the log deletes them.

A reader may take minutes for an answer of 60 MB. Nothing of it is copied until then; so a segment that is deleted or compacted
meanwhile has to stay readable for the answers that refer to it, without filling the memory with the past. Kafka keeps a
deleted segment for ``file.delete.delay.ms``, and closes the connections of those who have not read by then.
"""

from collections import deque
from collections.abc import Iterable
from typing import Protocol

MAX_DELETED_BYTES = 64 << 20
"""How much of segments in memory is kept for answers after their logs have given them up, for all logs together."""

MAX_DELETED_SEGMENTS = 256
"""How many segments are kept so; one that is a file costs a descriptor, and its place on the disk."""


class SegmentDeletedError(Exception):
    """The records of an answer were deleted before they were read."""


class SliceableSegment(Protocol):
    """A segment as answers see it. See LogSegment, which has it in memory."""

    slices: int
    """How many there are of it."""

    @property
    def bytes_in_memory(self) -> int:
        """What of it is in memory."""

    def copy(self, position: int, length: int) -> bytes:
        """The ``length`` bytes at ``position``; fewer if they are gone."""

    def detach(self) -> None:
        """The log has removed this segment; it stays readable until ``forget``."""

    def forget(self) -> None:
        """No answer reads this segment any more, or none may: give its memory or file back."""


class DeletedSegments:
    """Segments that are part of no log any more, but of answers; beyond the limits the oldest are forgotten."""

    def __init__(self, most_bytes: int = MAX_DELETED_BYTES, most_segments: int = MAX_DELETED_SEGMENTS) -> None:
        self._most_bytes, self._most_segments = most_bytes, most_segments
        self._segments: deque[SliceableSegment] = deque()

    def add(self, segments: Iterable[SliceableSegment]) -> None:
        """``segments`` are about to be deleted, or others to take their place."""
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
        """No answer refers to ``segment`` any more."""
        if segment in self._segments:
            self._segments.remove(segment)
            segment.forget()


DELETED_SEGMENTS = DeletedSegments()


class RecordSlice:
    """``length`` bytes of ``segment`` from ``position`` on, read only when they are needed: a LazyBytes.

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
        return f"<Stretch {self._length} bytes at {self._position} of {self._segment}>"

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
