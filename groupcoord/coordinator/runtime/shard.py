"""Shard: runs operations on the state machine of one partition, and appends their records (``CoordinatorContext``).

State changes apply immediately; a failed append rolls them back. A timeout does not, because the append may still succeed.
"""

import enum
from collections.abc import Callable, Iterable
from typing import Any, Generic

from groupcoord.coordinator.runtime.append_queue import (
    AppendQueue,
    AppendSettings,
    Failed,
    PendingWrite,
    Stored,
    size_bound,
)
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult, M, Operation, TimerOperation
from groupcoord.coordinator.runtime.undo import UndoLog, UndoRecorder
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import NO_PRODUCER, UNWRITABLE, Call, Effect, TransactionMarker
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode

RETRY_BACKOFF_MS = 500
"""The pause before a failed timer operation is retried (``CoordinatorRuntime.EventBasedCoordinatorTimer``)."""


def _ignore_error(_: HandlerContext, __: ErrorCode) -> None:
    """Nothing waits for the result."""


class ShardState(enum.Enum):
    """The state of a shard (``CoordinatorRuntime.CoordinatorState``)."""

    LOADING = "loading"
    """Its log is being loaded."""
    ACTIVE = "active"
    """It serves requests."""
    FAILED = "failed"
    """Its log could not be loaded."""
    UNLOADED = "unloaded"
    """Its partition is led by another broker, or deleted."""


_ACTIVE = ShardState.ACTIVE  # used for every request: enum lookups are slow in Python 3.11


class ShardTimers:
    """The timers of one state machine, whose operations may write (``CoordinatorTimer``)."""

    def __init__(self, timers: Timers, run: Callable[[HandlerContext, TimerOperation, Failed], None]) -> None:
        self._timers = timers
        self._run = run
        self.postpone = timers.postpone

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._timers

    def schedule(self, key: TimerKey, at_ms: int, operation: TimerOperation, *, retries: bool = False) -> None:
        """Run ``operation`` at ``at_ms``; replaces the timer with an equal key.

        With ``retries`` it runs again 500 ms after its append failed, unless its result has its own ``failed``.
        """

        def failed(later: HandlerContext, error: ErrorCode) -> None:
            if retries and error is not ErrorCode.NOT_COORDINATOR:
                self.schedule(key, later.now_ms + RETRY_BACKOFF_MS, operation, retries=True)

        self._timers.schedule(key, at_ms, lambda due: self._run(due, operation, failed))

    def cancel(self, key: TimerKey) -> None:
        """Cancel the timer, if there is one."""
        self._timers.cancel(key)

    def fire(self, key: TimerKey, ctx: HandlerContext) -> None:
        """Run the operation of a pending timer now. Raises KeyError."""
        self._timers.take(key).fire(ctx)


MachineFactory = Callable[[int, ShardTimers, UndoRecorder], M]
"""Creates the empty state machine of a partition."""


class Shard(Generic[M]):
    """The shard of ``partition`` of ``topic``. A new shard is active and empty."""

    def __init__(
        self,
        topic: str,
        partition: int,
        timers: Timers,
        new_machine: MachineFactory[M],
        settings: AppendSettings,
        next_append_id: Callable[[], int],
    ) -> None:
        self.topic, self.partition = topic, partition
        self.state = ShardState.ACTIVE
        self.why_not_active = ""
        self.on_open: Callable[[Shard[M]], None] = lambda _: None
        """Called when a batch was opened that waits for ``flush``."""
        self._linger_ms = settings.linger_ms
        self._new_machine = new_machine
        self._timers = timers
        self._undo = UndoRecorder()
        self._queue = AppendQueue(topic, partition, timers, settings, next_append_id)
        self._pending = self._queue.batches
        self._machine: M | None = None

    def __repr__(self) -> str:
        return f"<Shard {self.topic}-{self.partition} {self.state.value} pending={len(self._pending)}>"

    # --- its state

    @property
    def machine(self) -> M:
        """The state machine. It is created when it is first needed: most partitions of a test's cluster never have a group."""
        machine = self._machine
        if machine is None:
            machine = self._machine = self.new_machine()
        return machine

    def new_machine(self) -> M:
        """Create an empty state machine for this partition."""
        return self._new_machine(self.partition, ShardTimers(self._timers, self._fire), self._undo)

    def require_active(self) -> None:
        """Raises ApiError (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR) unless this shard is active."""
        if self.state is not ShardState.ACTIVE:
            raise self._not_active()

    def _not_active(self) -> ApiError:
        loading = self.state is ShardState.LOADING
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
        return ApiError(code, self.why_not_active)

    def begin_loading(self) -> None:
        """Enter the state LOADING, until ``activate`` or ``deactivate``."""
        self.deactivate(ShardState.LOADING, f"partition {self.partition} of {self.topic} is being read")

    def activate(self, machine: M, next_offset: int) -> None:
        """Serve requests with the state of ``machine``."""
        self.state, self.why_not_active = ShardState.ACTIVE, ""
        self._machine, self._queue.next_offset = machine, next_offset

    def deactivate(self, state: ShardState, why: str) -> None:
        """Stop serving requests, and discard the state."""
        self.state, self.why_not_active = state, why
        self._machine = None

    def unload(self, ctx: HandlerContext, why: str) -> None:
        """The partition is led by another broker, or deleted: pending writes fail with NOT_COORDINATOR."""
        ctx.effects += _fail(self._queue.clear(), ErrorCode.NOT_COORDINATOR, ctx.now_ms)
        if self._machine is not None:
            self._machine.on_unloaded(ctx, why)
        self.deactivate(ShardState.UNLOADED, why)

    # --- reading

    @property
    def committed(self) -> Any:
        """A view of the stored state, without pending writes. Raises ApiError unless active."""
        self.require_active()
        return self.machine.view(self._queue.undo_logs())

    @property
    def latest(self) -> Any:
        """A view of the state with all pending writes. Raises ApiError unless active."""
        self.require_active()
        return self.machine.view(())

    @property
    def is_idle(self) -> bool:
        """Are there no pending appends?"""
        return not self._pending

    @property
    def is_empty(self) -> bool:
        """Are there neither state nor pending appends?"""
        return self.is_idle and (self._machine is None or self._machine.is_empty)

    # --- writing

    def write(self, ctx: HandlerContext, call: Call, request: Any, operation: Operation[M]) -> None:
        """Run ``operation`` and answer ``call`` when its records are stored."""
        if self.state is not _ACTIVE:
            operation.refused(ctx, call, request, self._not_active())
            return
        recorder = self._undo
        recorder.is_open, recorder.log = True, None
        try:
            result = operation.run(self.machine, ctx, call, request)
        except ApiError as refusal:
            self._queue.add_changes(ctx, recorder.log)
            operation.refused(ctx, call, request, refusal)
            return
        finally:
            recorder.is_open = False
        if not result.records and not self._pending:
            self._queue.add_changes(ctx, recorder.log)
            if result.stored is not None:
                result.stored(ctx)
            if result.response is not None:
                ctx.reply(call, result.response)
        elif result.response is None:
            self._append(ctx, result, recorder.log, result.stored or _ignore, result.failed or _ignore_error)
        else:
            self._append_and_answer(ctx, call, request, operation, result)

    def _append_and_answer(
        self, ctx: HandlerContext, call: Call, request: Any, operation: Operation[M], result: CoordinatorResult
    ) -> None:
        def stored(later: HandlerContext) -> None:
            if result.stored is not None:
                result.stored(later)
            later.reply(call, result.response)

        def failed(later: HandlerContext, error: ErrorCode) -> None:
            operation.failed(later, call, request, error)

        self._append(ctx, result, self._undo.log, stored, failed)

    def run(
        self, ctx: HandlerContext, operation: Callable[[M], CoordinatorResult], failed: Failed = _ignore_error
    ) -> None:
        """Run an ``operation`` without a request, if active. ``failed`` is the default of a result without its own."""
        if self.state is ShardState.ACTIVE:
            recorder = self._undo
            recorder.is_open, recorder.log = True, None
            try:
                result = operation(self.machine)
            finally:
                recorder.is_open = False
            self._append(ctx, result, recorder.log, result.stored or _ignore, result.failed or failed)

    def complete_transaction(
        self, ctx: HandlerContext, marker: TransactionMarker, stored: Stored, failed: Failed
    ) -> None:
        """End a transaction of this partition, and call ``stored`` when its ``marker`` is stored.

        Otherwise ``failed`` is called, with the log's error, REQUEST_TIMED_OUT, or at once if the shard is not active.
        Source: ``CoordinatorContext.completeTransaction``.
        """
        if self.state is not ShardState.ACTIVE:
            failed(ctx, self._not_active().code)
            return
        recorder = self._undo
        recorder.is_open, recorder.log = True, None
        try:
            ended = self.machine.end_transaction(marker.producer_id, committed=marker.committed)
        finally:
            recorder.is_open = False
        self._queue.append_alone(ctx, recorder.log, marker=marker)

        def marker_stored(later: HandlerContext) -> None:
            if ended is not None:
                ended(later)
            stored(later)

        self._queue.wait(ctx, marker_stored, failed)

    def after_pending_writes(self, ctx: HandlerContext, stored: Stored, failed: Failed) -> None:
        """Call ``stored`` when all pending writes are stored, at once if there are none; or ``failed``."""
        if self._pending:
            self._queue.wait(ctx, stored, failed)
        else:
            stored(ctx)

    def flush(self, ctx: HandlerContext) -> None:
        """Append the open batch, if there is one."""
        self._queue.flush(ctx)

    def _fire(self, ctx: HandlerContext, operation: TimerOperation, failed: Failed) -> None:
        self.run(ctx, lambda _: operation(ctx), failed)

    def _append(
        self, ctx: HandlerContext, result: CoordinatorResult, undo: UndoLog | None, stored: Stored, failed: Failed
    ) -> None:
        """Apply and append the records of ``result``, and wait for them; ``undo`` undoes the changes so far."""
        records = result.records
        if not records:
            self._queue.add_changes(ctx, undo)
            self.after_pending_writes(ctx, stored, failed)
            return
        size = size_bound(records)
        error = self._unwritable(result, size)
        if error:
            if undo is not None:
                undo.revert(ctx, error)
            failed(ctx, error)
            return
        recorder = self._undo
        was_open = self._queue.is_open
        is_transactional = result.producer_id != NO_PRODUCER
        for part in (records,) if result.is_atomic else ((record,) for record in records):
            recorder.is_open, recorder.log = result.replay_records, undo
            try:
                if result.replay_records:
                    apply = self.machine.apply
                    for offset, record in enumerate(part, self._queue.next_offset):
                        apply(record, offset, result.producer_id)
            except Exception:  # a bug in the state machine: undo, because the records are not in the log
                (recorder.log or UndoLog()).revert(ctx, ErrorCode.UNKNOWN_SERVER_ERROR)
                raise
            finally:
                recorder.is_open = False
            if is_transactional:
                self._queue.append_alone(ctx, recorder.log, part, result.producer_id, result.producer_epoch)
            else:
                self._queue.add(ctx, part, recorder.log, size if result.is_atomic else size_bound(part))
            undo = None
        self._queue.wait(ctx, stored, failed)
        if not self._linger_ms:
            self._queue.flush(ctx)
        elif self._linger_ms < 0 and self._queue.is_open and not was_open:
            self.on_open(self)

    def _unwritable(self, result: CoordinatorResult, size: int) -> ErrorCode:
        """The error if the records of ``result`` can never be written; Kafka also checks that before it builds a batch."""
        for _, _, encoded in result.records:
            if encoded is UNWRITABLE:
                return ErrorCode.UNKNOWN_SERVER_ERROR
        too_large = result.is_atomic and self._queue.is_too_large(result.records, size)
        return ErrorCode.MESSAGE_TOO_LARGE if too_large else ErrorCode.NONE

    # --- results of appends

    def awaits(self, append_id: int) -> bool:
        """Is the append pending?"""
        return append_id in self._pending

    def append_held(self, append_id: int) -> None:
        """The append is delayed: from now on its waiting writes can time out."""
        self._queue.hold(append_id)

    def appended(self, append_id: int, now_ms: int) -> list[Effect]:
        """The append is stored: complete its waiting writes. Appends are stored in order."""
        effects: list[Effect] = []
        for write in self._queue.complete(append_id):
            ctx = HandlerContext(now_ms, write.origin)
            write.stored(ctx)
            effects += ctx.effects
        return effects

    def append_failed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The append failed with ``error``, and with it all later ones: undo them and fail their waiting writes.

        In Kafka all of them are one batch (``CoordinatorContext.failCurrentBatch``).
        """
        changes, writes = self._queue.fail(append_id)
        effects: list[Effect] = []
        for origin, undo in changes:
            ctx = HandlerContext(now_ms, origin)
            undo.revert(ctx, error)
            effects += ctx.effects
        return effects + _fail(writes, error, now_ms)


def _fail(writes: Iterable[PendingWrite], error: ErrorCode, now_ms: int) -> list[Effect]:
    effects: list[Effect] = []
    for write in writes:
        ctx = HandlerContext(now_ms, write.origin)
        write.failed(ctx, error)
        effects += ctx.effects
    return effects


def _ignore(_: HandlerContext) -> None:
    """Nothing waits for the result."""
