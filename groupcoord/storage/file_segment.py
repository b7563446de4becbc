"""A log segment in Kafka's files. Batches are read from the file when they are needed; memory holds a few numbers only.

Only the last segment of a log is appended to and keeps its files open. Source: ``LogSegment``.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from groupcoord.broker.log_segment import BatchSearch, FoundBatch, find_first_since
from groupcoord.broker.producer_state_manager import AbortedTransaction
from groupcoord.broker.topic_config import LogConfig
from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    INT32_MAX,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    read_header,
)
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage.file_io import CHUNK_BYTES, create, is_shortage, opened, read_at, sync, write_at
from groupcoord.storage.log_file_names import (
    CLEANED,
    LOG,
    OF_SEGMENT,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    file_name,
)
from groupcoord.storage.log_file_reader import CorruptBatchError, checked_batches, headers
from groupcoord.storage.segment_index import OffsetIndex, TimeIndex, TimestampOffset
from groupcoord.storage.transaction_index import TransactionIndex

_SEARCH_BYTES = 8192  # two intervals of the index
_OFFSET_ENTRY_BYTES, _TIME_ENTRY_BYTES = 8, 12
NO_OFFSET = -1
_WRONG = "its indexes are missing or wrong, and are made anew"


class AppendMark(NamedTuple):
    """The state of a segment before an append, to which it can be rolled back."""

    size: int
    latest: TimestampOffset
    modified_ms: int
    indexed_at: int
    offset_entries: int
    time_entries: int
    last_time: TimestampOffset
    aborted: int


class FileSegment:
    """The segment in ``folder`` with ``base_offset``; its log file exists.

    All methods raise OSError; those that read raise BatchError if only descriptors are lacking.
    """

    def __init__(self, folder: Path, base_offset: int, settings: LogConfig, now_ms: int, state: str = "") -> None:
        self.path = folder / (file_name(base_offset, LOG) + state)
        self.base_offset = base_offset
        self.offset_index = OffsetIndex(folder / (file_name(base_offset, OFFSET_INDEX) + state), base_offset)
        self.time_index = TimeIndex(folder / (file_name(base_offset, TIME_INDEX) + state), base_offset)
        self.transaction_index = TransactionIndex(folder / (file_name(base_offset, TRANSACTION_INDEX) + state))
        found = self.path.stat()
        self.size = found.st_size
        self.modified_ms = found.st_mtime_ns // 1_000_000
        self._created_ms = now_ms
        self._latest = self.time_index.last
        self._first_timestamp_ms: int | None = None
        self._indexed_at = self.size
        self._interval = settings.index_interval_bytes
        self._index_bytes = settings.segment_index_bytes
        self._descriptor: int | None = None
        self._kept: int | None = None  # a descriptor of the log file, which may have been deleted
        self._gone = False
        self.slices = 0
        """The number of responses that reference it."""
        self.behind: int | None = None
        """The first offset that it cannot contain, if known: the log end offset, or the next segment's base offset."""

    def __repr__(self) -> str:
        return f"<FileSegment {self.path.name} bytes={self.size}>"

    bytes_in_memory = 0

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of all records, or -1."""
        return self._latest.timestamp_ms

    @property
    def largest_timestamp_ms(self) -> int:
        """The timestamp that counts for retention: the largest one, or the time of the last append if there is none."""
        return self.max_timestamp_ms if self.max_timestamp_ms >= 0 else self.modified_ms

    # --- appending

    def append(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        """Write a batch, and its index entries if they are due."""
        position = self.size
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        indexed = position - self._indexed_at > self._interval
        if indexed:  # open all files before anything is written
            self.offset_index.open()
            self.time_index.open()
        write_at(self._descriptor, batch, position)
        latest = self._latest
        if header.max_timestamp_ms > latest.timestamp_ms:
            latest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
        if indexed:
            self.offset_index.append(header.last_offset, position)
            self.time_index.append(latest)
            self._indexed_at = position
        self.size = position + len(batch)
        self.behind = header.last_offset + 1
        self._latest = latest
        self.modified_ms = now_ms

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Write the transaction index entry for the last batch, the marker of ``aborted``."""
        self.transaction_index.append(aborted)

    def mark(self) -> AppendMark:
        """The current state, for ``return_to``."""
        offsets, times = self.offset_index, self.time_index
        return AppendMark(
            self.size,
            self._latest,
            self.modified_ms,
            self._indexed_at,
            offsets.count,
            times.count,
            times.last,
            self.transaction_index.count,
        )

    def return_to(self, mark: AppendMark) -> None:
        """Roll back a failed append: truncate the files to where they ended before, as far as that is possible."""
        self.size, self._latest, self.modified_ms, self._indexed_at, *_ = mark
        with contextlib.suppress(OSError):
            os.truncate(self.path, self.size)
            self.offset_index.cut(mark.offset_entries)
            self.time_index.return_to(mark.time_entries, mark.last_time)
            self.transaction_index.cut(mark.aborted)

    def is_full_for(self, last_offset: int) -> bool:
        """Is an index full, or ``last_offset`` too far from the base offset?

        One slot of the time index is reserved for the last entry.
        """
        return (
            last_offset - self.base_offset > INT32_MAX
            or self.offset_index.count >= self._index_bytes // _OFFSET_ENTRY_BYTES
            or self.time_index.count >= self._index_bytes // _TIME_ENTRY_BYTES - 1
        )

    def age_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """The age of the segment at an append of ``timestamp_ms``: by its first batch's timestamp, else by the clock."""
        first = self._first_timestamp_ms
        if first is None and self.size:
            first = self._first_timestamp_ms = read_header(self.copy(0, HEADER_BYTES)).max_timestamp_ms
        return timestamp_ms - first if first is not None and first >= 0 else now_ms - self._created_ms

    def complete(self) -> None:
        """Add the last entry of the time index, when appending ends or pauses."""
        self.time_index.append(self._latest)
        self.close()

    def close(self) -> None:
        """Close the files."""
        self.offset_index.close()
        self.time_index.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def detach(self) -> None:
        """Keep the log file open for unsent responses before it is deleted, if there is a descriptor."""
        try:
            self._kept = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.forget()

    def forget(self) -> None:
        """Close the log file; a new file of that name is not read."""
        self._gone = True
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None

    def sync(self) -> None:
        """Flush the log file and its indexes to the disk."""
        for path in (self.path, self.offset_index.path, self.time_index.path, self.transaction_index.path):
            with contextlib.suppress(FileNotFoundError):  # an index without entries
                sync(path)

    # --- reading

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers are in it, in order."""
        with self._enough_descriptors():
            return self.transaction_index.read()

    def upper_bound(self, position: int) -> int | None:
        """An offset of an index entry at or after ``position``; None if there is none."""
        with self._enough_descriptors():
            return self.offset_index.upper_bound(position)

    def find(self, offset: int) -> FoundBatch | None:
        """The first batch that contains ``offset`` or a later one. Raises CorruptBatchError if one before it is invalid."""
        with self._reading() as descriptor:
            for position, header in self._batches_from(descriptor, offset, _SEARCH_BYTES):
                if header.last_offset >= offset:
                    return FoundBatch(position, header)
        return None

    def copy(self, position: int, length: int) -> bytes:
        """The ``length`` bytes at ``position``; none after ``forget``."""
        if self._gone:
            return b""
        with self._reading() as descriptor:
            return read_at(descriptor, length, position)

    def first_record_since(
        self, timestamp_ms: int, start_offset: int, find: BatchSearch = find_first_since
    ) -> Record | None:
        """The first record from ``start_offset`` on whose timestamp is at least ``timestamp_ms``."""
        with self._reading() as descriptor:
            floor = self.time_index.floor(timestamp_ms)
            for position, header in self._batches_from(descriptor, max(floor.offset, start_offset), _SEARCH_BYTES):
                if header.max_timestamp_ms < timestamp_ms or header.last_offset < start_offset:
                    continue
                batch = read_at(descriptor, header.size, position)
                if (record := find(batch, header, timestamp_ms, start_offset)) is not None:
                    return record
        return None

    def latest_record(self, find: BatchSearch = find_first_since) -> Record | None:
        """The first record with the largest timestamp, or None if there is no record."""
        found = self.find(self._latest.offset)
        if found is None:
            return None
        return find(self.copy(found.position, found.header.size), found.header, self.max_timestamp_ms, 0)

    def headers_from(self, offset: int) -> Iterator[BatchHeader]:
        """The headers of all batches from the one that contains ``offset``. Raises CorruptBatchError."""
        yield from (header for header, _ in self.markers_from(offset))

    def markers_from(self, offset: int) -> Iterator[tuple[BatchHeader, bytes]]:
        """As ``headers_from``, with the bytes of control batches; empty bytes for other batches."""
        with self._reading() as descriptor:
            for position, header in self._batches_from(descriptor, offset, CHUNK_BYTES):
                if header.last_offset >= offset:
                    yield header, read_at(descriptor, header.size, position) if header.control else b""

    def next_offset(self) -> int:
        """The offset after the last batch. Raises CorruptBatchError."""
        last = self.offset_index.last
        following = self.base_offset
        for header in self.headers_from(self.base_offset if last is None else last[0]):
            following = header.last_offset + 1
        return following

    def _batches_from(self, descriptor: int, offset: int, chunk: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of batches, from one at or before ``offset`` that the index points to.

        If no such batch is there, because the index is wrong, from the first batch: so that nothing is skipped.
        """
        begin = self.offset_index.position_of(offset)
        if begin:
            found = headers(self.path, descriptor, begin, self.size, behind=self.behind, chunk=chunk)
            with contextlib.suppress(CorruptBatchError):
                first = next(found, None)
                if first is not None and first[1].base_offset <= offset:
                    return itertools.chain([first], found)
        return headers(self.path, descriptor, 0, self.size, behind=self.behind, chunk=chunk)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[int]:
        with self._enough_descriptors():
            if self._kept is not None:
                yield self._kept
            elif self._descriptor is not None:
                yield self._descriptor
            else:
                with opened(self.path) as descriptor:
                    yield descriptor

    @contextlib.contextmanager
    def _enough_descriptors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if is_shortage(error):  # temporary: a retry may succeed
                raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, f"{error.strerror}: {self.path}") from error
            raise

    # --- rebuilding

    def rebuild(self, flushed_to: int = 0) -> CorruptBatchError | None:
        """Check every batch and rebuild the indexes; returns the error of the first invalid batch, if any.

        Batches before the offset ``flushed_to`` that the index skips are not checked: damage to them must not cost later
        records. The log file is not changed; ``size`` is set to the end of its valid part.
        """
        fault = None
        self.size = indexed_at = self._keep_indexes_up_to(flushed_to)
        self._latest = self.time_index.last
        try:
            for position, header, _ in checked_batches(self.path, indexed_at, behind=self.behind):
                if header.max_timestamp_ms > self._latest.timestamp_ms:
                    self._latest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
                if position - indexed_at > self._interval:
                    self.offset_index.append(header.last_offset, position)
                    self.time_index.append(self._latest)
                    indexed_at = position
                self.size = position + header.size
        except CorruptBatchError as problem:
            fault = problem
        self.complete()
        self._indexed_at = self.size
        return fault

    def _keep_indexes_up_to(self, offset: int) -> int:
        """Remove the index entries of later batches; returns the position of the batch of the last remaining entry, or 0."""
        if offset > self.base_offset and self.offset_index.is_sound() and self.time_index.is_sound():
            self.offset_index.cut_behind(offset - 1)
            if (last := self.offset_index.last) is not None:
                self.time_index.cut_behind(last[0])
                with contextlib.suppress(CorruptBatchError):
                    batch = next(checked_batches(self.path, last[1], behind=self.behind), None)
                    if batch is not None and batch.header.base_offset <= last[0]:
                        return last[1]
        self.offset_index.reset()
        self.time_index.reset()
        return 0

    def known_offset(self) -> int:
        """The last offset in the indexes, or -1; missing or wrong indexes are ignored."""
        known = [NO_OFFSET]
        if self.offset_index.is_sound() and (last := self.offset_index.last) is not None:
            known.append(last[0])
        if self.time_index.is_sound() and self.time_index.count:
            known.append(self.time_index.last.offset)
        return max(known)

    def wrong_indexes(self, *, checksums: bool = False) -> str | None:
        """What is wrong with the indexes of a closed segment, as text, or None.

        Entries must ascend, and the last ones must fit the last batches; the rest of the log is not read. Raises
        CorruptBatchError if a batch after the last entry is invalid (see ``rebuild``), with ``checksums`` also if its checksum
        is wrong.
        """
        if not self.offset_index.is_sound() or not self.time_index.is_sound():
            return _WRONG
        offset, position = self.offset_index.last or (self.base_offset, 0)
        begin = position if position < self.size else 0
        end, newest = self.base_offset, NO_TIMESTAMP
        for header in self._tail(begin, checksums=checksums):
            if end == self.base_offset and begin == position and header.base_offset > offset > self.base_offset:
                return _WRONG
            end, newest = header.last_offset + 1, max(newest, header.max_timestamp_ms)
        if (known := self.known_offset()) >= end:
            return lost_or_wrong(known, end)
        found = self.find(self._latest.offset) if self.time_index.count else None
        if newest > self.max_timestamp_ms or (found and found.header.max_timestamp_ms != self.max_timestamp_ms):
            return _WRONG
        return None

    def _tail(self, begin: int, *, checksums: bool) -> Iterator[BatchHeader]:
        if checksums:
            yield from (stored.header for stored in checked_batches(self.path, begin, behind=self.behind))
            return
        with self._reading() as descriptor:
            yield from (header for _, header in headers(self.path, descriptor, begin, self.size, behind=self.behind))


def lost_or_wrong(known: int, end: int) -> str:
    """The log text for a segment that ends before ``end`` although its indexes have the later offset ``known``."""
    return (
        f"its indexes know of offset {known}, and it ends before offset {end}: either records are lost, or the indexes are "
        "wrong; they are made anew"
    )


def create_segment(folder: Path, base_offset: int, state: str = "") -> None:
    """Create the files of an empty segment, or empty existing ones. Raises OSError."""
    for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
        create(folder / file_name(base_offset, kind + state))
    (folder / file_name(base_offset, TRANSACTION_INDEX + state)).unlink(missing_ok=True)


def keep_head(folder: Path, base_offset: int, size: int) -> None:
    """Truncate a segment to its first ``size`` bytes, and remove its indexes. Raises OSError.

    The log file is replaced by a copy, so that readers of the open old file are not disturbed.
    """
    path = folder / file_name(base_offset, LOG)
    shortened = path.with_name(path.name + CLEANED)
    create(shortened)
    with opened(path) as reading, opened(shortened, os.O_WRONLY) as writing:
        for position in range(0, size, CHUNK_BYTES):
            write_at(writing, read_at(reading, min(CHUNK_BYTES, size - position), position), position)
        os.fsync(writing)
    shortened.replace(path)
    for kind in (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX):
        (folder / file_name(base_offset, kind)).unlink(missing_ok=True)


def delete_segment(folder: Path, base_offset: int, *, with_snapshot: bool = True) -> None:
    """Delete the files of a segment, and the producer snapshot at its base offset. Raises OSError."""
    for kind in (*OF_SEGMENT, *((PRODUCER_SNAPSHOT,) if with_snapshot else ())):
        (folder / file_name(base_offset, kind)).unlink(missing_ok=True)
