"""Retries a step of a manual producer while a remote broker is not ready for it."""

import asyncio
from collections.abc import Callable
from typing import Any

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.waiting import poll


def codes(answer: Any) -> set[ErrorCode]:
    """The error codes in what a step of a ManualProducer returns."""
    return set(map(ErrorCode, answer.values() if isinstance(answer, dict) else [answer.error_code]))


async def done(step: Callable[[], "asyncio.Future[Any]"]) -> Any:
    """The answer that says that it is done."""

    async def ask() -> Any:
        return await step()

    answer = await poll(ask, lambda said: not all(code.retriable for code in codes(said)), "it should be done", repr)
    assert codes(answer) == {ErrorCode.NONE}, answer
    return answer
