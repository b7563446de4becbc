"""Runs the processes of the demo's consumers, passes events to the narrator, and lets the story wait for conditions."""

import asyncio
import contextlib
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from groupcoord.cli.demo.clients.consumer_common import JOIN, LEAVE, Settings, parse_report
from groupcoord.cli.demo.observed_group import ObservedGroup
from groupcoord.core.events import Event

KEPT_STDERR_LINES = 12
"""How many lines of a consumer's stderr are kept, for the report if it ends unexpectedly."""


class ConsumerProcess:
    """One consumer in a process of its own, which ends when this process does (see ``consumer_common.Parent``)."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.last_words: deque[str] = deque(maxlen=KEPT_STDERR_LINES)
        self.may_end = False
        """Is it meant to end? If not, its end fails the demo."""
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def watch(self, told: Callable[[str, bytes], None], ended: Callable[["ConsumerProcess"], None]) -> None:
        """Pass its output, line by line, to ``told`` until it ends; then call ``ended``."""
        await asyncio.gather(self._reports(told), self._complaints())
        await self._process.wait()
        ended(self)

    def join(self) -> None:
        """Make it join the group."""
        self._say(JOIN)

    def leave(self) -> None:
        """Make it close its client and end."""
        self.may_end = True
        self._say(LEAVE)

    def kill(self) -> None:
        """Kill it with SIGKILL: it sends no LeaveGroup."""
        self.may_end = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def wake(self) -> None:
        """Resume it (SIGCONT) if it is stopped (SIGSTOP)."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)

    def _say(self, word: str) -> None:
        if self._process.stdin is None:
            raise AssertionError("a consumer was started without stdin")
        self._process.stdin.write(f"{word}\n".encode())

    async def _reports(self, told: Callable[[str, bytes], None]) -> None:
        if self._process.stdout is None:
            raise AssertionError("a consumer was started without stdout")
        async for line in self._process.stdout:
            told(self.name, line)

    async def _complaints(self) -> None:
        if self._process.stderr is None:
            raise AssertionError("a consumer was started without stderr")
        async for line in self._process.stderr:
            self.last_words.append(line.decode(errors="replace").rstrip())


async def start_consumer(module: str, settings: Settings) -> ConsumerProcess:
    """Start the client program ``module``, which imports its libraries and waits for ``join``.

    It gets a session of its own, so that ctrl-C at the terminal reaches only this process, which then ends it.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"groupcoord.cli.demo.clients.{module}",
        *settings.arguments(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    return ConsumerProcess(settings.client_id, process)


class StoryError(Exception):
    """The story cannot go on; the text says why."""


class StoryRunner:
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
