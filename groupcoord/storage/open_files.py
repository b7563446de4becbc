"""Which logs have files open: the active segment of each has up to three, and there can be more logs than a process may have
files. Those appended to longest ago are closed; the next append opens them again.

Kafka keeps the files of every segment open, and asks for a limit of 100,000 descriptors.
"""

import resource
from typing import Protocol

FILES_OF_A_LOG = 3
"""The log file and its two indexes."""

_MOST_LOGS = 1_000


class Closable(Protocol):
    """A log with files."""

    def close(self) -> None:
        """Close them."""


class OpenFiles:
    """The logs with open files, at most ``most`` of them."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most_logs() if most is None else most
        self._logs: dict[Closable, None] = {}  # the one used longest ago comes first

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def to_come(self) -> int:
        """How many more files the logs may open."""
        return (self._most - len(self._logs)) * FILES_OF_A_LOG

    def used(self, log: Closable) -> None:
        """``log`` is appended to, for which it has its files open."""
        logs = self._logs
        logs.pop(log, None)
        logs[log] = None
        if len(logs) > self._most:
            oldest = next(iter(logs))
            del logs[oldest]
            oldest.close()

    def forget(self, log: Closable) -> None:
        """``log`` is gone."""
        self._logs.pop(log, None)

    def close(self) -> None:
        """Close all of them."""
        for log in self._logs:
            log.close()
        self._logs.clear()


def most_logs() -> int:
    """How many logs may have open files: three eighths of the process's descriptors, but at most a thousand logs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_LOGS if soft == resource.RLIM_INFINITY else max(1, min(_MOST_LOGS, soft // 8))
