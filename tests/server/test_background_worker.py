"""What takes long is done in a thread, a piece at a time and in turns, and what comes of it is heard of in the loop."""

import asyncio
import sys
import threading
from typing import Any

import pytest

from groupcoord.core.background_work import BackgroundWork
from groupcoord.core.effects import Call
from groupcoord.server.background_worker import SWITCH_SECONDS, BackgroundWorker, WorkOutcome
from tests.server.sockets import Run
from tests.server.support import PRODUCE

USUAL = sys.getswitchinterval()


def call(number: int) -> Call:
    return Call(number, 1, PRODUCE, 9, "c", "/127.0.0.1")


def pieces(name: str, count: int, seen: list[Any]) -> BackgroundWork[str]:
    for number in range(count):
        seen.append((name, number, threading.current_thread().name))
        yield
    return name


def failing() -> BackgroundWork[str]:
    yield
    raise RuntimeError("no")


class Stage:
    """A worker, and what it told."""

    def __init__(self) -> None:
        self.outcomes: list[WorkOutcome] = []
        self.told = asyncio.Event()
        self.worker = BackgroundWorker(asyncio.get_running_loop(), self.done)

    def done(self, outcome: WorkOutcome) -> None:
        self.outcomes.append(outcome)
        self.told.set()

    async def outcome(self, number: int) -> WorkOutcome:
        while len(self.outcomes) <= number:
            self.told.clear()
            await self.told.wait()
        return self.outcomes[number]


def test_those_who_wait_take_turns(run: Run) -> None:
    async def story() -> None:
        stage, seen = Stage(), list[Any]()
        stage.worker.submit(call(1), pieces("long", 3, seen), lambda _, __: [])
        stage.worker.submit(call(2), pieces("short", 1, seen), lambda _, __: [])
        assert (await stage.outcome(0)).result == "short"
        assert (await stage.outcome(1))[::2] == (call(1), "long")
        assert [(name, number) for name, number, _ in seen] == [("long", 0), ("short", 0), ("long", 1), ("long", 2)]
        assert {thread for _, _, thread in seen} == {"groupcoord-worker"}
        stage.worker.submit(call(3), pieces("later", 0, seen), lambda _, __: [])
        assert (await stage.outcome(2)).result == "later"
        stage.worker.stop()

    run(story())


def test_what_goes_wrong_is_told(run: Run) -> None:
    async def story() -> None:
        stage = Stage()
        stage.worker.submit(call(1), failing(), lambda _, __: [])
        outcome = await stage.outcome(0)
        assert (outcome.result, str(outcome.error)) == (None, "no")
        stage.worker.stop()

    run(story())


def test_the_interpreter_is_given_back_soon_while_there_is_work(run: Run) -> None:
    async def story() -> None:
        stage, seen = Stage(), list[float]()

        def looking() -> BackgroundWork[None]:
            seen.append(sys.getswitchinterval())
            yield

        stage.worker.submit(call(1), looking(), lambda _, __: [])
        await stage.outcome(0)
        assert seen == [pytest.approx(SWITCH_SECONDS)]
        assert sys.getswitchinterval() == USUAL
        stage.worker.stop()

    run(story())


def test_when_it_stops_nothing_is_begun_or_told(run: Run) -> None:
    async def story() -> None:
        stage, seen = Stage(), list[Any]()
        begun, may_go_on = threading.Event(), threading.Event()

        def held() -> BackgroundWork[None]:
            begun.set()
            may_go_on.wait()
            yield

        stage.worker.submit(call(1), held(), lambda _, __: [])
        stage.worker.submit(call(2), pieces("never", 1, seen), lambda _, __: [])
        begun.wait()
        stage.worker.stop()
        may_go_on.set()
        assert stage.worker._thread is not None
        await asyncio.to_thread(stage.worker._thread.join)
        ctx = asyncio.Event()
        asyncio.get_running_loop().call_soon(ctx.set)  # behind what the thread has left to be told
        await ctx.wait()
        assert (seen, stage.outcomes) == ([], [])

    run(story())


def test_a_loop_that_is_closed_does_not_matter() -> None:
    loop = asyncio.new_event_loop()
    begun, may_go_on = threading.Event(), threading.Event()

    def held() -> BackgroundWork[None]:
        begun.set()
        may_go_on.wait()
        yield

    worker = BackgroundWorker(loop, lambda _: None)
    worker.submit(call(1), held(), lambda _, __: [])
    begun.wait()
    loop.close()
    worker.stop()
    may_go_on.set()
    assert worker._thread is not None
    worker._thread.join()
