"""Reads the batches of a log file, and checks their headers and checksums.

A killed server leaves at worst an incomplete batch at the end. Any other damage has another cause: a disk, a power failure, an
edited file. Sizes and offsets are checked against the file before they are used. Source: ``FileLogInputStream``,
``LogSegment.recover``, ``LogSegment.ensureOffsetInRange``.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from groupcoord.protocol.batches.record_batch import (
    HEADER_BYTES,
    INT32_MAX,
    MAGIC,
    BatchError,
    BatchHeader,
    checksum_matches,
    read_header,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.storage.file_io import CHUNK_BYTES, ChunkedReader, opened

_OVERHEAD_BYTES = 12
_UP_TO_MAGIC_BYTES = 17
_SMALLEST_LENGTH = HEADER_BYTES - _OVERHEAD_BYTES
_FIELDS = struct.Struct(">qiib")  # base offset, length, leader epoch, magic


class StoredBatch(NamedTuple):
    """A batch and its position in the file; ``data`` is valid until the next batch is read."""

    position: int
    header: BatchHeader
    data: memoryview


class CorruptBatchError(BatchError):
    """There is no valid batch at ``position`` (bytes) of ``path``; ``offset`` is the one it should begin with.

    A client that reads it gets CORRUPT_MESSAGE, as from Kafka.

    ``torn``: the file ends before the batch does, as after a kill. ``old_format``: it is a valid batch of magic 0 or 1.
    ``size`` is the batch's size if its header is plausible, so that later batches can be read.
    """

    def __init__(
        self,
        path: Path,
        position: int,
        offset: int,
        reason: str,
        *,
        torn: bool = False,
        old_format: bool = False,
        size: int | None = None,
    ) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{path} at byte {position}, offset {offset}: {reason}")
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason
        self.torn = torn
        self.old_format = old_format
        self.size = size


def checked_batches(
    path: Path, position: int = 0, expected: int | None = None, behind: int | None = None
) -> Iterator[StoredBatch]:
    """The batches of the file from ``position`` on, each with its length, magic, checksum and ascending offsets checked.

    Raises CorruptBatchError at the first invalid batch, and OSError. ``expected`` is the lowest valid offset at ``position``,
    ``behind`` the first offset that is too high; by default both follow from the file's name.
    """
    first, limit = _offsets(path)
    expected = first if expected is None else expected
    limit = limit if behind is None else min(behind, limit)
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        window = ChunkedReader(descriptor)
        while position < size:
            header = _header(path, window, position, size, expected, limit)
            data = window.at(position, header.size)
            if not checksum_matches(data, header):
                reason = f"the checksum of the batch with offset {header.base_offset} is not {header.crc}, as it says"
                raise CorruptBatchError(path, position, expected, reason, size=header.size)
            yield StoredBatch(position, header, data)
            position += header.size
            expected = header.last_offset + 1


def headers(
    path: Path, descriptor: int, position: int, end: int, *, behind: int | None = None, chunk: int = CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the batches between two positions of a log file; their records are not read.

    Raises CorruptBatchError at the first invalid header, and OSError. ``behind`` is as for checked_batches.
    """
    window = ChunkedReader(descriptor, chunk)
    expected, limit = _offsets(path)
    limit = limit if behind is None else min(behind, limit)
    while position < end:
        header = _header(path, window, position, end, expected, limit)
        yield position, header
        position += header.size
        expected = header.last_offset + 1


def _offsets(path: Path) -> tuple[int, int]:
    """The first offset that a segment of that name can contain, and the first that it cannot, as its indexes have int32s."""
    first = int(path.name.split(".", 1)[0])
    return first, first + INT32_MAX + 1


def _header(path: Path, window: ChunkedReader, position: int, size: int, expected: int, limit: int) -> BatchHeader:
    """The header at ``position`` of a file of ``size`` bytes, if the batch lies within the file and its offsets are valid."""
    left = size - position
    if left >= HEADER_BYTES:
        header = read_header(window.at(position, HEADER_BYTES))
        if (
            header.magic == MAGIC
            and _SMALLEST_LENGTH <= header.length <= left - _OVERHEAD_BYTES
            and expected <= header.base_offset <= header.last_offset < limit
        ):
            return header
    raise _fault(path, window, position, left, expected, limit)


def _fault(path: Path, window: ChunkedReader, position: int, left: int, expected: int, limit: int) -> CorruptBatchError:
    """The error for an invalid batch at ``position``, with ``left`` bytes left in the file."""
    if left < _UP_TO_MAGIC_BYTES:
        reason = f"{left} bytes of a batch that was not completely written"
        return CorruptBatchError(path, position, expected, reason, torn=True)
    base_offset, length, _, magic = _FIELDS.unpack(window.at(position, _UP_TO_MAGIC_BYTES))
    if 0 <= magic < MAGIC and length > 0:
        reason = f"message format {magic}, which Kafka wrote before 0.11; only format 2 is read here"
        return CorruptBatchError(path, position, expected, reason, old_format=True)
    if length < _SMALLEST_LENGTH:
        reason = f"a batch of length {length}, and none is shorter than {_SMALLEST_LENGTH}"
        return CorruptBatchError(path, position, expected, reason)
    if magic != MAGIC:
        return CorruptBatchError(path, position, expected, f"a batch of magic {magic}, and there is none above {MAGIC}")
    if left < _OVERHEAD_BYTES + length:
        reason = f"{left} bytes of a batch of {_OVERHEAD_BYTES + length} that was not completely written"
        return CorruptBatchError(path, position, expected, reason, torn=True)
    last = base_offset + read_header(window.at(position, HEADER_BYTES)).last_offset_delta
    which = f"{limit} or above" if last >= limit else f"below {expected}"
    reason = f"a batch with offsets {base_offset} to {last}, where none {which} can be"
    return CorruptBatchError(path, position, expected, reason, size=_OVERHEAD_BYTES + length)
