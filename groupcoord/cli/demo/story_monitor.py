"""Runs the demo: the processes of its consumers, the events told to the narrator, and waiting until a condition holds."""

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
"""Lines of a consumer's stderr that are kept, in case it has to be explained why it ended."""


class ConsumerProcess:
    """One consumer in a process of its own, which ends when this process does (see ``application.Parent``)."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.last_words: deque[str] = deque(maxlen=KEPT_STDERR_LINES)
        self.may_end = False
        """Is it meant to end? If not, its end is a failure of the show."""
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    async def watch(self, told: Callable[[str, bytes], None], ended: Callable[["ConsumerProcess"], None]) -> None:
        """Pass on the lines that it says until it ends."""
        await asyncio.gather(self._reports(told), self._complaints())
        await self._process.wait()
        ended(self)

    def join(self) -> None:
        """Let it join the group."""
        self._say(JOIN)

    def leave(self) -> None:
        """Let it close its client and end."""
        self.may_end = True
        self._say(LEAVE)

    def kill(self) -> None:
        """End it at once, with SIGKILL: it sends no LeaveGroup."""
        self.may_end = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def wake(self) -> None:
        """Let it go on, if it is stopped (SIGSTOP)."""
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
    """Start the client program ``module``; it waits for ``join`` with its libraries loaded.

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

    def read(self, reader: str, line: bytes) -> None:
        """A consumer says what it read. Raises ValueError if it says something else."""
        self.observed.read(reader, parse_report(line))
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

    def watch(self, consumer: ConsumerProcess, told: Callable[[str, bytes], None] | None = None) -> None:
        """Watch ``consumer`` until it ends, and see that it does; ``told`` gets what it says, if that is not what it read."""
        self._consumers.append(consumer)
        self._watching.append(self.run(f"watching {consumer.name}", consumer.watch(told or self.read, self._ended)))

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
