"""The ``.index`` and ``.timeindex`` files of a segment, in Kafka's format: sparse indexes from offset to position, and from
timestamp to offset.

An entry of ``.index`` has the last offset of a batch, relative to the base offset, and the batch's position (4 bytes each). One
of ``.timeindex`` has the largest timestamp so far (8 bytes) and the last offset of its batch (4 bytes). Entries ascend and are
found by bisection. Kafka memory-maps the indexes of the active segment, preallocated to segment.index.bytes, and trims them
when the segment is closed. Here entries are appended, so that a file is never longer than its entries. Source:
``AbstractIndex``.
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
    """The entries of one index file, which is missing while there are none. Everything raises OSError."""

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
        """Does the file exist, with complete and ascending entries?"""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return False
        if len(data) % self._entry.size:
            return False
        columns = zip(*self._entry.iter_unpack(data), strict=True)
        return all(all(map(le, column, column[1:])) and column[0] >= 0 for column in columns)

    def open(self) -> int:
        """Open the file for appending; returns its descriptor."""
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
        """The last entry whose field ``column`` is not above ``key``, or None."""
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
        """The number of entries whose field ``column`` is not above ``offset``."""
        with opened(self.path) as descriptor:
            relative = min(offset - self.base_offset, INT32_MAX)
            return bisect_right(range(self.count), relative, key=lambda slot: self._fields(descriptor, slot)[column])

    def reset(self) -> None:
        """Remove all entries."""
        self.close()
        with opened(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
            self.count = 0

    def sync(self) -> None:
        """Flush the file to disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file until the next append."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class OffsetIndex(_SparseIndex):
    """Offset → position."""

    _entry = _OFFSET_ENTRY

    @property
    def last(self) -> tuple[int, int] | None:
        """(last offset, position) of the last entry, or None."""
        if not self.count:
            return None
        with opened(self.path) as descriptor:
            offset, position = self._fields(descriptor, self.count - 1)
        return self.base_offset + offset, position

    def cut_behind(self, offset: int) -> None:
        """Remove the entries of batches that end after ``offset``."""
        self.cut(self._up_to(offset, 0))

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry for the batch at ``position`` that ends with ``last_offset``."""
        self._append(last_offset - self.base_offset, position)

    def position_of(self, offset: int) -> int:
        """The position from which to search for ``offset``: that of the last indexed batch that ends at or before it, or 0."""
        found = self._floor(min(offset - self.base_offset, INT32_MAX), 0)
        return 0 if found is None else found[1]

    def upper_bound(self, position: int) -> int | None:
        """The last offset of the first entry at or after ``position``; None if there is none.

        As in Kafka, the first entry is skipped if it is exactly at ``position``. Source: ``AbstractIndex.indexSlotRangeFor``.
        """
        if not self.count:
            return None
        with opened(self.path) as descriptor:
            slot = bisect_left(range(self.count), position, key=lambda slot: self._fields(descriptor, slot)[1])
            if slot == 0 and self._fields(descriptor, 0)[1] == position:
                slot = 1
            return self.base_offset + self._fields(descriptor, slot)[0] if slot < self.count else None


class TimeIndex(_SparseIndex):
    """Timestamp → offset."""

    _entry = _TIME_ENTRY
    last: TimestampOffset

    def __init__(self, path: Path, base_offset: int) -> None:
        super().__init__(path, base_offset)
        self._read_last()

    def append(self, latest: TimestampOffset) -> None:
        """Add an entry for the largest timestamp so far, unless it equals that of the last entry."""
        if latest.timestamp_ms > self.last.timestamp_ms:
            self._append(latest.timestamp_ms, latest.offset - self.base_offset)
            self.last = latest

    def floor(self, timestamp_ms: int) -> TimestampOffset:
        """The last entry that is not later than ``timestamp_ms``: no batch up to its offset has a later timestamp."""
        found = self._floor(timestamp_ms, 0)
        return TimestampOffset(NO_TIMESTAMP, self.base_offset) if found is None else self._found(found)

    def return_to(self, count: int, last: TimestampOffset) -> None:
        """Remove all but the first ``count`` entries; ``last`` is the last remaining one."""
        self.cut(count)
        self.last = last

    def cut_behind(self, offset: int) -> None:
        """Remove the entries of batches that end after ``offset``."""
        self.cut(self._up_to(offset, 1))
        self._read_last()

    def reset(self) -> None:
        """Remove all entries."""
        super().reset()
        self._read_last()

    def _read_last(self) -> None:
        self.last = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        if self.count:
            with opened(self.path) as descriptor:
                self.last = self._found(self._fields(descriptor, self.count - 1))

    def _found(self, fields: tuple[int, ...]) -> TimestampOffset:
        return TimestampOffset(fields[0], self.base_offset + fields[1])
