"""The appends of one shard: the open batch, the batches on their way to the log, and the writes that wait for each.

Source: ``CoordinatorRuntime``, of which this is the current batch, the deferred event queue and ``OperationTimeout``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.effects import NO_PRODUCER, Origin, TransactionMarker, TypedRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode

Stored = Callable[[HandlerContext], None]
Failed = Callable[[HandlerContext, ErrorCode], None]

ADAPTIVE_LINGER = -1
"""A batch takes what is written until the shell calls ``flush``: as Kafka's adaptive linger, which ends when the events that
were queued for the partition are handled."""

_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 21  # at most (``DefaultRecord.MAX_RECORD_OVERHEAD``)


class AppendSettings(NamedTuple):
    """``write_timeout_ms``: how long a write waits for an append; ``linger_ms``: how long a batch waits for further writes;
    ``max_batch_bytes`` of a partition: how large a batch may get."""

    write_timeout_ms: int
    linger_ms: int
    max_batch_bytes: Callable[[int], int]


class PendingWrite:
    """A write that waits; one of ``stored`` and ``failed`` is called, once. ``timeout`` is the key of its timer, if any."""

    __slots__ = ("failed", "origin", "since_ms", "stored", "timeout")

    def __init__(self, origin: Origin, since_ms: int, stored: Stored, failed: Failed) -> None:
        self.origin, self.since_ms, self.stored, self.failed = origin, since_ms, stored, failed
        self.timeout: TimerKey | None = None


class PendingBatch:
    """Records of one or more writes, or the marker of a transaction; ``changes`` are their undo logs with their origins, oldest
    first.

    ``base_offset`` is the offset that its first record will have; ``times_out`` says whether writes that wait may time out.
    """

    __slots__ = ("append_id", "base_offset", "changes", "records", "size", "times_out", "waiting")

    def __init__(self, append_id: int, base_offset: int, *, times_out: bool) -> None:
        self.append_id, self.base_offset, self.times_out = append_id, base_offset, times_out
        self.records: list[TypedRecord] = []
        self.size = _BATCH_OVERHEAD
        self.changes: list[tuple[Origin, UndoLog]] = []
        self.waiting: list[PendingWrite] = []


class AppendQueue:
    """See the module."""

    def __init__(
        self, topic: str, partition: int, timers: Timers, settings: AppendSettings, next_append_id: Callable[[], int]
    ) -> None:
        self._topic, self._partition = topic, partition
        self._name = f"{topic}-{partition}"
        self._timers = timers
        self._settings = settings
        self._next_append_id = next_append_id
        self.batches: dict[int, PendingBatch] = {}
        """What is not stored yet, oldest first; the last one may be open."""
        self.next_offset = 0
        """The offset that the next record will have."""
        self._open: PendingBatch | None = None
        self._timeouts = 0

    @property
    def is_open(self) -> bool:
        """Is there a batch that was not flushed yet?"""
        return self._open is not None

    def undo_logs(self) -> Iterator[UndoLog]:
        """The undo logs of all writes that are not stored yet, oldest first."""
        return (log for batch in self.batches.values() for _, log in batch.changes)

    def is_too_large(self, records: Sequence[TypedRecord], size: int) -> bool:
        """Is a batch of nothing but ``records``, whose ``size_bound`` is ``size``, larger than a batch may be?"""
        limit = self._settings.max_batch_bytes(self._partition)
        if _BATCH_OVERHEAD + size <= limit:
            return False
        encoded = (record.encoded for record in records)
        return (
            len(build_batch([Record(number, 0, each.key, each.value) for number, each in enumerate(encoded)])) > limit
        )

    def add(self, ctx: HandlerContext, records: Sequence[TypedRecord], undo: UndoLog | None, size: int) -> None:
        """Add the records of a write, which ``undo`` undoes, to the open batch; first flush that if they do not fit.

        ``size`` is their ``size_bound``.
        """
        batch = self._open
        if batch is not None and batch.size + size > self._settings.max_batch_bytes(self._partition):
            self.flush(ctx)
            batch = None
        if batch is None:
            append_id = self._next_append_id()
            lingers_long = self._settings.linger_ms >= self._settings.write_timeout_ms
            batch = PendingBatch(append_id, self.next_offset, times_out=lingers_long)
            self._open = self.batches[append_id] = batch
            if self._settings.linger_ms > 0:
                self._timers.schedule(TimerKey("linger", self._name), ctx.now_ms + self._settings.linger_ms, self.flush)
        batch.records += records
        batch.size += size
        self.next_offset += len(records)
        if undo is not None:
            batch.changes.append((ctx.origin, undo))

    def append_alone(
        self,
        ctx: HandlerContext,
        undo: UndoLog | None,
        records: Sequence[TypedRecord] = (),
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = -1,
        marker: TransactionMarker | None = None,
    ) -> None:
        """Give the records of a transaction, or its ``marker``, to the log as a batch of their own, behind the open one."""
        self.flush(ctx)
        append_id = self._next_append_id()
        batch = self.batches[append_id] = PendingBatch(append_id, self.next_offset, times_out=False)
        self.next_offset += len(records) if marker is None else 1
        if undo is not None:
            batch.changes.append((ctx.origin, undo))
        ctx.append(append_id, self._topic, self._partition, tuple(records), producer_id, producer_epoch, marker)

    def add_changes(self, ctx: HandlerContext, undo: UndoLog | None) -> None:
        """What ``undo`` undoes builds on the last batch: it is undone with that, if there is one."""
        if undo is not None and self.batches:
            next(reversed(self.batches.values())).changes.append((ctx.origin, undo))

    def flush(self, ctx: HandlerContext) -> None:
        """Give the open batch, if there is one, to the log."""
        batch, self._open = self._open, None
        if batch is not None:
            if self._settings.linger_ms > 0:
                self._timers.cancel(TimerKey("linger", self._name))
            ctx.append(batch.append_id, self._topic, self._partition, tuple(batch.records))

    def wait(self, ctx: HandlerContext, stored: Stored, failed: Failed) -> None:
        """Wait for the last batch; there must be one."""
        batch = next(reversed(self.batches.values()))
        write = PendingWrite(ctx.origin, ctx.now_ms, stored, failed)
        batch.waiting.append(write)
        if batch.times_out:
            self._start_timeout(batch, write)

    def hold(self, append_id: int) -> None:
        """The append is held: from now on the writes that wait for it, or will, can time out."""
        batch = self.batches[append_id]
        if not batch.times_out:
            batch.times_out = True
            for write in batch.waiting:
                self._start_timeout(batch, write)

    def complete(self, append_id: int) -> list[PendingWrite]:
        """The append is stored; returns the writes that waited for it, none if it is not pending any more."""
        batch = self.batches.pop(append_id, None)
        if batch is None:
            return []
        return self._dismiss([batch]) if batch.times_out else batch.waiting

    def fail(self, append_id: int) -> tuple[list[tuple[Origin, UndoLog]], list[PendingWrite]]:
        """The append failed, and later ones with it, which build on it: returns their changes, newest first, and the writes
        that waited."""
        if append_id not in self.batches:
            return [], []
        ids = list(self.batches)
        failed = [self.batches.pop(number) for number in ids[ids.index(append_id) :]]
        self.next_offset = failed[0].base_offset
        changes = [change for batch in failed for change in batch.changes]
        return changes[::-1], self._dismiss(failed)

    def clear(self) -> list[PendingWrite]:
        """No append matters any more; returns the writes that waited."""
        batches = list(self.batches.values())
        self.batches.clear()
        return self._dismiss(batches)

    def _dismiss(self, batches: list[PendingBatch]) -> list[PendingWrite]:
        if self._open in batches:
            self._open = None
            self._timers.cancel(TimerKey("linger", self._name))
        writes = [write for batch in batches for write in batch.waiting]
        for write in writes:
            if write.timeout is not None:
                self._timers.cancel(write.timeout)
        return writes

    def _start_timeout(self, batch: PendingBatch, write: PendingWrite) -> None:
        def timed_out(due: HandlerContext) -> None:
            batch.waiting.remove(write)
            write.failed(due, ErrorCode.REQUEST_TIMED_OUT)

        self._timeouts += 1
        write.timeout = TimerKey("append", self._name, str(self._timeouts))
        self._timers.schedule(write.timeout, write.since_ms + self._settings.write_timeout_ms, timed_out)


def size_bound(records: Sequence[TypedRecord]) -> int:
    """``records`` take no more bytes in a batch than that."""
    size = _RECORD_OVERHEAD * len(records)
    for _, _, (key, value) in records:
        size += len(key) + len(value) if value is not None else len(key)
    return size
