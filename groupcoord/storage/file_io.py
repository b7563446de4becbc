"""File operations: each is done whole or not at all. Everything here raises OSError."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

_TEMPORARY = ".tmp"
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})


def is_shortage(error: OSError) -> bool:
    """Has the process, or the system, as many files open as it may have? That is no failure of the disk, and passes."""
    return error.errno in _SHORTAGES


def need_room(files: int) -> None:
    """Raises OSError, a shortage, unless so many more files can be open at once."""
    descriptors: list[int] = []
    try:
        while len(descriptors) < files:
            descriptors += os.pipe()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def write_at(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of ``data`` at ``position``; a system may write less than it is asked to, such as on a disk that fills up."""
    written = os.pwrite(descriptor, data, position)
    if written < len(data):
        with memoryview(data) as view:
            while written < len(view):
                written += os.pwrite(descriptor, view[written:], position + written)


def read_at(descriptor: int, length: int, position: int) -> bytes:
    """The ``length`` bytes at ``position``, or fewer if the file ends before."""
    data = os.pread(descriptor, length, position)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (data := os.pread(descriptor, missing, position + length - missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


@contextlib.contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor of the file, while the block runs."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Flush the file, or the names in the folder, to the disk (fsync)."""
    with opened(path) as descriptor:
        os.fsync(descriptor)


def replace(path: Path, data: bytes, *, synced: bool = True) -> None:
    """Replace the file's content by ``data``, on the disk, too; after a power cut the file has the old content or the new.

    Every small file is written so. Not ``synced``, it stands a kill all the same, but after a power cut it may be empty: that
    is for what can be made anew. Source: ``Utils.atomicMoveWithFallback``.
    """
    temporary = path.with_name(path.name + _TEMPORARY)
    with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        write_at(descriptor, data, 0)
        if synced:
            os.fsync(descriptor)
    temporary.replace(path)
    if synced:
        sync(path.parent)


def tidy(folder: Path) -> None:
    """Remove what an interrupted ``replace`` left; Kafka names its leftovers alike."""
    for path in folder.glob(f"*{_TEMPORARY}"):
        path.unlink()


def make_directory(path: Path) -> None:
    """Make the directory and its missing parents, and flush them to the disk."""
    new = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in new:
        sync(one.parent)


def create(path: Path) -> None:
    """A new file with nothing in it; what is in one of that name is lost. Not yet on the disk."""
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass


CHUNK_BYTES = 1 << 20


class ChunkedReader:
    """What was read last of the file behind ``descriptor``."""

    __slots__ = ("_chunk", "_data", "_descriptor", "_start")

    def __init__(self, descriptor: int, chunk: int = CHUNK_BYTES) -> None:
        self._descriptor = descriptor
        self._chunk = chunk
        self._data = b""
        self._start = 0

    def at(self, position: int, length: int) -> memoryview:
        """The ``length`` bytes at ``position``, or fewer if the file ends before. Raises OSError."""
        begin = position - self._start
        if begin < 0 or begin + length > len(self._data):
            self._data = read_at(self._descriptor, max(length, self._chunk), position)
            self._start, begin = position, 0
        return memoryview(self._data)[begin : begin + length]


class BackgroundSync:
    """Does one thing after the other in a thread of its own, which there is from the first one on."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Do ``work`` some time; the future says when, or what went wrong."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "groupcoord-flush")
        return self._executor.submit(work)

    def close(self) -> None:
        """Wait until all is done."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
