"""Moves a manual clock from deadline to deadline, so that each thing happens at its own moment."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Protocol

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.testing.auto_member import MemberScheduler
from groupcoord.testing.clocks import Clock, ManualClock
from groupcoord.testing.deadlines import PendingDeadline, pending, sessions
from groupcoord.testing.waiting import WaitTimeoutError

MOST_ROUNDS = 10_000
"""If something is due more often at one moment, it is taken for an endless loop."""
A_YEAR_MS = 365 * 86_400_000


class ClockError(RuntimeError):
    """The test does not move the time of this cluster."""


class DrivenCluster(Protocol):
    """The cluster whose clock is moved."""

    clock: Clock
    core: ClusterCore
    scheduler: MemberScheduler

    def heartbeat_for(self, group: str, member: str) -> None:
        """Heartbeat for ``member`` if it is a connected client."""

    def wake(self) -> None:
        """The clock has moved."""

    async def settle(self) -> None:
        """Let everything happen that needs no time."""

    def next_deadline(self) -> int | None:
        """When anything is due next (ms): on the broker, if it is up, for members, and for what rules delay."""


class ClockDriver:
    """Moves the time of ``cluster``."""

    def __init__(self, cluster: DrivenCluster) -> None:
        self._cluster = cluster

    async def advance(self, by_ms: int, *, heartbeats: bool) -> None:
        """Let ``by_ms`` pass. Raises ClockError, and ValueError if it is negative."""
        clock = self._clock()
        if by_ms < 0:
            raise ValueError(f"time does not go back: {by_ms} ms")
        await self._go_to(clock() + by_ms, lambda: False, heartbeats=heartbeats)

    async def advance_to_next(self, group: str | None, *, heartbeats: bool) -> PendingDeadline:
        """Let time pass until the next deadline of a group, that included, and return it.

        Raises ClockError, WaitTimeoutError if there is none.
        """
        clock = self._clock()
        await self._cluster.settle()
        waiting = pending(self._cluster.core, clock(), group=group)
        if not waiting:
            raise WaitTimeoutError(
                f"nothing will ever happen in {f'group {group}' if group else 'any group'} by itself"
            )
        await self._go_to(waiting[0].at_ms, lambda: False, heartbeats=heartbeats)
        return waiting[0]

    async def advance_until(
        self, condition: Callable[[], object | Awaitable[object]], limit_ms: int, *, heartbeats: bool
    ) -> None:
        """Let time pass, deadline by deadline, until ``condition()`` is true, or what it returns is when awaited.

        Raises ClockError, WaitTimeoutError if it does not within ``limit_ms`` of the clock.
        """
        clock = self._clock()
        start_ms = clock()
        await self._cluster.settle()
        await self._go_to(start_ms + limit_ms, condition, heartbeats=heartbeats)
        if not await _holds(condition):
            name = getattr(condition, "__name__", repr(condition))
            left = "; ".join(str(each) for each in pending(self._cluster.core, clock())[:3]) or "nothing"
            raise WaitTimeoutError(f"{name} does not hold after {limit_ms / 1000:g} s. Pending: {left}")

    async def _go_to(
        self, target_ms: int, enough: Callable[[], object | Awaitable[object]], *, heartbeats: bool
    ) -> None:
        cluster, clock = self._cluster, self._clock()
        await cluster.settle()
        rounds = 0
        while not await _holds(enough):
            at_ms = cluster.next_deadline()
            if at_ms is None or at_ms > target_ms:
                break
            rounds = rounds + 1 if at_ms <= clock() else 0
            if rounds > MOST_ROUNDS:
                raise RuntimeError(f"something is due at {clock()} ms again and again, and time does not pass")
            clock.move_to(max(at_ms, clock()))
            if heartbeats:
                for group, member in sessions(cluster.core, clock()):
                    cluster.heartbeat_for(group, member)
            cluster.scheduler.expire()
            cluster.wake()
            await cluster.settle()
        if not await _holds(enough):
            clock.move_to(max(target_ms, clock()))
            cluster.wake()
            await cluster.settle()

    def _clock(self) -> ManualClock:
        clock = self._cluster.clock
        if not isinstance(clock, ManualClock):
            raise ClockError("this cluster's time passes by itself; only with clock='manual' the test moves it")
        return clock


async def _holds(condition: Callable[[], object | Awaitable[object]]) -> bool:
    found = condition()
    return bool(await found if inspect.isawaitable(found) else found)
