"""VirtualTimeLoop, an event loop with simulated time, on which a whole asyncio program runs, unmodified clients included: a day
takes seconds::

    @virtual_time
    async def test_a_day():
        async with Cluster(topics={"orders": 6}, clock="virtual") as kafka:
            ...
            await asyncio.sleep(86_400)

When no task can run, the clock jumps to the next timer. While a thread of the loop's executor works, time stands still. While
the loop runs, ``time.time``, ``time.monotonic`` and their ``_ns`` variants return the simulated time in the whole process;
libraries that imported these functions earlier (``from time import time``) get the real time.
"""

import asyncio
import contextvars
import functools
import math
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_MICRO = 1e6
_ROUND_S = 1e-6
"""The simulated duration of one round of the loop, so that a loop that polls the clock until a given time ends."""
_RESOLUTION_S = 1e-9
_FLOAT_ERROR = 1e-3  # in microseconds: the rounding error of float sums of days


class DeadlockError(RuntimeError):
    """Every task waits, no timer is set, and no thread works."""


class _Selector(selectors.DefaultSelector):
    """A selector that never waits: it polls the sockets, and advances the simulated time instead of waiting."""

    def __init__(self, loop: "VirtualTimeLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The sockets that are ready; if none is, the simulated time advances by ``timeout`` seconds at once."""
        found = super().select(0)
        loop = self._loop
        loop.pass_time(_ROUND_S)
        if found or timeout == 0:
            return found
        if loop.threads_at_work:
            return super().select(None)  # the thread wakes the loop when it is done
        if timeout is None:
            raise DeadlockError("every task waits, and there is no timer that could change that")
        loop.pass_time(timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with simulated time in whole microseconds, which starts at ``start_s`` (seconds since 1970)."""

    def __init__(self, start_s: float) -> None:
        self._now_us = 0
        self.start_s = start_s
        self.threads_at_work = 0
        super().__init__(_Selector(self))
        self._clock_resolution = _RESOLUTION_S

    def time(self) -> float:
        """Simulated seconds since the loop was created."""
        return self._now_us / _MICRO

    def pass_time(self, seconds: float) -> None:
        """Advance the simulated time by ``seconds``."""
        self._now_us += round(seconds * _MICRO)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As in any loop, but at the first whole microsecond that is not before ``when``.

        Otherwise a task that sleeps until a deadline could wake just before it, again and again, while time stands still.
        """
        at_us = math.ceil(when * _MICRO - _FLOAT_ERROR)
        if at_us <= self._now_us and when > self.time():
            at_us = self._now_us + 1
        return super().call_at(at_us / _MICRO, callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        """As in any loop; time stands still until the function is done."""
        future = super().run_in_executor(executor, func, *args)
        self.threads_at_work += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, *arguments: Any) -> None:
        """As in any loop; time stands still while its helper thread works."""
        self.threads_at_work += 1
        try:
            await super().shutdown_default_executor(*arguments)
        finally:
            self.threads_at_work -= 1

    def _thread_done(self, _: object) -> None:
        self.threads_at_work -= 1


@contextmanager
def _shown_by_time(loop: VirtualTimeLoop) -> Iterator[None]:
    """Patch the functions of the module ``time`` to return the time of ``loop``."""
    shown: dict[str, Callable[[], float]] = {
        "time": lambda: loop.start_s + loop.time(),
        "time_ns": lambda: round((loop.start_s + loop.time()) * 1e6) * 1000,
        "monotonic": loop.time,
        "monotonic_ns": lambda: round(loop.time() * 1e6) * 1000,
    }
    before = {name: getattr(time, name) for name in shown}
    for name, function in shown.items():
        setattr(time, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(time, name, function)


def run(main: Coroutine[Any, Any, T], *, start_s: float | None = None) -> T:
    """Run ``main`` on a new loop with simulated time, which starts now or at ``start_s`` (seconds since 1970).

    Raises what ``main`` raises, and DeadlockError.
    """
    begin = time.time() if start_s is None else start_s
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(begin)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        with _shown_by_time(loop):
            return runner.run(main)


def virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Decorator that makes an asynchronous test a synchronous one that runs on simulated time, without an asyncio plugin."""

    @functools.wraps(test)
    def synchronous(*arguments: P.args, **named: P.kwargs) -> T:
        return run(test(*arguments, **named))

    return synchronous
