"""Slow disks: what their brokers append takes so long, on the clock of the cluster.

A write is under way until its time is over, and only then is it in the log. Writes of one broker end in the order in which they
began.
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers

# Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
# In Kafka an append keeps one of ``num.io.threads`` busy, so that other requests wait at last, and appends to one partition
# wait for each other; here only that waits for a slow append which it is part of.


Then = Callable[[HandlerContext], None]


class _Write(NamedTuple):
    due_ms: int
    lost: Then


def _nobody(_ctx: HandlerContext) -> None:
    """Nobody has to hear that a write is lost."""


class SlowDisks:
    """The disks of the brokers of one cluster; none is slow at first. ``timers`` end the writes."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._delays_ms: dict[int, int] = {}
        self._under_way: dict[int, dict[TimerKey, _Write]] = {}
        """The writes of each broker, in order."""
        self._numbers = count(1)

    def __bool__(self) -> bool:
        """Is there anything to be slow?"""
        return bool(self._delays_ms or self._under_way)

    def delay_ms(self, broker_id: int) -> int:
        """How long each append of a broker takes; 0: no time."""
        return self._delays_ms.get(broker_id, 0)

    def set_delay(self, broker_id: int, delay_ms: int) -> None:
        """From now on each append of a broker takes so long; 0: no time. What is under way ends when it would have."""
        if delay_ms:
            self._delays_ms[broker_id] = delay_ms
        else:
            self._delays_ms.pop(broker_id, None)

    def takes_time(self, broker_id: int) -> bool:
        """Has an append of a broker to be done by ``write``? Also one behind others that are under way."""
        return broker_id in self._delays_ms or self.is_writing(broker_id)

    def is_writing(self, broker_id: int) -> bool:
        """Is a broker writing to a disk that is, or was, slow?"""
        return broker_id in self._under_way

    def write(self, now_ms: int, broker_id: int, what: str, done: Then, lost: Then = _nobody) -> None:
        """Call ``done`` when a write that begins now is over, or ``lost`` if its broker is gone by then.

        ``what`` is written shows in the trace, as the cause of what follows.
        """
        under_way = self._under_way.setdefault(broker_id, {})
        key = TimerKey("disk", f"broker {broker_id}", f"{what} ({next(self._numbers)})")
        due_ms = max([now_ms + self.delay_ms(broker_id), *(each.due_ms for each in list(under_way.values())[-1:])])
        under_way[key] = _Write(due_ms, lost)

        def written(later: HandlerContext) -> None:
            self._ended(broker_id, key)
            done(later)

        self._timers.schedule(key, due_ms, written)

    def broker_gone(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker runs no longer, and what it was writing never comes to its log."""
        for key, write in self._under_way.pop(broker_id, {}).items():
            self._timers.cancel(key)
            write.lost(ctx)

    def _ended(self, broker_id: int, key: TimerKey) -> None:
        under_way = self._under_way[broker_id]
        del under_way[key]
        if not under_way:
            del self._under_way[broker_id]
