"""Searches for a record in a batch, by time: what takes long is done aside, and a request asks again when it is done."""

from collections.abc import Callable

from groupcoord.core.background_work import BackgroundWork
from groupcoord.protocol.batches.record_batch import (
    BatchError,
    BatchHeader,
    drop_traceback,
    records_of,
    validation_cost,
)
from groupcoord.protocol.batches.records import InvalidRecordsError, Record

INLINE_BYTES = 2_000_000
"""How much of ``validation_cost`` a request may cost in the loop: some milliseconds."""

_HELD_BYTES = 64 * 1024 * 1024

_Key = tuple[BatchHeader, int, int]


def find_first_since(batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Record | None:
    """The first record from ``start_offset`` on that is not older than ``timestamp_ms``; without key and value.

    Raises BatchError, InvalidRecordsError.
    """
    for record in records_of(batch, header):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return record._replace(key=None, value=None, headers=())
    return None


BatchSearch = Callable[[bytes, BatchHeader, int, int], Record | None]
"""A search like ``find_first_since``."""


class SearchDeferredError(Exception):
    """The search is to be done aside."""


class TimestampSearch:
    """The searches of one request, each a call like ``find_first_since``."""

    def __init__(self) -> None:
        self.wanted: dict[_Key, bytes] = {}
        """What is to be searched aside: the batches."""
        self._found: dict[_Key, Record | BatchError | InvalidRecordsError | None] = {}
        self._held = 0
        self._spent = 0

    def __call__(self, batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> Record | None:
        """As ``find_first_since``. Raises SearchDeferredError, too: there is no answer before ``work`` is done."""
        key = header, timestamp_ms, start_offset
        if key not in self._found:
            self._spent += validation_cost(batch, header)
            if self._spent > INLINE_BYTES:
                if self._held < _HELD_BYTES and key not in self.wanted:
                    self.wanted[key] = batch
                    self._held += len(batch)
                raise SearchDeferredError
            return find_first_since(batch, header, timestamp_ms, start_offset)
        found = self._found[key]
        if isinstance(found, Exception):
            raise found
        return found

    def work(self) -> BackgroundWork[None]:
        """Search what is wanted."""
        for key, batch in self.wanted.items():
            try:
                self._found[key] = find_first_since(batch, *key)
            except (BatchError, InvalidRecordsError) as problem:
                self._found[key] = drop_traceback(problem)
            yield
        self.wanted.clear()
        self._held = self._spent = 0
