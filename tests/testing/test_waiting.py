"""A wait ends when its condition holds, looks only when it is told to, and says what it saw."""

import asyncio

import pytest

from groupcoord.testing.waiting import Waiting, WaitTimeoutError, poll

pytestmark = pytest.mark.asyncio


async def test_what_holds_already_is_not_waited_for() -> None:
    assert await Waiting().until(lambda: 7, "it should be 7", lambda: "") == 7


async def test_a_condition_is_looked_at_when_something_happened() -> None:
    waiting, state = Waiting(), [0]
    wait = asyncio.ensure_future(waiting.until(lambda: state[0] or None, "it should happen", lambda: ""))
    await asyncio.wait([wait], timeout=0)
    waiting.check_conditions()
    state[0] = 3
    await asyncio.wait([wait], timeout=0)
    assert not wait.done()
    waiting.check_conditions()
    waiting.check_conditions()
    assert await wait == 3


async def test_an_error_of_the_condition_is_raised_to_who_waits() -> None:
    waiting, looks = Waiting(), [0]

    def fails() -> None:
        looks[0] += 1
        if looks[0] > 1:
            raise LookupError("no such thing")

    wait: asyncio.Future[None] = asyncio.ensure_future(waiting.until(fails, "it should happen", lambda: ""))
    await asyncio.wait([wait], timeout=0)
    waiting.check_conditions()
    with pytest.raises(LookupError, match="no such thing"):
        await wait


async def test_a_wait_in_vain_says_what_was_seen() -> None:
    with pytest.raises(WaitTimeoutError, match=r"it should happen: not within 0\.01 s\. It is raining"):
        await Waiting().until(lambda: None, "it should happen", lambda: "It is raining", timeout=0.01)


async def test_until_the_answer_is_enough() -> None:
    answers = iter(range(10))

    async def ask() -> int:
        return next(answers)

    assert await poll(ask, lambda answer: answer == 2, "it should be 2", str) == 2
    with pytest.raises(WaitTimeoutError, match=r"it should be 0: not within 0 s\. It was 3"):
        await poll(ask, lambda answer: answer == 0, "it should be 0", lambda answer: f"It was {answer}", timeout=0)


async def test_an_asynchronous_condition_does_not_hold_at_once() -> None:
    async def condition() -> bool:
        return False

    with pytest.raises(TypeError, match="it should happen: the condition is asynchronous"):
        await Waiting().until(condition, "it should happen", lambda: "")  # type: ignore[unused-coroutine]


async def test_a_timeout_is_a_number() -> None:
    with pytest.raises(TypeError, match="timeout='5s': a number of seconds"):
        await Waiting().until(lambda: None, "it should happen", lambda: "", timeout="5s")  # type: ignore[arg-type]
