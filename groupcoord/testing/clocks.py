"""The clocks that a cluster can have.

``manual``: time stands still until the test advances it. ``real``: the wall clock. ``fast``: the wall clock, a multiple of its
speed. ``virtual``: the clock of the event loop, for loops with simulated time (:mod:`groupcoord.testing.virtual_loop`).
Fetch requests that wait for records wait in real time, even on a manual clock.
"""

import asyncio
import enum
import time
from collections.abc import Callable

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.cluster.layer import Layer
from groupcoord.core.effects import Effect
from groupcoord.core.timers import TimerKey
from groupcoord.wall_clock import monotonic_origin_ns, wall_clock


class ClockMode(enum.StrEnum):
    """What advances the clock."""

    MANUAL = "manual"
    REAL = "real"
    FAST = "fast"
    VIRTUAL = "virtual"

    @classmethod
    def named(cls, clock: str) -> "ClockMode":
        """The mode that ``clock`` names. Raises ValueError, which lists the modes."""
        if clock not in tuple(cls):
            raise ValueError(f"clock={clock!r}: there are {', '.join(map(repr, map(str, cls)))}")
        return cls(clock)


class ManualClock:
    """A clock that stands still until the test advances it. Milliseconds since 1970; it never goes back."""

    def __init__(self, start_ms: int) -> None:
        self._now_ms = start_ms

    def __call__(self) -> int:
        """The time (ms)."""
        return self._now_ms

    def move_to(self, at_ms: int) -> None:
        """Set the clock to ``at_ms``. Raises ValueError for a time in the past."""
        if at_ms < self._now_ms:
            raise ValueError(f"time does not go back: it is {self._now_ms} ms, and {at_ms} ms is over")
        self._now_ms = at_ms

    def seconds_until(self, at_ms: int) -> float | None:
        """0 if ``at_ms`` has passed, otherwise None, because only the test advances the clock."""
        return 0.0 if at_ms <= self._now_ms else None


class RunningClock:
    """A clock that runs by itself from ``start_ms`` (now, if None) on, ``speed`` times as fast as the wall clock."""

    def __init__(self, start_ms: int | None = None, speed: float = 1.0) -> None:
        if not speed > 0:
            raise ValueError(f"a clock runs at a speed above 0, not {speed}")
        self._speed = speed
        self._origin_ns = time.monotonic_ns()
        # Not rounded: a clock that is a fraction of a millisecond late would give records the previous millisecond.
        self._start_ns = self._origin_ns + monotonic_origin_ns() if start_ms is None else start_ms * 1_000_000

    def __call__(self) -> int:
        """The time (ms)."""
        return (self._start_ns + int((time.monotonic_ns() - self._origin_ns) * self._speed)) // 1_000_000

    def seconds_until(self, at_ms: int) -> float | None:
        """The seconds of real time until this clock shows ``at_ms``."""
        return (at_ms - self()) / 1000 / self._speed


class LoopClock:
    """The clock of an event loop, which may be simulated."""

    def __init__(self, start_ms: int, loop: asyncio.AbstractEventLoop) -> None:
        self._start_ms = start_ms
        self._loop = loop
        self._origin_s = loop.time()

    def __call__(self) -> int:
        """The time (ms)."""
        # Rounded: 0.3 s on a loop's float clock may be 299.99999999 ms, and a timer for then must find its time reached.
        return self._start_ms + int(round((self._loop.time() - self._origin_s) * 1_000_000) // 1000)

    def seconds_until(self, at_ms: int) -> float | None:
        """The seconds of the loop's time until this clock shows ``at_ms``."""
        return (at_ms - self()) / 1000


Clock = ManualClock | RunningClock | LoopClock


def make(mode: ClockMode, *, start_ms: int | None, speed: float, loop: asyncio.AbstractEventLoop) -> Clock:
    """A clock of ``mode`` that starts now, or at ``start_ms``."""
    if mode in (ClockMode.REAL, ClockMode.FAST):
        return RunningClock(start_ms, speed if mode is ClockMode.FAST else 1.0)
    start_ms = wall_clock()() if start_ms is None else start_ms
    return ManualClock(start_ms) if mode is ClockMode.MANUAL else LoopClock(start_ms, loop)


class RealTimeFetches(Layer):
    """A layer that ends waiting Fetch requests when ``max.wait.ms`` has passed in real time or on the cluster's clock.

    A broker answers the requests of a connection one by one: while a Fetch waits, all later requests of that connection wait,
    too, such as Metadata and OffsetCommit. On a clock that stands still they would wait for ever.
    """

    def __init__(self, core: ClusterCore) -> None:
        super().__init__(core)
        self._broker = core.broker
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._ending: list[TimerKey] = []

    def set_timers(self, now_ms: int, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        """Set a real-time timer, which calls ``wake``, for every waiting fetch that has none."""
        waiting = {each.key: each.at_ms for each in self._broker.timers.pending() if each.key.kind == "fetch"}
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
        """Fire the due timers, and end the fetches whose real time is over."""
        effects: list[Effect] = []
        while self._ending:
            effects += self._broker.timers.fire_early(self._ending.pop(0), now_ms)
        return effects + super().expire(now_ms)

    def next_deadline(self) -> int | None:
        """As of the inner layer; 0, which is at once, if a fetch is to end."""
        return 0 if self._ending else super().next_deadline()

    def deadline_lower_bound(self) -> int | None:
        """As of the inner layer; 0, which is at once, if a fetch is to end."""
        return 0 if self._ending else super().deadline_lower_bound()
