"""The two indexes of a segment, in Kafka's files: where an offset is, and which offset a time is at, every few kilobytes.

An entry of ``.index`` is the last offset of a batch, relative to the segment's first, and the batch's position: 4 bytes each.
One of ``.timeindex`` is the largest timestamp so far (8 bytes) and the last offset of the batch that brought it (4 bytes).
Entries ascend, so that a search is a bisection. Kafka maps the files of a segment in use and makes them segment.index.bytes
long meanwhile; here they are written at their end, and always have the length Kafka leaves them with.
Source: ``AbstractIndex``.
"""

import os
import struct
from bisect import bisect_left, bisect_right
from operator import le
from pathlib import Path
from typing import NamedTuple

from groupcoord.protocol.batches.record_batch import INT32_MAX, NO_TIMESTAMP
from groupcoord.storage.file_io import opened, read_at, write_at

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class TimestampOffset(NamedTuple):
    """A timestamp (ms) and the last offset of the batch that has it as its largest."""

    timestamp_ms: int
    offset: int


class _SparseIndex:
    """The entries of one file, of which there may be none yet. Everything raises OSError."""

    _entry: struct.Struct

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._descriptor: int | None = None
        try:
            self.count = path.stat().st_size // self._entry.size
        except FileNotFoundError:
            self.count = 0

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return self.count * self._entry.size

    def is_sound(self) -> bool:
        """Is the file there, made of whole entries, and does each number in them ascend?"""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return False
        if len(data) % self._entry.size:
            return False
        columns = zip(*self._entry.iter_unpack(data), strict=True)
        return all(all(map(le, column, column[1:])) and column[0] >= 0 for column in columns)

    def open(self) -> int:
        """The descriptor; entries will be added."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self._descriptor

    def _append(self, *fields: int) -> None:
        write_at(self.open(), self._entry.pack(*fields), self.size)
        self.count += 1

    def cut(self, count: int) -> None:
        """Remove all but the first ``count`` entries."""
        if self.count > count:
            self.count = count
            os.truncate(self.path, self.size)

    def _fields(self, descriptor: int, slot: int) -> tuple[int, ...]:
        return self._entry.unpack(read_at(descriptor, self._entry.size, slot * self._entry.size))

    def _floor(self, key: int, column: int) -> tuple[int, ...] | None:
        """The last entry of which that field is not above ``key``, or None."""
        if not self.count:
            return None
        if self._descriptor is not None:
            return self._bisect(self._descriptor, key, column)
        with opened(self.path) as descriptor:
            return self._bisect(descriptor, key, column)

    def _bisect(self, descriptor: int, key: int, column: int) -> tuple[int, ...] | None:
        slot = bisect_right(range(self.count), key, key=lambda slot: self._fields(descriptor, slot)[column]) - 1
        return None if slot < 0 else self._fields(descriptor, slot)

    def _up_to(self, offset: int, column: int) -> int:
        """How many entries have an ``offset`` that is not above, in that field."""
        with opened(self.path) as descriptor:
            relative = min(offset - self.base_offset, INT32_MAX)
            return bisect_right(range(self.count), relative, key=lambda slot: self._fields(descriptor, slot)[column])

    def reset(self) -> None:
        """Forget all entries."""
        self.close()
        with opened(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
            self.count = 0

    def sync(self) -> None:
        """Flush the entries to the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Nothing more will be added for now."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class OffsetIndex(_SparseIndex):
    """Offset → position."""

    _entry = _OFFSET_ENTRY

    @property
    def last(self) -> tuple[int, int] | None:
        """(last offset, position) of the last batch that has an entry, or None."""
        if not self.count:
            return None
        with opened(self.path) as descriptor:
            offset, position = self._fields(descriptor, self.count - 1)
        return self.base_offset + offset, position

    def cut_behind(self, offset: int) -> None:
        """Forget the entries of batches that end behind ``offset``."""
        self.cut(self._up_to(offset, 0))

    def append(self, last_offset: int, position: int) -> None:
        """The batch that ends with ``last_offset`` is at ``position``."""
        self._append(last_offset - self.base_offset, position)

    def position_of(self, offset: int) -> int:
        """Where to begin to look for ``offset``: a batch there ends with it or before it, or it is the first."""
        found = self._floor(min(offset - self.base_offset, INT32_MAX), 0)
        return 0 if found is None else found[1]

    def upper_bound(self, position: int) -> int | None:
        """The last offset of the first batch with an entry that does not begin before ``position``; None if there is none.

        Kafka's search passes over the first entry of all if it is exactly there. Source: ``AbstractIndex.indexSlotRangeFor``.
        """
        if not self.count:
            return None
        with opened(self.path) as descriptor:
            slot = bisect_left(range(self.count), position, key=lambda slot: self._fields(descriptor, slot)[1])
            if slot == 0 and self._fields(descriptor, 0)[1] == position:
                slot = 1
            return self.base_offset + self._fields(descriptor, slot)[0] if slot < self.count else None


class TimeIndex(_SparseIndex):
    """Time → offset."""

    _entry = _TIME_ENTRY
    last: TimestampOffset

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._read_last()

    def append(self, latest: TimestampOffset) -> None:
        """The largest timestamp so far; nothing changes unless it is larger than that of the last entry."""
        if latest.timestamp_ms > self.last.timestamp_ms:
            self._append(latest.timestamp_ms, latest.offset - self.base_offset)
            self.last = latest

    def floor(self, timestamp_ms: int) -> TimestampOffset:
        """All batches up to the one that ends with that offset are no later than ``timestamp_ms``."""
        found = self._floor(timestamp_ms, 0)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if found is None else self._found(found)

    def return_to(self, count: int, last: TimestampOffset) -> None:
        """Remove all but the first ``count`` entries, of which ``last`` was the last."""
        self.cut(count)
        self.last = last

    def cut_behind(self, offset: int) -> None:
        """Forget the entries of batches that end behind ``offset``."""
        self.cut(self._up_to(offset, 1))
        self._read_last()

    def reset(self) -> None:
        """Forget all entries."""
        super().reset()
        self._read_last()

    def _read_last(self) -> None:
        self.last = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        if self.count:
            with opened(self.path) as descriptor:
                self.last = self._found(self._fields(descriptor, self.count - 1))

    def _found(self, fields: tuple[int, ...]) -> TimestampOffset:
        return TimestampOffset(fields[0], self.base_offset + fields[1])
