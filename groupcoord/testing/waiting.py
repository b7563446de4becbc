"""How a test waits: for a condition of an in-process cluster (Waiting), or by polling a remote broker (``poll``);
WaitTimeoutError."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_S = 10.0
"""The default timeout of a wait: seconds of the event loop."""
PAUSE_S = 0.01
"""The pause between two polls (seconds)."""


class WaitTimeoutError(TimeoutError, AssertionError):
    """A wait timed out; the text says what was seen last."""


def limit_of(timeout: float | None) -> float:
    """``timeout``, in seconds, or the default. Raises TypeError if it is not a number."""
    if timeout is not None and not isinstance(timeout, int | float):
        raise TypeError(f"timeout={timeout!r}: a number of seconds, such as 5 or 0.5")
    return TIMEOUT_S if timeout is None else timeout


def is_true(found: object, what: str) -> bool:
    """Is the result of a condition true? Raises TypeError for that of an asynchronous function, which always would be."""
    if inspect.iscoroutine(found):
        found.close()
        raise TypeError(f"{what}: the condition is asynchronous, and would hold at once: it is called without await")
    return bool(found)


class Waiting:
    """The pending waits for conditions of a cluster. ``require_own_loop`` raises in any event loop but that of the cluster."""

    def __init__(self, require_own_loop: Callable[[], None] = lambda: None) -> None:
        self._require_own_loop = require_own_loop
        self._looks: dict[asyncio.Future[None], Callable[[], bool]] = {}

    def check_conditions(self) -> None:
        """Called when the cluster has done something: check every condition, and end the waits whose condition holds."""
        for future, holds in tuple(self._looks.items()):
            if not future.done():
                try:
                    if holds():
                        future.set_result(None)
                except Exception as error:
                    future.set_exception(error)

    async def until(
        self, condition: Callable[[], T | None], what: str, seen: Callable[[], str], *, timeout: float | None = None
    ) -> T:
        """Wait until ``condition`` returns a true value, and return that.

        Raises WaitTimeoutError, which says ``what`` did not happen and what was ``seen`` last, what ``condition`` raises, and
        TypeError for a ``condition`` that is asynchronous.
        """
        self._require_own_loop()
        limit_s = limit_of(timeout)
        found: list[T] = []

        def holds() -> bool:
            result = condition()
            if result is not None and is_true(result, what):
                found.append(result)
            return bool(found)

        if not holds():
            future = asyncio.get_running_loop().create_future()
            self._looks[future] = holds
            try:
                async with asyncio.timeout(limit_s):
                    await future
            except TimeoutError:
                raise WaitTimeoutError(f"{what}: not within {limit_s:g} s. {seen()}") from None
            finally:
                del self._looks[future]
        return found[0]


async def poll(
    ask: Callable[[], Awaitable[T]],
    enough: Callable[[T], bool],
    what: str,
    seen: Callable[[T], str],
    *,
    timeout: float | None = None,
) -> T:
    """Call ``ask`` until ``enough`` is true of its result, and return that.

    Raises WaitTimeoutError, which says ``what`` did not happen and what was ``seen`` last, and what ``ask`` and ``enough``
    raise.
    """
    loop, limit_s = asyncio.get_running_loop(), limit_of(timeout)
    end_s = loop.time() + limit_s
    while not is_true(enough(answer := await ask()), what):
        if loop.time() >= end_s:
            raise WaitTimeoutError(f"{what}: not within {limit_s:g} s. {seen(answer)}")
        await asyncio.sleep(PAUSE_S)
    return answer
