"""Asking again and again."""

import pytest

from groupcoord.testing import WaitTimeoutError
from groupcoord.testing.polling import poll

pytestmark = pytest.mark.asyncio


async def test_until_the_answer_is_enough() -> None:
    answers = iter(range(10))

    async def ask() -> int:
        return next(answers)

    assert await poll(ask, lambda answer: answer == 2, "it should be 2", str) == 2
    with pytest.raises(WaitTimeoutError, match=r"it should be 0: not within 0 s\. It was 3"):
        await poll(ask, lambda answer: answer == 0, "it should be 0", lambda answer: f"It was {answer}", timeout_s=0)
