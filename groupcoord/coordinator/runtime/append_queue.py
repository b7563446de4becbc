"""The appends of one shard: the open batch, the batches being appended, and the writes that wait for each.

Source: ``CoordinatorRuntime``: its current batch, deferred event queue and ``OperationTimeout``.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_PRODUCER, Origin, TransactionMarker, TypedRecord
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode

Stored = Callable[[HandlerContext], None]
Failed = Callable[[HandlerContext, ErrorCode], None]

ADAPTIVE_LINGER = -1
"""A batch takes writes until ``flush``, like Kafka's adaptive linger, which ends when the queued events of the partition are
handled."""

_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 21  # at most (``DefaultRecord.MAX_RECORD_OVERHEAD``)


class AppendSettings(NamedTuple):
    """``write_timeout_ms``: how long a write waits for its append; ``linger_ms``: how long a batch waits for more writes;
    ``max_batch_bytes``: returns the largest batch size of a partition."""

    write_timeout_ms: int
    linger_ms: int
    max_batch_bytes: Callable[[int], int]


class PendingWrite:
    """A write that waits for its append; then ``stored`` or ``failed`` is called. ``timeout`` is the key of its timer."""

    __slots__ = ("failed", "origin", "since_ms", "stored", "timeout")

    def __init__(self, origin: Origin, since_ms: int, stored: Stored, failed: Failed) -> None:
        self.origin, self.since_ms, self.stored, self.failed = origin, since_ms, stored, failed
        self.timeout: TimerKey | None = None


class PendingBatch:
    """The records of one or more writes, or a transaction marker; ``changes`` are their undo logs with origins, oldest first.

    ``base_offset`` is the expected offset of its first record; ``times_out``: may its waiting writes time out?
    """

    __slots__ = ("append_id", "base_offset", "changes", "records", "size", "times_out", "waiting")

    def __init__(self, append_id: int, base_offset: int, *, times_out: bool) -> None:
        self.append_id, self.base_offset, self.times_out = append_id, base_offset, times_out
        self.records: list[TypedRecord] = []
        self.size = _BATCH_OVERHEAD
        self.changes: list[tuple[Origin, UndoLog]] = []
        self.waiting: list[PendingWrite] = []


class AppendQueue:
    """The append queue of one shard."""

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
        self._loose: list[tuple[Origin, UndoLog]] = []
        """What writes without records have changed since the last record, in one undo log; the next batch takes it along."""
        self._timeouts = 0

    @property
    def is_open(self) -> bool:
        """Is there an unflushed batch?"""
        return self._open is not None

    def undo_logs(self) -> Iterator[UndoLog]:
        """The undo logs of all pending writes, oldest first."""
        pending = (batch.changes for batch in self.batches.values())
        return (log for changes in chain(pending, (self._loose,)) for _, log in changes)

    def is_too_large(self, records: Sequence[TypedRecord], size: int) -> bool:
        """Would a batch of only ``records``, with the ``size_bound`` ``size``, be too large?"""
        limit = self._settings.max_batch_bytes(self._partition)
        if _BATCH_OVERHEAD + size <= limit:
            return False
        encoded = (record.encoded for record in records)
        return (
            len(build_batch([Record(number, 0, each.key, each.value) for number, each in enumerate(encoded)])) > limit
        )

    def add(self, ctx: HandlerContext, records: Sequence[TypedRecord], undo: UndoLog | None, size: int) -> None:
        """Add the records of a write to the open batch, which is flushed first if they do not fit; ``undo`` undoes the write.

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
            self._open = self.batches[append_id] = self._with_changes(batch)
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
        """Append the records of a transaction, or its ``marker``, as a separate batch, after flushing the open one."""
        self.flush(ctx)
        append_id = self._next_append_id()
        batch = self._with_changes(PendingBatch(append_id, self.next_offset, times_out=False))
        self.batches[append_id] = batch
        self.next_offset += len(records) if marker is None else 1
        if undo is not None:
            batch.changes.append((ctx.origin, undo))
        ctx.append(append_id, self._topic, self._partition, tuple(records), producer_id, producer_epoch, marker)

    def add_changes(self, ctx: HandlerContext, undo: UndoLog | None) -> None:
        """Attach a write without records to the open batch, or else to the next one. Until that is stored, nobody sees the
        changes, and if it fails, ``undo`` undoes them: in Kafka no earlier snapshot has them."""
        if undo is None:
            return
        if self._open is not None:
            self._open.changes.append((ctx.origin, undo))
        elif self._loose:
            undo.add_to(self._loose[0][1])
        else:
            self._loose.append((ctx.origin, undo))

    def _with_changes(self, batch: PendingBatch) -> PendingBatch:
        batch.changes, self._loose = self._loose, []
        return batch

    def flush(self, ctx: HandlerContext) -> None:
        """Append the open batch, if there is one."""
        batch, self._open = self._open, None
        if batch is not None:
            if self._settings.linger_ms > 0:
                self._timers.cancel(TimerKey("linger", self._name))
            ctx.append(batch.append_id, self._topic, self._partition, tuple(batch.records))

    def wait(self, ctx: HandlerContext, stored: Stored, failed: Failed) -> None:
        """Call ``stored`` or ``failed`` when the last batch is done; there must be one."""
        batch = next(reversed(self.batches.values()))
        write = PendingWrite(ctx.origin, ctx.now_ms, stored, failed)
        batch.waiting.append(write)
        if batch.times_out:
            self._start_timeout(batch, write)

    def hold(self, append_id: int) -> None:
        """The append is delayed: from now on its waiting writes can time out."""
        batch = self.batches[append_id]
        if not batch.times_out:
            batch.times_out = True
            for write in batch.waiting:
                self._start_timeout(batch, write)

    def complete(self, append_id: int) -> list[PendingWrite]:
        """The append is stored; returns its waiting writes, none if it is no longer pending."""
        batch = self.batches.pop(append_id, None)
        if batch is None:
            return []
        return self._dismiss([batch]) if batch.times_out else batch.waiting

    def fail(self, append_id: int) -> tuple[list[tuple[Origin, UndoLog]], list[PendingWrite]]:
        """The append failed, and with it all later ones, which depend on it: returns their changes, newest first, and their
        waiting writes."""
        if append_id not in self.batches:
            return [], []
        ids = list(self.batches)
        failed = [self.batches.pop(number) for number in ids[ids.index(append_id) :]]
        self.next_offset = failed[0].base_offset
        changes = [change for batch in failed for change in batch.changes] + self._loose
        self._loose = []
        return changes[::-1], self._dismiss(failed)

    def clear(self) -> list[PendingWrite]:
        """Drop all batches; returns their waiting writes."""
        batches = list(self.batches.values())
        self.batches.clear()
        self._loose.clear()
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
    """An upper bound of the bytes of ``records`` in a batch."""
    size = _RECORD_OVERHEAD * len(records)
    for _, _, (key, value) in records:
        size += len(key) + len(value) if value is not None else len(key)
    return size
