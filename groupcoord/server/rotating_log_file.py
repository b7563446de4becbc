"""A log file with rotation: ``log``, ``log.1`` …, as by ``logging.handlers.RotatingFileHandler``.

That handler is not used, because it holds locks while it writes: if a disk hangs, the process could not end.
"""

import os
import stat
from pathlib import Path


class RotatingLogFile:
    """Appends to ``path``; at ``max_bytes`` it is renamed to ``path.1``, and so on, ``files`` files in all.

    A line is never split. A special file, such as ``/dev/null``, and a single file are not rotated. Raises OSError if it cannot
    be opened.
    """

    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        self._path, self._max_bytes, self._files = path, max_bytes, files
        self._open()

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        seen = os.fstat(self._fd)
        self._size = seen.st_size
        self._rotates = self._files > 1 and stat.S_ISREG(seen.st_mode)

    def write(self, lines: bytes) -> None:
        """Append complete ``lines``. Raises OSError."""
        while lines:
            end = len(lines)
            if self._rotates and self._size + end > self._max_bytes:
                end = lines.rfind(b"\n", 0, max(self._max_bytes - self._size, 0)) + 1
                if not end and self._size:
                    self._rotate()
                    continue
                end = end or lines.index(b"\n") + 1  # a line that is longer than a file gets a file of its own
            these, lines = lines[:end], lines[end:]
            self._size += end
            while these:
                these = these[os.write(self._fd, these) :]

    def _rotate(self) -> None:
        for number in range(self._files - 1, 0, -1):
            before = self._numbered(number - 1)
            if before.exists():
                before.replace(self._numbered(number))
        full = self._fd
        self._open()
        os.close(full)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
