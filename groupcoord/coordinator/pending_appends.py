"""The appends of one partition that are on their way, in order, and who waits for each.

Source: ``CoordinatorRuntime``, of which this is the deferred event queue, the batch that may fail and ``OperationTimeout``.
In Kafka requests that come at the same time share a batch; here each has its own, and those behind one that fails fail with
it, so that it makes no difference. When records fail that a timer caused, Kafka does the timer's work again after half a
second; what there was to do is done by then, so that this cannot be seen either.
"""

from collections.abc import Callable, Sequence

from groupcoord.coordinator.uncommitted import Uncommitted
from groupcoord.core.effects import Call
from groupcoord.core.events import Cause
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode

Stored = Callable[[HandlerContext], None]
Failed = Callable[[HandlerContext, ErrorCode], None]


class Waiter:
    """Somebody who waits; one of ``stored`` and ``failed`` is called, once. ``timeout`` is its deadline, if there is one."""

    __slots__ = ("failed", "origin", "stored", "timeout")

    def __init__(self, origin: Call | Cause, stored: Stored, failed: Failed) -> None:
        self.origin, self.stored, self.failed = origin, stored, failed
        self.timeout: TimerKey | None = None


class PendingAppend:
    """An append, what was there ``before`` it, and who waits for it: the first is its own, the others must not overtake it."""

    __slots__ = ("append_id", "before", "held", "origin", "waiting")

    def __init__(self, append_id: int, origin: Call | Cause) -> None:
        self.append_id, self.origin = append_id, origin
        self.before = Uncommitted()
        self.waiting: list[Waiter] = []
        self.held = False


class PendingAppends:
    """See the module. ``timeout_ms`` is how long anybody waits for an append that takes its time."""

    def __init__(self, partition: int, timers: Timers, timeout_ms: int) -> None:
        self._name = f"__consumer_offsets-{partition}"
        self._timers, self._timeout_ms = timers, timeout_ms
        self._pending: dict[int, PendingAppend] = {}
        self._timeouts = 0

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, append_id: int) -> bool:
        return append_id in self._pending

    def before(self) -> Sequence[Uncommitted]:
        """What was there before each of them, oldest first."""
        return [pending.before for pending in self._pending.values()]

    def add(self, append_id: int, origin: Call | Cause) -> PendingAppend:
        """A new append, behind all others."""
        pending = self._pending[append_id] = PendingAppend(append_id, origin)
        return pending

    def wait(self, ctx: HandlerContext, stored: Stored, failed: Failed) -> None:
        """Wait for the last of them."""
        pending = next(reversed(self._pending.values()))
        waiter = Waiter(ctx.origin, stored, failed)
        pending.waiting.append(waiter)
        if pending.held:
            self._give_time(pending, waiter, ctx.now_ms)

    def hold(self, append_id: int, now_ms: int) -> None:
        """The append takes its time: who waits for it, now or later, does so for no longer than the timeout."""
        pending = self._pending[append_id]
        pending.held = True
        for waiter in pending.waiting:
            self._give_time(pending, waiter, now_ms)

    def take(self, append_id: int) -> list[Waiter]:
        """The append is stored; returns who waited for it, nobody if it is not on its way any more."""
        pending = self._pending.pop(append_id, None)
        return [] if pending is None else self._let_go([pending])

    def take_all_from(self, append_id: int) -> tuple[list[PendingAppend], list[Waiter]]:
        """The append failed, and those behind it, which build on it; returns them, newest first, and who waited."""
        ids = list(self._pending)
        first = ids.index(append_id) if append_id in self._pending else len(ids)
        failed = [self._pending.pop(number) for number in ids[first:]]
        return failed[::-1], self._let_go(failed)

    def take_all(self) -> list[Waiter]:
        """None of them matters any more; returns who waited."""
        everything = list(self._pending.values())
        self._pending.clear()
        return self._let_go(everything)

    def _let_go(self, appends: Sequence[PendingAppend]) -> list[Waiter]:
        waiters = [waiter for pending in appends for waiter in pending.waiting]
        for waiter in waiters:
            if waiter.timeout is not None:
                self._timers.cancel(waiter.timeout)
        return waiters

    def _give_time(self, pending: PendingAppend, waiter: Waiter, now_ms: int) -> None:
        def too_late(due: HandlerContext) -> None:
            pending.waiting.remove(waiter)
            waiter.failed(due, ErrorCode.REQUEST_TIMED_OUT)

        self._timeouts += 1
        waiter.timeout = TimerKey("append", self._name, str(self._timeouts))
        self._timers.schedule(waiter.timeout, now_ms + self._timeout_ms, too_late)
