"""ConsumerProcess: a consumer of the demo in a process of its own, started by ``start_consumer``."""

import asyncio
import contextlib
import signal
import sys
from collections import deque
from collections.abc import Callable

from groupcoord.cli.demo.clients.consumer_common import JOIN, LEAVE, Settings

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
