"""Compaction in the background, one log at a time; no request waits for it.

The long parts, which only read closed segments, go through a ``WorkRunner``; what follows from them happens when they are
done. Source: ``LogCleaner``, which has threads of its own for it.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

from groupcoord.broker import cleaner
from groupcoord.broker.events import LogCleaned, LogNotCleaned
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.core.background_work import BackgroundWork, WorkRunner, WorkSteps, run_inline, run_steps
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.batches.record_batch import BatchError, drop_traceback


class _Failed(NamedTuple):
    error: Exception


class LogCleaner:
    """Compacts ``logs``, which is asked, as ``runner`` and ``config`` are, each time."""

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
        """Is a compaction under way? One whose ``WorkRunner`` was replaced never ends, and does not count."""
        return self._given_to is not None and self._given_to is self._runner()

    def is_at(self, log: PartitionLog) -> bool:
        """Is it ``log`` that is being compacted?"""
        return self.is_busy and self._log is log

    def compact_all(
        self, ctx: HandlerContext, logs: Sequence[PartitionLog], then: Callable[[HandlerContext], None]
    ) -> None:
        """Compact ``logs`` one after the other, and then do ``then``. None may be under way."""
        runner = self._given_to = self._runner()
        run_steps(runner, ctx, self._all(ctx, logs, then))

    def compact(self, ctx: HandlerContext, log: PartitionLog) -> None:
        """Compact ``log`` in this turn."""
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
        steps = cleaner.cleaning(log, found, ctx.now_ms, self._config().producer_id_expiration_ms)
        try:
            work = next(steps)
            while True:
                ctx, came = yield _outcome(work)
                if not self._is_there(log):  # nor are its files
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
