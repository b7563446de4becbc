"""Watches the demo: passes events to the narrator, watches the consumers, and waits until a condition holds."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from groupcoord.cli.demo.clients.application import ReadRecord
from groupcoord.cli.demo.consumer_process import ConsumerProcess
from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.core.events import Event


class StoryError(Exception):
    """The story cannot go on; the text says why, for people."""


class StoryMonitor:
    """Facts as they come in. ``tell`` is called with each event in its turn, and says whether it wrote something; then
    ``breath_s`` seconds pass, so that an audience can follow."""

    def __init__(self, observed: ObservedGroup, tell: Callable[[Event], bool], breath_s: float) -> None:
        self.observed = observed
        self.waiting_for = "the server"
        """What the story waits for, for the message of the time limit."""
        self._tell = tell
        self._breath_s = breath_s
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._news = asyncio.Event()
        self._broken: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._consumers: list[ConsumerProcess] = []
        self._watching: list[asyncio.Task[None]] = []

    # --- news

    def happened(self, event: Event) -> None:
        """The server says ``event``."""
        self.observed.happened(event)
        self._events.put_nowait(event)
        self._news.set()

    def read(self, reader: str, records: list[ReadRecord]) -> None:
        """A consumer says what it read."""
        self.observed.read(reader, records)
        self._news.set()

    def news(self) -> None:
        """Something else has changed: check the awaited condition."""
        self._news.set()

    # --- waiting

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for ``condition``, which is looked at whenever there is news.

        Raises StoryError if it can never come, and any exception that was raised while events were told.
        """
        self.waiting_for = what
        while True:
            if self._broken is not None:
                raise self._broken
            if condition():
                return
            self._news.clear()
            await self._news.wait()

    async def wait_until_told(self) -> None:
        """Wait until every event so far is told."""
        await self._events.join()

    # --- running

    def begin(self) -> None:
        """Begin to tell events."""
        self.run("telling the events", self._tell_events())

    def watch(self, consumer: ConsumerProcess) -> None:
        """Watch ``consumer`` until it ends, and see that it does."""
        self._consumers.append(consumer)
        self._watching.append(self.run(f"watching {consumer.name}", consumer.watch(self.read, self._ended)))

    def run(self, what: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` beside the story; if it fails, so does the story."""
        task = asyncio.create_task(self._guarded(what, work))
        self._tasks.append(task)
        return task

    async def end(self) -> None:
        """End all consumers and everything else that was begun."""
        for consumer in self._consumers:
            consumer.kill()
        await asyncio.gather(*self._watching)  # the last that they say is read, so that their pipes are closed
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                if self._broken is None and self._tell(event) and self._breath_s:
                    await asyncio.sleep(self._breath_s)
            except Exception as problem:  # the story must hear of it, and not wait for the rest to be told
                self._break(problem)
            finally:
                self._events.task_done()

    async def _guarded(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as problem:  # those that wait must hear of it
            self._break(StoryError(f"{what} failed: {problem!r}"))

    def _ended(self, consumer: ConsumerProcess) -> None:
        if not consumer.may_end:
            last_words = "".join(f"\n  {line}" for line in consumer.last_words)
            ended = f"{consumer.name} ended by itself, with code {consumer.exit_code}; its last words:{last_words}"
            self._break(StoryError(ended))
        self._news.set()

    def _break(self, why: Exception) -> None:
        self._broken = self._broken or why
        self._news.set()
