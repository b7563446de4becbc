"""Slow disks of brokers, for tests: each append takes a configured time on the cluster's clock.

A batch is in the log only when its write has ended. The writes of one broker end in the order in which they began.
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.timers import TimerKey, Timers

# Deviation (scope-of-a-stand-in): see cluster/api_versions.py.
# In Kafka a slow append blocks one of ``num.io.threads``, so that in the end other requests wait, too, and appends to one
# partition block each other; here only the request itself is delayed.


Then = Callable[[HandlerContext], None]


class _Write(NamedTuple):
    due_ms: int
    lost: Then


def _nobody(_ctx: HandlerContext) -> None:
    """The default of ``lost``: does nothing."""


class SlowDisks:
    """The disks of the brokers of one cluster, none slow at first. ``timers`` end the writes."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._delays_ms: dict[int, int] = {}
        self._under_way: dict[int, dict[TimerKey, _Write]] = {}
        """The writes in progress of each broker, in order."""
        self._numbers = count(1)

    def __bool__(self) -> bool:
        """Is any disk slow, or a write in progress?"""
        return bool(self._delays_ms or self._under_way)

    def delay_ms(self, broker_id: int) -> int:
        """The duration of each append of a broker; 0: the disk is not slow."""
        return self._delays_ms.get(broker_id, 0)

    def set_delay(self, broker_id: int, delay_ms: int) -> None:
        """Set the duration of each append of a broker from now on; 0: not slow. Writes in progress keep their duration."""
        if delay_ms:
            self._delays_ms[broker_id] = delay_ms
        else:
            self._delays_ms.pop(broker_id, None)

    def takes_time(self, broker_id: int) -> bool:
        """Must an append of a broker go through ``write``? Also if only earlier writes are in progress."""
        return broker_id in self._delays_ms or self.is_writing(broker_id)

    def is_writing(self, broker_id: int) -> bool:
        """Has a broker a write in progress?"""
        return broker_id in self._under_way

    def write(self, now_ms: int, broker_id: int, what: str, done: Then, lost: Then = _nobody) -> None:
        """Start a write; calls ``done`` when it ends, or ``lost`` if the broker stops before.

        The trace shows ``what`` is written as the cause of what follows.
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
        """A broker has stopped: its writes in progress are lost."""
        for key, write in self._under_way.pop(broker_id, {}).items():
            self._timers.cancel(key)
            write.lost(ctx)

    def _ended(self, broker_id: int, key: TimerKey) -> None:
        under_way = self._under_way[broker_id]
        del under_way[key]
        if not under_way:
            del self._under_way[broker_id]
