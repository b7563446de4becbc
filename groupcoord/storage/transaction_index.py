"""The aborted transactions of a segment, those whose end it has, in Kafka's file ``.txnindex``: a reader must pass them over.

An entry is a version (int16, 0), the producer's id, the first offset, the last, and the last stable offset then (int64 each).
The last offsets ascend. Kafka makes the file with the first entry; here a segment that is known to have none may have an empty
file, so that one that is lost can be told from one that never was. Nothing of it is held in memory, as most segments of most
logs have none. Source: ``TransactionIndex``, ``AbortedTxn``.
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
    """What is at a position (bytes) of a file is no entry of such an index; the text names both.

    ``sound`` is how many entries are before it.
    """

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} at byte {position}: {reason}")
        self.sound = position // _ENTRY.size


class TransactionIndex:
    """The entries of the file ``path``, if there is one. Everything raises OSError."""

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
        """Is the file made of whole entries, in order, that end from offset ``first`` on and before ``behind``?

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
        """Add an entry, which ends behind all others."""
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
        """Have the file, if there is none: with nothing in it."""
        if not self.exists:
            create(self.path)
            self.exists = True

    def write(self, entries: Iterable[AbortedTransaction]) -> None:
        """Have these entries and no others, on the disk, too; after a kill there are these or the old ones."""
        data = b"".join(_ENTRY.pack(_VERSION, *each) for each in entries)
        replace(self.path, data)
        self.count = len(data) // _ENTRY.size
        self.exists = True


def has_transactions(producers: ProducerStateManager) -> bool:
    """Does one of ``producers`` have a transaction open, or has one ended? Then their log has markers, or will have."""
    return any(
        entry.coordinator_epoch >= 0 or entry.current_txn_first_offset is not None for _, entry in producers.items()
    )
