"""Only one server uses a data directory: it holds the lock of its file ``.lock``, as Kafka does and respects."""

import fcntl
import os
from pathlib import Path

from groupcoord.storage.errors import StorageError

_held: set[Path] = set()  # by this process: the lock of a file keeps only other processes out


class DirectoryLock:
    """The lock on ``directory`` until ``release``, or the end of the process. Raises StorageError and OSError."""

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
        """Let others use the directory."""
        _held.discard(self._directory)
        os.close(self._descriptor)
