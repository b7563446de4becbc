"""Waiting for a broker elsewhere, which tells nobody that something has changed: it is asked again and again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from groupcoord.testing.waiting import TIMEOUT_S, WaitTimeoutError

T = TypeVar("T")

PAUSE_S = 0.01
"""Between an answer and the next question: seconds."""


async def poll(
    ask: Callable[[], Awaitable[T]],
    enough: Callable[[T], bool],
    what: str,
    seen: Callable[[T], str],
    *,
    timeout_s: float | None = None,
) -> T:
    """``ask`` until ``enough`` holds of the answer, and return that.

    Raises WaitTimeoutError that says ``what`` did not happen and what was ``seen`` last, and what ``ask`` and ``enough`` raise.
    """
    loop, limit_s = asyncio.get_running_loop(), TIMEOUT_S if timeout_s is None else timeout_s
    end_s = loop.time() + limit_s
    while not enough(answer := await ask()):
        if loop.time() >= end_s:
            raise WaitTimeoutError(f"{what}: not within {limit_s:g} s. {seen(answer)}")
        await asyncio.sleep(PAUSE_S)
    return answer
