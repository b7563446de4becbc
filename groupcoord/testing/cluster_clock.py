"""The clock of a cluster as a test uses it: how late it is, what is pending, and letting time pass."""

from collections.abc import Awaitable, Callable

from groupcoord.testing.clock_driver import A_YEAR_MS, ClockDriver
from groupcoord.testing.deadlines import PendingDeadline, pending
from groupcoord.testing.engine import Engine


class ClusterClock:
    """``kafka.clock``. Methods that let time pass raise ClockError unless the cluster was made with ``clock="manual"``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._driver = ClockDriver(engine)

    def now_ms(self) -> int:
        """The present time: milliseconds since 1970."""
        return self._engine.clock()

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[PendingDeadline]:
        """What will happen if nothing else does, earliest first; with ``everything`` also what concerns no group."""
        engine = self._engine
        return pending(engine.core, self.now_ms(), engine.delays(), group=group, everything=everything)

    async def advance(self, seconds: float, *, heartbeats: bool = True) -> None:
        """Let time pass; everything that falls due happens at its own moment, in order, before this returns.

        The heartbeats of clients in other programs and threads come from timers of theirs, which run in real time. So while
        time passes, the cluster sends them in their name, for members whose connection is open; with ``heartbeats=False``
        it does not, and they lose their sessions as if they had hung. Raises ClockError.
        """
        await self._driver.advance(round(seconds * 1000), heartbeats=heartbeats)

    async def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> PendingDeadline:
        """Let time pass until the next deadline of ``group``, or of any, that included; returns what it was.

        Raises ClockError, and WaitTimeoutError if nothing is pending.
        """
        return await self._driver.advance_to_next(group, heartbeats=heartbeats)

    async def advance_until(
        self,
        condition: Callable[[], object | Awaitable[object]],
        *,
        timeout: float | None = None,
        heartbeats: bool = True,
    ) -> None:
        """Let time pass, deadline by deadline, until ``condition()`` is true, or what it returns is when awaited.

        At most ``timeout`` seconds of this clock pass, or a year. Raises ClockError, WaitTimeoutError.
        """
        limit_ms = A_YEAR_MS if timeout is None else round(timeout * 1000)
        await self._driver.advance_until(condition, limit_ms, heartbeats=heartbeats)
