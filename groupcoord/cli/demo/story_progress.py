"""Lets a story of the demo wait for conditions; watches its consumer processes, and passes events to the narrator."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.errors import KafkaError

from groupcoord.cli.demo.clients.consumer_common import parse_report
from groupcoord.cli.demo.consumer_process import ConsumerProcess
from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.core.events import Event


class StoryError(Exception):
    """The story cannot go on; the text says why."""


class StoryProgress:
    """Collects events and the consumers' output. ``tell`` is called with each event in order, and returns whether it printed
    something; then it pauses for ``breath_s`` seconds, so that the audience can follow."""

    def __init__(self, observed: ObservedGroup, tell: Callable[[Event], bool], breath_s: float) -> None:
        self.observed = observed
        self.waiting_for = "the server"
        """What the story waits for, for the error text of the time limit."""
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
        """Called with each event of the server."""
        self.observed.happened(event)
        self._events.put_nowait(event)
        self._news.set()

    def read(self, reader: str, line: bytes) -> None:
        """Called with a consumer's report of what it read. Raises ValueError if ``line`` is not such a report."""
        self.observed.read(reader, parse_report(line))
        self._news.set()

    def news(self) -> None:
        """Check the awaited condition, because something else has changed."""
        self._news.set()

    # --- waiting

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for ``condition``, which is checked whenever something has changed.

        Raises StoryError if the story cannot go on, and any exception of ``tell``.
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
        """Wait until every event so far is printed."""
        await self._events.join()

    # --- running

    @asynccontextmanager
    async def within(self, time_limit_s: float) -> AsyncIterator[list[str]]:
        """Give the story in the block ``time_limit_s`` seconds. What ends it early is added to the list of problems."""
        problems: list[str] = []
        try:
            async with asyncio.timeout(time_limit_s):
                yield problems
        except TimeoutError:
            problems.append(f"the time limit of {time_limit_s:g} s was over, waiting for {self.waiting_for}")
        except StoryError as problem:
            problems.append(str(problem))
        except KafkaError as problem:
            problems.append(f"a client failed, waiting for {self.waiting_for}: {problem!r}")

    def begin(self) -> None:
        """Start to print events."""
        self.run("telling the events", self._tell_events())

    def watch(self, consumer: ConsumerProcess, told: Callable[[str, bytes], None] | None = None) -> None:
        """Watch ``consumer`` until it ends, and end it with the story; ``told`` gets its output, by default ``read``."""
        self._consumers.append(consumer)
        self._watching.append(self.run(f"watching {consumer.name}", consumer.watch(told or self.read, self._ended)))

    def run(self, what: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` in the background of the story; if it fails, the story fails."""
        task = asyncio.create_task(self._guarded(what, work))
        self._tasks.append(task)
        return task

    async def end(self) -> None:
        """End all consumers and background tasks."""
        for consumer in self._consumers:
            consumer.kill()
        await asyncio.gather(*self._watching)  # reads their last output, so that their pipes are closed
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                if self._broken is None and self._tell(event) and self._breath_s:
                    await asyncio.sleep(self._breath_s)
            except Exception as problem:  # fails the story, which must not wait for the other events
                self._break(problem)
            finally:
                self._events.task_done()

    async def _guarded(self, what: str, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as problem:  # fails the story, which may wait for this
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
