"""The periodic work on logs (``LogManager``): retention, compaction, expiry of idle producers, and flushes of log files.

Each task runs first ``log.initial.task.delay.ms`` after the start, then in intervals such as
``log.retention.check.interval.ms``. Its timer is set only while there is something to do, so that an idle broker has no
deadlines. Source: ``LogManager.cleanupLogs``, ``.flushDirtyLogs`` and ``.checkpointLogRecoveryOffsets``; ``UnifiedLog``'s
``producerExpireCheck``.
"""

import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from groupcoord.broker import cleaner
from groupcoord.broker.events import LogCleaned, LogNotCleaned, LogSegmentsDeleted
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.broker.topic_config import INT64_MAX
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import BackgroundWork, WorkRunner, WorkSteps, run_inline, run_steps
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.batches.record_batch import BatchError, drop_traceback


class _Failed(NamedTuple):
    error: Exception


class LogCleaner:
    """Compacts ``logs`` in the background, one at a time; no request waits for it.

    ``logs``, ``runner`` and ``config`` are called each time, because they may change. The long steps, which only read closed
    segments, go through the runner; their results are applied in a later turn. Source: ``LogCleaner``, which has threads of its
    own.
    """

    def __init__(
        self,
        runner: Callable[[], WorkRunner],
        config: Callable[[], BrokerConfig],
        logs: Callable[[], Iterable[PartitionLog]],
    ) -> None:
        self._runner = runner
        self._config = config
        self._logs = logs
        self._given_to: WorkRunner | None = None
        self._log: PartitionLog | None = None

    @property
    def is_busy(self) -> bool:
        """Is a compaction in progress? One whose ``WorkRunner`` was replaced never ends, and does not count."""
        return self._given_to is not None and self._given_to is self._runner()

    def is_at(self, log: PartitionLog) -> bool:
        """Is ``log`` being compacted?"""
        return self.is_busy and self._log is log

    def compact_all(
        self, ctx: HandlerContext, logs: Sequence[PartitionLog], then: Callable[[HandlerContext], None]
    ) -> None:
        """Compact ``logs`` one after the other, then call ``then``. No compaction may be in progress."""
        runner = self._given_to = self._runner()
        run_steps(runner, ctx, self._all(ctx, logs, then))

    def compact(self, ctx: HandlerContext, log: PartitionLog) -> None:
        """Compact ``log`` now, within this turn."""
        run_steps(run_inline, ctx, self._one(ctx, log))

    def _all(
        self, ctx: HandlerContext, logs: Sequence[PartitionLog], then: Callable[[HandlerContext], None]
    ) -> WorkSteps:
        try:
            for log in logs:
                if self._is_there(log):
                    self._log = log
                    ctx = yield from self._one(ctx, log)
        finally:
            self._given_to = self._log = None
        then(ctx)

    def _one(
        self, ctx: HandlerContext, log: PartitionLog
    ) -> Generator[BackgroundWork[Any], tuple[HandlerContext, Any], HandlerContext]:
        found = cleaner.cleanable(log, ctx.now_ms)
        steps = cleaner.cleaning(log, found, ctx.now_ms)
        try:
            work = next(steps)
            while True:
                ctx, came = yield _outcome(work)
                if not self._is_there(log):  # deleted meanwhile, with its files
                    return ctx
                work = steps.throw(came.error) if isinstance(came, _Failed) else steps.send(came)
        except StopIteration as end:
            if end.value is not None:
                ctx.emit(LogCleaned, log=log.name, **end.value._asdict())
        except BatchError as problem:
            ctx.emit(LogNotCleaned, log=log.name, why=str(problem))
        return ctx

    def _is_there(self, log: PartitionLog) -> bool:
        return any(each is log for each in self._logs())


def _outcome(work: BackgroundWork[Any]) -> BackgroundWork[Any]:
    """The result of ``work``, or what it raised as ``_Failed``: the caller knows whether the log still exists."""
    try:
        return (yield from work)
    except Exception as error:
        return _Failed(drop_traceback(error))


PRODUCER_CHECK_INTERVAL_MS = 600_000
"""Kafka's producer.id.expiration.check.interval.ms, an internal property that is left at its default."""

_CLEANING = TimerKey("cleaning", "logs")
_RETENTION = TimerKey("retention", "logs")
_PRODUCERS = TimerKey("expiration", "producers")
_CHECKPOINT = TimerKey("checkpoint", "logs")
_FLUSH = TimerKey("flush", "logs")


def tell_deletions(ctx: HandlerContext, log: PartitionLog) -> None:
    """Emit LogSegmentsDeleted for what retention has deleted."""
    for start, end, why in log.deletions:
        ctx.emit(LogSegmentsDeleted, log=log.name, start_offset=start, end_offset=end, why=why)
    log.deletions.clear()


class LogManager:
    """The timers of all ``logs`` of a broker that started at ``started_ms``.

    ``config`` is called each time, because it may change while the broker runs; so is ``runner``, which runs compactions.
    """

    def __init__(
        self,
        timers: Timers,
        config: Callable[[], BrokerConfig],
        logs: Callable[[], Iterable[PartitionLog]],
        started_ms: int,
        storage: StorageBackend = IN_MEMORY_STORAGE,
        runner: Callable[[], WorkRunner] = lambda: run_inline,
    ) -> None:
        self._log_cleaner = LogCleaner(runner, config, logs)
        self._storage = storage
        self._started_ms = started_ms
        self._timers = timers
        self._config = config
        self._logs = logs

    def appended(self, log: PartitionLog, now_ms: int) -> None:
        """``log`` has grown: schedule retention, cleaning and flushes."""
        if _RETENTION not in self._timers:
            self._schedule_retention(now_ms)
        if log.settings.compact and len(log.segments) > 1:
            self._schedule_cleaning(now_ms)
        if len(log.producers) and _PRODUCERS not in self._timers:
            self._schedule_producers(now_ms)
        if not self._storage.in_memory:
            self._schedule("log.flush.offset.checkpoint.interval.ms", _CHECKPOINT, now_ms, self._checkpoint)
            self._schedule("log.flush.scheduler.interval.ms", _FLUSH, now_ms, self._flush)

    def _schedule(self, interval: str, key: TimerKey, now_ms: int, fire: Callable[[HandlerContext], None]) -> None:
        if key in self._timers:  # as at nearly every append
            return
        interval_ms = int(str(self._config()[interval]))
        if interval_ms < INT64_MAX:
            self._timers.schedule(key, now_ms + interval_ms, fire)

    def _schedule_retention(self, now_ms: int) -> None:
        config = self._config()
        first_ms = self._started_ms + config.log_initial_task_delay_ms
        interval_ms = config.log_retention_check_interval_ms
        rounds = max(0, (now_ms - first_ms) // interval_ms + 1)
        self._timers.schedule(_RETENTION, first_ms + rounds * interval_ms, self._retain)

    def _schedule_cleaning(self, now_ms: int) -> None:
        if _CLEANING in self._timers:
            return
        config = self._config()
        if config["log.cleaner.enable"]:
            self._timers.schedule(_CLEANING, now_ms + int(str(config["log.cleaner.backoff.ms"])), self._clean)

    def _schedule_producers(self, now_ms: int) -> None:
        self._timers.schedule(_PRODUCERS, now_ms + PRODUCER_CHECK_INTERVAL_MS, self._forget)

    def _retain(self, ctx: HandlerContext) -> None:
        logs = list(self._logs())
        # If the disk has failed, the server is about to stop; if a file could not be opened, the next check tries again.
        with contextlib.suppress(BatchError):
            for log in logs:
                log.apply_retention(ctx.now_ms)
                tell_deletions(ctx, log)
        if any(log.size for log in logs):
            self._schedule_retention(ctx.now_ms)

    def _clean(self, ctx: HandlerContext) -> None:
        """Compact the dirtiest log, then the next, until none is due."""
        if self._log_cleaner.is_busy:  # something was appended meanwhile
            self._schedule_cleaning(ctx.now_ms)
            return
        logs = [log for log in self._logs() if log.settings.compact and len(log.segments) > 1]
        found = [(log, cleaner.cleanable(log, ctx.now_ms)) for log in logs]
        due = [each for each in found if cleaner.is_due(*each, ctx.now_ms)]
        due.sort(key=lambda each: each[1].ratio, reverse=True)
        self._log_cleaner.compact_all(
            ctx, [log for log, _ in due], lambda later: self._schedule_cleaning(later.now_ms) if logs else None
        )

    def compact(self, ctx: HandlerContext, log: PartitionLog) -> None:
        """Compact all of ``log`` now, with its active segment, whatever its configuration says."""
        if self._log_cleaner.is_at(log):
            ctx.emit(LogNotCleaned, log=log.name, why="it is being compacted")
            return
        try:
            log.roll(ctx.now_ms)
        except BatchError as problem:
            ctx.emit(LogNotCleaned, log=log.name, why=str(problem))
        else:
            self._log_cleaner.compact(ctx, log)

    def _forget(self, ctx: HandlerContext) -> None:
        logs = list(self._logs())
        for log in logs:
            log.producers.expire(ctx.now_ms, self._config().producer_id_expiration_ms)
        if any(len(log.producers) for log in logs):
            self._schedule_producers(ctx.now_ms)

    def _checkpoint(self, _turn: HandlerContext) -> None:
        self._storage.checkpoint()

    def _flush(self, ctx: HandlerContext) -> None:
        waiting = [log.backend.flush_if_due(log, ctx.now_ms) for log in self._logs()]
        if any(waiting):
            self._schedule("log.flush.scheduler.interval.ms", _FLUSH, ctx.now_ms, self._flush)
