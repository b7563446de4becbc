"""How a test waits: for a condition of an in-process cluster (Waiting), or by polling a remote broker (``poll``);
WaitTimeoutError."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_S = 10.0
"""The default timeout of a wait: seconds of the event loop."""
PAUSE_S = 0.01
"""The pause between two polls (seconds)."""


class WaitTimeoutError(TimeoutError, AssertionError):
    """A wait timed out; the text says what was seen last."""


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

        Raises WaitTimeoutError, which says ``what`` did not happen and what was ``seen`` last, and what ``condition`` raises.
        """
        self._require_own_loop()
        found: list[T] = []

        def holds() -> bool:
            result = condition()
            if result:
                found.append(result)
            return bool(found)

        if not holds():
            future = asyncio.get_running_loop().create_future()
            self._looks[future] = holds
            limit = TIMEOUT_S if timeout is None else timeout
            try:
                async with asyncio.timeout(limit):
                    await future
            except TimeoutError:
                raise WaitTimeoutError(f"{what}: not within {limit:g} s. {seen()}") from None
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
    loop, limit_s = asyncio.get_running_loop(), TIMEOUT_S if timeout is None else timeout
    end_s = loop.time() + limit_s
    while not enough(answer := await ask()):
        if loop.time() >= end_s:
            raise WaitTimeoutError(f"{what}: not within {limit_s:g} s. {seen(answer)}")
        await asyncio.sleep(PAUSE_S)
    return answer
