"""Fetches that wait for records wait in real time, even on a clock that the test moves.

A broker answers the requests of a connection one by one: as long as a fetch waits, all later requests of that client wait, too,
such as Metadata and OffsetCommit. On a clock that stands still, they would wait for ever.
"""

import asyncio
from collections.abc import Callable

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.layer import Layer
from groupcoord.core.effects import Effect
from groupcoord.core.timers import TimerKey

_FETCH = "fetch"


class RealTimeFetches(Layer):
    """Waiting fetches of ``core`` end when their time has passed in the real world or on its clock, whichever is first."""

    def __init__(self, core: ClusterCore) -> None:
        super().__init__(core)
        self._broker = core.broker
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._ending: list[TimerKey] = []

    def set_timers(self, now_ms: int, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        """Set a timer in real time for every waiting fetch that has none; it calls ``wake``."""
        waiting = {each.key: each.at_ms for each in self._broker.timers.pending() if each.key.kind == _FETCH}
        for key in self._timers.keys() - waiting.keys():
            self._timers.pop(key).cancel()
        for key in waiting.keys() - self._timers.keys():
            self._timers[key] = loop.call_later((waiting[key] - now_ms) / 1000, self._end, key, wake)

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _end(self, key: TimerKey, wake: Callable[[], None]) -> None:
        del self._timers[key]
        self._ending.append(key)
        wake()

    # The layer.

    def expire(self, now_ms: int) -> list[Effect]:
        """Fire what is due, and end the fetches whose time in the real world is up."""
        effects: list[Effect] = []
        while self._ending:
            effects += self._broker.timers.fire_early(self._ending.pop(0), now_ms)
        return effects + super().expire(now_ms)

    def next_deadline(self) -> int | None:
        """At once if a fetch is to end."""
        return 0 if self._ending else super().next_deadline()

    def deadline_lower_bound(self) -> int | None:
        """At once if a fetch is to end."""
        return 0 if self._ending else super().deadline_lower_bound()
