"""The leader epochs of a log and the offset at which each begins (KIP-101). With it followers and consumers find out by
OffsetForLeaderEpoch or Fetch whether their logs have diverged.

A new log starts at epoch 0. On a single broker the epoch changes when the broker is started again. A follower takes epochs from
the batches that it fetches. Source: ``LeaderEpochFileCache``.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

UNDEFINED_EPOCH = UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    """An epoch, and the offset of its first record."""

    epoch: int
    start_offset: int


class LeaderEpochCache:
    """The epochs of one log, ascending, as are their start offsets; never empty."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[EpochEntry] = (EpochEntry(0, 0),)) -> None:
        self.entries = list(entries) or [EpochEntry(0, 0)]

    @property
    def latest(self) -> int:
        """The epoch of the current leader."""
        return self.entries[-1].epoch

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that ``epoch`` begins at ``start_offset``; nothing changes unless the epoch is new."""
        if epoch > self.latest:
            self.entries.append(EpochEntry(epoch, start_offset))

    def begin(self, epoch: int, end_offset: int) -> None:
        """Begin ``epoch`` at the end of the log; replaces an epoch in which nothing was written."""
        while self.entries and self.entries[-1].start_offset >= end_offset:
            self.entries.pop()
        self.entries.append(EpochEntry(epoch, end_offset))

    def truncate_from(self, end_offset: int) -> None:
        """Remove the epochs that begin behind ``end_offset``, the new end of the log, but keep at least one."""
        while len(self.entries) > 1 and self.entries[-1].start_offset >= end_offset:
            self.entries.pop()

    def of_offset(self, offset: int) -> int:
        """The epoch in which ``offset`` was written."""
        index = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset) - 1
        return self.entries[max(index, 0)].epoch

    def end_of(self, epoch: int, log_start_offset: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above ``epoch``, or (-1, -1) if that is unknown.

        Source: ``LeaderEpochFileCache.endOffsetFor``.
        """
        if epoch == UNDEFINED_EPOCH or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        entries = self.since(log_start_offset)
        index = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        return epoch if index == 0 else entries[index - 1].epoch, entries[index].start_offset

    def since(self, log_start_offset: int) -> list[EpochEntry]:
        """The epochs of a log that starts at ``log_start_offset`` now; the first one begins there."""
        later = [entry for entry in self.entries if entry.start_offset > log_start_offset]
        first = self.entries[len(self.entries) - len(later) - 1]
        return later if len(later) == len(self.entries) else [EpochEntry(first.epoch, log_start_offset), *later]
