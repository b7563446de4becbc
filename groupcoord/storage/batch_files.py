"""The batches in a log file: their headers, and whether each is whole and true.

A server that is killed leaves at worst a batch that is not completely written, at the end. Anything else that is wrong was done
by somebody or something else: a disk, a power cut, a hand. Source: ``FileLogInputStream``, ``LogSegment.recover``.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from groupcoord.protocol.batches import HEADER_BYTES, MAGIC, BatchHeader, has_right_checksum, read_header
from groupcoord.storage.files import opened
from groupcoord.storage.window import CHUNK_BYTES, Window

_OVERHEAD_BYTES = 12
_UP_TO_MAGIC_BYTES = 17
_SMALLEST_LENGTH = HEADER_BYTES - _OVERHEAD_BYTES
_FIELDS = struct.Struct(">qiib")  # base offset, length, leader epoch, magic


class StoredBatch(NamedTuple):
    """A batch of a file, and where it begins; ``data`` is valid until the next one is asked for."""

    position: int
    header: BatchHeader
    data: memoryview


class BatchFault(Exception):
    """What is at ``position`` (bytes) of ``path`` is not a batch that can be read; ``offset`` is the one it would begin with.

    ``torn``: the file ends before the batch does, which is what a killed server leaves. ``old_format``: it is one all right, of
    magic 0 or 1. ``size`` is that of the batch if it looks like a batch, so that what is behind it may be read.
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
        super().__init__(f"{path} at byte {position}, offset {offset}: {reason}")
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason
        self.torn = torn
        self.old_format = old_format
        self.size = size


def checked_batches(path: Path, position: int = 0, expected: int | None = None) -> Iterator[StoredBatch]:
    """The batches of the file, each of them checked: length, magic, checksum, and that its offsets follow the last one's.

    Raises BatchFault where one is not in order, after those before it; OSError. ``position`` is where to begin, and
    ``expected`` the least offset that can be there; unless told, the name of the file says it.
    """
    if expected is None:
        expected = int(path.name.split(".", 1)[0])
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        window = Window(descriptor)
        while position < size:
            stored = _checked(path, window, position, size, expected)
            yield stored
            position += stored.header.size
            expected = stored.header.last_offset + 1


def _checked(path: Path, window: Window, position: int, size: int, expected: int) -> StoredBatch:
    left = size - position
    if left < _UP_TO_MAGIC_BYTES:
        raise BatchFault(
            path, position, expected, f"{left} bytes of a batch that was not completely written", torn=True
        )
    base_offset, length, _, magic = _FIELDS.unpack(window.at(position, _UP_TO_MAGIC_BYTES))
    if 0 <= magic < MAGIC and length > 0:
        reason = f"message format {magic}, which Kafka wrote before 0.11; only format 2 is read here"
        raise BatchFault(path, position, expected, reason, old_format=True)
    if length < _SMALLEST_LENGTH:
        reason = f"a batch of length {length}, and none is shorter than {_SMALLEST_LENGTH}"
        raise BatchFault(path, position, expected, reason)
    if magic != MAGIC:
        raise BatchFault(path, position, expected, f"a batch of magic {magic}, and there is none above {MAGIC}")
    if left < _OVERHEAD_BYTES + length:
        reason = f"{left} bytes of a batch of {_OVERHEAD_BYTES + length} that was not completely written"
        raise BatchFault(path, position, expected, reason, torn=True)
    data = window.at(position, _OVERHEAD_BYTES + length)
    header = read_header(data)
    if not has_right_checksum(data, header):
        reason = f"the checksum of the batch with offset {base_offset} is not {header.crc}, as it says"
        raise BatchFault(path, position, expected, reason, size=header.size)
    if base_offset < expected or header.last_offset_delta < 0:
        last = header.last_offset
        reason = f"a batch with offsets {base_offset} to {last}, where none below {expected} can be"
        raise BatchFault(path, position, expected, reason, size=header.size)
    return StoredBatch(position, header, data)


def headers(descriptor: int, position: int, end: int, chunk: int = CHUNK_BYTES) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the batches between two positions of a file that has been checked. Raises OSError."""
    window = Window(descriptor, chunk)
    while position < end:
        header = read_header(window.at(position, HEADER_BYTES))
        yield position, header
        position += header.size
