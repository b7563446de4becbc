"""A quiet client beside an attack, in a process of its own: it asks now and then, and measures what it waits for each answer.

``python -m tests.reliability.quiet WHAT PORT PID`` asks until its stdin ends. A line of stdin, ``[count, seconds]``, is
answered when so much more was asked, and for so long.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from groupcoord.protocol.messages import ApiVersionsRequest
from tests.conformance.batches import batch
from tests.reliability.requests import commit, commit_errors, create, describe, fetch, fetched, joined, produce, stored
from tests.reliability.served import Served
from tests.reliability.talk import Talk

TOPIC = "side"
"""What ``use`` is about: the topic, and the group."""
PAUSE_SECONDS = 0.005
_HELLO = ApiVersionsRequest(client_software_name="quiet", client_software_version="1")


class Wait(NamedTuple):
    """How long an answer took (ms), and how long of that it was not the machine that let server or client wait."""

    all_ms: float
    server_ms: float


class Quiet:
    """That client, while its block runs; afterwards what it saw. ``what`` is one of ``ASKS``."""

    def __init__(self, server: Served, what: str = "hello") -> None:
        self.waits: list[Wait] = []
        self.rounds = 0
        self.problem: str | None = None
        """What went wrong; it has asked nothing more since."""
        self._command = [sys.executable, "-m", __name__, what, str(server.address[1]), str(server.process.pid)]

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        self.ask_on(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._take(self._process.communicate()[0])

    @property
    def longest_ms(self) -> float:
        """The longest it has waited for one answer."""
        return max((wait.all_ms for wait in self.waits), default=0.0)

    def ask_on(self, count: int, seconds: float = 0.0) -> list[Wait]:
        """Wait until it has asked so often and for so long; what it waited meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([count, seconds])}\n")
        self._process.stdin.flush()
        return self._take(self._process.stdout.readline())

    def _take(self, said: str) -> list[Wait]:
        waits, self.rounds, self.problem = json.loads(said)
        self.waits = [Wait(*wait) for wait in waits]
        return self.waits


class _Asking:
    """What the process does."""

    def __init__(self, talk: Talk, server: int) -> None:
        self.waits: list[Wait] = []
        self._talk = talk
        self._processes = (str(server), "self")

    def ask(self, request: Any) -> Any:
        """The answer, and one wait more."""
        machine_before_ms, asked = self._machine_ms(), time.perf_counter()
        answer = self._talk.ask(request)
        all_ms = (time.perf_counter() - asked) * 1_000
        machine_ms = zip(self._machine_ms(), machine_before_ms, strict=True)
        # The longest, not the sum: they may have waited at the same time.
        self.waits.append(Wait(all_ms, all_ms - max(after - before for after, before in machine_ms)))
        return answer

    def _machine_ms(self) -> list[float]:
        """For both processes how long they could have run and did not, since they began; 0 where the system does not tell."""
        try:
            said = [Path(f"/proc/{process}/schedstat").read_text(encoding="ascii") for process in self._processes]
        except FileNotFoundError:
            return [0.0, 0.0]
        return [int(line.split()[1]) / 1e6 for line in said]

    # What one round consists of.

    def hello(self, _: int) -> None:
        """What every client asks first."""
        self.ask(_HELLO)

    def heartbeat(self, number: int) -> None:
        """As a member of a group."""
        if not number:
            self._member = joined(self._talk, "quiet", 30_000)
        self.ask(self._member.heartbeat())

    def use(self, number: int) -> None:
        """Look up a topic, write into it, read that, commit it. Raises AssertionError."""
        if not number:
            self._talk.ask(create(TOPIC, 1))
        value = b"%d" % number
        self.ask(_HELLO)
        about = self.ask(describe(TOPIC)).topics[0]
        assert about.error_code == 0, about
        written = stored(self.ask(produce(TOPIC, {0: batch([value])})))
        assert written.error_code == 0, written
        read = fetched(self.ask(fetch(TOPIC, 0, offset=written.base_offset, max_bytes=10_000)))
        assert value in read.records, read
        done = self.ask(commit(TOPIC, TOPIC, {0: written.base_offset}))
        assert commit_errors(done) == {0}, done


ASKS: dict[str, Callable[[_Asking, int], None]] = {
    "hello": _Asking.hello,
    "heartbeat": _Asking.heartbeat,
    "use": _Asking.use,
}


def main(what: str, port: int, server: int) -> None:
    """Rounds until stdin ends."""
    rounds, problem = 0, None
    wanted: tuple[int, int, float] | None = None
    with Talk(("127.0.0.1", port)) as talk:
        asking = _Asking(talk, server)
        while True:
            if select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
                line = sys.stdin.readline()
                if not line:
                    break
                count, seconds = json.loads(line)
                wanted = len(asking.waits), len(asking.waits) + count, time.monotonic() + seconds
            if problem is None:
                try:
                    ASKS[what](asking, rounds)
                    rounds += 1
                except (OSError, AssertionError) as error:
                    problem = f"in round {rounds}: {error!r}"
            if wanted and (problem or (len(asking.waits) >= wanted[1] and time.monotonic() >= wanted[2])):
                sys.stdout.write(f"{json.dumps([asking.waits[wanted[0] :], rounds, problem])}\n")
                sys.stdout.flush()
                wanted = None
    sys.stdout.write(json.dumps([asking.waits, rounds, problem]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
