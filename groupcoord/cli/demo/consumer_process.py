"""The consumers' processes, from the outside."""

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable

from groupcoord.cli.demo.clients.application import JOIN, LEAVE, ReadRecord, Settings, parse_report

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

    async def watch(
        self, told: Callable[[str, list[ReadRecord]], None], ended: Callable[["ConsumerProcess"], None]
    ) -> None:
        """Pass on what it reads until it ends. Raises ValueError if it says something else."""
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

    def _say(self, word: str) -> None:
        if self._process.stdin is None:
            raise AssertionError("a consumer was started without stdin")
        self._process.stdin.write(f"{word}\n".encode())

    async def _reports(self, told: Callable[[str, list[ReadRecord]], None]) -> None:
        if self._process.stdout is None:
            raise AssertionError("a consumer was started without stdout")
        async for line in self._process.stdout:
            told(self.name, parse_report(line))

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
