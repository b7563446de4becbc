"""ClusterClock, ``kafka.clock``: the cluster's time, its pending deadlines, and advancing a manual clock.

A manual clock is advanced from deadline to deadline, so that each timer runs at its own time.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.core.timers import Deadline
from groupcoord.testing.clocks import ManualClock
from groupcoord.testing.cluster_group import group_description
from groupcoord.testing.engine import Engine
from groupcoord.testing.forgotten_awaits import noted
from groupcoord.testing.wait_reasons import explained, wait_reasons
from groupcoord.testing.waiting import WaitTimeoutError, limit_of

MOST_ROUNDS = 10_000
"""If timers are due more often than that at one time, an endless loop is assumed."""
A_YEAR_S = 365 * 86_400
ADVANCE_UNTIL_S = 3_600.0
"""By how much ``advance_until`` advances at most, unless told; timeouts of groups and transactions are shorter."""
SHOWN_GROUPS = 20
"""How many groups the error of ``advance_until`` shows."""

_WORDS = {
    "session": "the session of {subject} in group {scope} ends unless it is heard",
    "join": "group {scope} waits no longer for members to join",
    "sync": "group {scope} waits no longer for members to sync",
    "rebalance": "{subject} in group {scope} is removed unless it has given back what it has to",
    "member-join": "{subject} in group {scope} is removed unless it has joined again",
    "member-sync": "{subject} in group {scope} is removed unless it has synced",
    "regex": "the regular expressions of group {scope} are resolved",
    "fetch": "a fetch on {scope} is answered with what there is",
    "retention": "{scope} is looked through for what has expired",
    "fault": "{scope} lets go what it delays: {subject}",
}
_OF_GROUPS = frozenset({"session", "join", "sync", "rebalance", "member-join", "member-sync", "regex"})
_HOUSEKEEPING = frozenset({"fetch", "retention"})


class ClockError(RuntimeError):
    """The clock of this cluster cannot be advanced, because it is not manual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDeadline:
    """A pending timer, which expires at ``at_ms`` (``in_seconds`` from now), and its ``reason``.

    ``kind`` is ``session``, ``join``, ``sync``, ``rebalance`` …; ``group`` and ``member`` are what it is about, or empty.
    """

    at_ms: int
    in_seconds: float
    kind: str
    group: str
    member: str
    reason: str

    def __str__(self) -> str:
        return f"in {self.in_seconds:,.3f} s {self.reason}"


@noted
class ClusterClock:
    """``kafka.clock``. Methods that advance it raise ClockError unless the cluster was created with ``clock="manual"``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def now_ms(self) -> int:
        """The time: milliseconds since 1970."""
        return self._engine.clock()

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[PendingDeadline]:
        """The pending timers of groups, earliest first; with ``everything`` also those that concern no group."""
        engine = self._engine
        return _pending(engine.core, self.now_ms(), engine.delays(), group=group, everything=everything)

    async def advance(self, seconds: float, *, heartbeats: bool = True) -> None:
        """Advance the clock; every timer that expires runs at its own time, in order, before this returns.

        Clients in other programs and threads send heartbeats by their own timers, which run in real time. So while the clock
        is advanced, the cluster sends heartbeats for members whose connection is open; with ``heartbeats=False`` it does not,
        and their sessions time out as if they hung. Raises ClockError, and ValueError for a negative time.
        """
        if not isinstance(seconds, int | float):
            raise TypeError(f"seconds={seconds!r}: a number, such as 46 or 0.5")
        clock, by_ms = self._manual(), round(seconds * 1000)
        if by_ms < 0:
            raise ValueError(f"time does not go back: {by_ms} ms")
        await self._go_to(clock() + by_ms, lambda: False, heartbeats=heartbeats)

    async def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> PendingDeadline:
        """Advance the clock to the next deadline of ``group``, or of any group, and let it expire; returns the deadline.

        Raises ClockError, and WaitTimeoutError if nothing is pending.
        """
        clock = self._manual()
        await self._engine.settle()
        waiting = _pending(self._engine.core, clock(), group=group)
        if not waiting:
            raise WaitTimeoutError(
                f"nothing will ever happen in {f'group {group}' if group else 'any group'} by itself"
            )
        await self._go_to(waiting[0].at_ms, lambda: False, heartbeats=heartbeats)
        return waiting[0]

    async def advance_until(
        self,
        condition: Callable[[], object | Awaitable[object]],
        what: str | None = None,
        *,
        timeout: float | None = None,
        heartbeats: bool = True,
    ) -> None:
        """Advance the clock, deadline by deadline, until ``condition()`` is true; it may be asynchronous.

        The clock advances by at most ``timeout`` seconds, or an hour; more is needed for what takes days, such as the expiry
        of offsets. ``what`` describes the condition for the error text. Raises ClockError, WaitTimeoutError.
        """
        clock, limit_s = self._manual(), ADVANCE_UNTIL_S if timeout is None else limit_of(timeout)
        start_ms = clock()
        await self._engine.settle()
        await self._go_to(start_ms + round(limit_s * 1000), condition, heartbeats=heartbeats)
        if not await _holds(condition):
            after = f"{what or _name(condition)}: not within {limit_s:,g} s of the cluster's time"
            more = " (an hour unless timeout= says otherwise)" if timeout is None else ""
            raise WaitTimeoutError(explained(f"{after}{more}", [*self._groups(), *wait_reasons(self._engine)]))

    def _groups(self) -> list[str]:
        """The groups as they are, each in one line."""
        names = self._engine.group_names()
        shown = [group_description(self._engine.core, name).text() for name in names[:SHOWN_GROUPS]]
        more = [f"and {len(names) - SHOWN_GROUPS} more groups"] if len(names) > SHOWN_GROUPS else []
        return [*shown, *more] or ["there is no group"]

    def _manual(self) -> ManualClock:
        clock = self._engine.clock
        if not isinstance(clock, ManualClock):
            raise ClockError("this cluster's time passes by itself; only with clock='manual' the test moves it")
        return clock

    async def _go_to(
        self, target_ms: int, enough: Callable[[], object | Awaitable[object]], *, heartbeats: bool
    ) -> None:
        """Advance the clock to ``target_ms``, or to the first deadline after which ``enough`` is true."""
        engine, clock = self._engine, self._manual()
        await engine.settle()
        rounds = 0
        while not await _holds(enough):
            at_ms = engine.next_deadline()
            if at_ms is None or at_ms > target_ms:
                break
            rounds = rounds + 1 if at_ms <= clock() else 0
            if rounds > MOST_ROUNDS:
                raise RuntimeError(f"something is due at {clock()} ms again and again, and time does not pass")
            clock.move_to(max(at_ms, clock()))
            if heartbeats:
                for group, member in _sessions(engine.core, clock()):
                    engine.heartbeat_for(group, member)
            engine.scheduler.expire()
            engine.wake()
            await engine.settle()
        if not await _holds(enough):
            clock.move_to(max(target_ms, clock()))
            engine.wake()
            await engine.settle()


def _name(condition: Callable[[], object]) -> str:
    """A name of ``condition`` for a reader: that of its function, or where its lambda expression is."""
    name = getattr(condition, "__name__", repr(condition))
    code = getattr(condition, "__code__", None)
    return (
        f"the condition at {Path(code.co_filename).name}:{code.co_firstlineno}" if name == "<lambda>" and code else name
    )


async def _holds(condition: Callable[[], object | Awaitable[object]]) -> bool:
    found = condition()
    return bool(await found if inspect.isawaitable(found) else found)


def _pending(
    core: ClusterCore,
    now_ms: int,
    delays: Iterable[Deadline] = (),
    *,
    group: str | None = None,
    everything: bool = False,
) -> list[PendingDeadline]:
    """The deadlines of groups and ``delays``, earliest first; with ``everything`` also those of logs, fetches and the search
    for expired offsets."""
    found = [*(core.deadlines() if everything else core.coordinator.timers.pending()), *delays]
    found.sort(key=lambda each: each.at_ms)
    views = (_view(each, now_ms) for each in found if everything or each.key.kind not in _HOUSEKEEPING)
    return [view for view in views if group is None or view.group == group]


def _sessions(core: ClusterCore, up_to_ms: int) -> list[tuple[str, str]]:
    """(group, member) of each session that times out up to ``up_to_ms``."""
    due = (each.key for each in core.coordinator.timers.pending() if each.at_ms <= up_to_ms)
    return [(key.scope, key.subject) for key in due if key.kind == "session"]


def _view(deadline: Deadline, now_ms: int) -> PendingDeadline:
    kind, scope, subject = deadline.key
    of_group = kind in _OF_GROUPS
    words = _WORDS.get(kind)
    return PendingDeadline(
        at_ms=deadline.at_ms,
        in_seconds=(deadline.at_ms - now_ms) / 1000,
        kind=kind,
        group=scope if of_group else "",
        member=subject if of_group else "",
        reason=words.format(scope=scope, subject=subject) if words else " ".join(filter(None, (kind, scope, subject))),
    )
