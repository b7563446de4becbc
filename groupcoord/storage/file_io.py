"""File access for a data directory and for output files: atomic replacement, fsync, locking, a limit on open files. All of it
raises OSError."""

import contextlib
import errno
import fcntl
import os
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol


class StorageError(Exception):
    """The directory cannot be used; the text names the file, the problem and the remedy."""


_TEMPORARY = ".tmp"
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})


def is_shortage(error: OSError) -> bool:
    """Is the error a lack of file descriptors? That is temporary, and not a failure of the disk."""
    return error.errno in _SHORTAGES


def need_room(files: int) -> None:
    """Raises OSError (EMFILE or ENFILE) unless that many more files can be opened now."""
    descriptors: list[int] = []
    try:
        while len(descriptors) < files:
            descriptors += os.pipe()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def write_at(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of ``data`` at ``position``, although the system may write less in one call."""
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
    """A context manager with a descriptor of the file."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Flush the file, or the entries of the directory, to disk (fsync)."""
    with opened(path) as descriptor:
        os.fsync(descriptor)


def replace(path: Path, data: bytes, *, synced: bool = True) -> None:
    """Replace the file's content by ``data`` atomically, and flush it; after a power failure the file has the old or the new
    content.

    All small files are written with this. If it is not ``synced``, the file survives a kill, but may be empty after a power
    failure: for files that can be rebuilt. Source: ``Utils.atomicMoveWithFallback``.
    """
    temporary = path.with_name(path.name + _TEMPORARY)
    with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        write_at(descriptor, data, 0)
        if synced:
            os.fsync(descriptor)
    temporary.replace(path)
    if synced:
        sync(path.parent)


def write_output(path: Path, text: str) -> None:
    """Write ``text`` to an output file that a user has named: all of it or, on an error such as a full disk, nothing.

    A link keeps pointing to its file, and a device or a pipe, which cannot be replaced, is written to.
    """
    data = text.encode()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = path.resolve() if path.is_symlink() else path
    try:
        replace(path, data, synced=False)
    except OSError as problem:
        with contextlib.suppress(OSError):
            path.with_name(path.name + _TEMPORARY).unlink()
        raise OSError(problem.errno, problem.strerror, str(path)) from None


def tidy(folder: Path) -> None:
    """Remove the temporary files of an interrupted ``replace``, which Kafka names alike."""
    for path in folder.glob(f"*{_TEMPORARY}"):
        path.unlink()


def make_directory(path: Path) -> None:
    """Create the directory and its missing parents, and flush them to disk."""
    new = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in new:
        sync(one.parent)


def create(path: Path) -> None:
    """Create an empty file, or empty an existing one, without a flush."""
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass


CHUNK_BYTES = 1 << 20


class ChunkedReader:
    """Reads the file behind ``descriptor`` in chunks, and keeps the last one."""

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
    """Runs tasks one after the other in a thread, which the first task starts."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Run ``work`` in the thread; the future has its end or its exception."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "groupcoord-flush")
        return self._executor.submit(work)

    def close(self) -> None:
        """Wait until all tasks are done."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


_held: set[Path] = set()  # by this process, because a file lock excludes other processes only


class DirectoryLock:
    """The lock on ``directory`` until ``release`` or the end of the process, so that only one server uses the directory.

    It locks the file ``.lock``, as Kafka does. Raises StorageError and OSError.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        problem = (
            f"{directory} is in use: another server, groupcoord or Kafka, holds the lock {directory / '.lock'}. "
            "Stop it, or use another directory."
        )
        if self._directory in _held:
            raise StorageError(problem)
        self._descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise StorageError(problem) from None
        _held.add(self._directory)

    def release(self) -> None:
        """Release the lock."""
        _held.discard(self._directory)
        os.close(self._descriptor)


FILES_OF_A_LOG = 3
"""The log file and its two indexes."""

_MOST_LOGS = 1_000


class Closable(Protocol):
    """A log whose files can be closed."""

    def close(self) -> None:
        """Close the files."""


class OpenFiles:
    """The logs with open files, at most ``most``, in the order of their last use.

    The active segment of a log has up to three open files, and there can be more logs than a process has descriptors. The logs
    that have not been appended to for longest are closed; the next append opens them again. Kafka keeps the files of all
    segments open, and recommends a limit of 100,000 descriptors.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most_logs() if most is None else most
        self._logs: dict[Closable, None] = {}  # the least recently used log is first

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def files_to_spare(self) -> int:
        """How many more files the logs may open."""
        return (self._most - len(self._logs)) * FILES_OF_A_LOG

    def used(self, log: Closable) -> None:
        """``log`` is appended to and has its files open; may close the files of the least recently used log."""
        logs = self._logs
        logs.pop(log, None)
        logs[log] = None
        if len(logs) > self._most:
            oldest = next(iter(logs))
            del logs[oldest]
            oldest.close()

    def forget(self, log: Closable) -> None:
        """``log`` was deleted."""
        self._logs.pop(log, None)

    def close(self) -> None:
        """Close the files of all logs."""
        for log in self._logs:
            log.close()
        self._logs.clear()


def most_logs() -> int:
    """The maximum of logs with open files: an eighth of the process's descriptors, as each needs three, and at most a
    thousand."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_LOGS if soft == resource.RLIM_INFINITY else max(1, min(_MOST_LOGS, soft // 8))
