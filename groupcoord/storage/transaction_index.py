"""The ``.txnindex`` file of a segment: the aborted transactions whose markers it has, which read_committed consumers skip.

An entry has a version (int16, 0), producer id, first offset, last offset, and last stable offset (int64 each). Last offsets
ascend. Kafka creates the file with the first entry; here a segment without aborted transactions may have an empty file, which
shows that no index was lost. Entries are read from the file when needed, as most segments have none. Source:
``TransactionIndex``, ``AbortedTxn``.
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from groupcoord.broker.producer_state_manager import AbortedTransaction, ProducerStateManager
from groupcoord.storage.file_io import create, opened, read_at, replace, write_at

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class TransactionIndexError(ValueError):
    """An invalid entry at a position (bytes) of the file; the text names both.

    ``sound`` is the number of valid entries before it.
    """

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.sound = position // _ENTRY.size


class TransactionIndex:
    """The entries of the file ``path``, if it exists. Everything raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.count = path.stat().st_size // _ENTRY.size
            self.exists = True
        except FileNotFoundError:
            self.count = 0
            self.exists = False

    def read(self) -> list[AbortedTransaction]:
        """All entries."""
        if not self.count:
            return []
        with opened(self.path) as descriptor:
            data = read_at(descriptor, self.count * _ENTRY.size, 0)
        return [AbortedTransaction(*fields) for _, *fields in _ENTRY.iter_unpack(data)]

    def check(self, first: int, behind: int) -> None:
        """Check that all entries are complete, in order, and end between the offsets ``first`` and ``behind`` (exclusive).

        Raises TransactionIndexError.
        """
        if not self.exists:
            return
        data = self.path.read_bytes()
        whole = len(data) // _ENTRY.size * _ENTRY.size
        last = first - 1
        for position in range(0, whole, _ENTRY.size):
            version, *fields = _ENTRY.unpack_from(data, position)
            entry = AbortedTransaction(*fields)
            if version != _VERSION:
                raise TransactionIndexError(self.path, position, f"an entry of version {version}")
            if not (
                entry.producer_id >= 0
                and 0 <= entry.first_offset < entry.last_offset
                and 0 <= entry.last_stable_offset <= entry.last_offset + 1
                and last < entry.last_offset < behind
            ):
                raise TransactionIndexError(self.path, position, f"{entry} cannot be in it")
            last = entry.last_offset
        if whole < len(data):
            raise TransactionIndexError(self.path, whole, f"{len(data) - whole} bytes of an entry")

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry at the end."""
        with opened(self.path, os.O_WRONLY | os.O_CREAT) as descriptor:
            write_at(descriptor, _ENTRY.pack(_VERSION, *aborted), self.count * _ENTRY.size)
        self.count += 1
        self.exists = True

    def cut(self, count: int) -> None:
        """Remove all but the first ``count`` entries."""
        if self.count > count:
            os.truncate(self.path, count * _ENTRY.size)
            self.count = count

    def make(self) -> None:
        """Create an empty file, unless there is one."""
        if not self.exists:
            create(self.path)
            self.exists = True

    def write(self, entries: Iterable[AbortedTransaction]) -> None:
        """Replace all entries by these, atomically and flushed."""
        data = b"".join(_ENTRY.pack(_VERSION, *each) for each in entries)
        replace(self.path, data)
        self.count = len(data) // _ENTRY.size
        self.exists = True


def has_transactions(producers: ProducerStateManager) -> bool:
    """Has any of ``producers`` an open transaction, or had one? Then the log has markers, or will have."""
    return any(
        entry.coordinator_epoch >= 0 or entry.current_txn_first_offset is not None for _, entry in producers.items()
    )
