"""A quiet client beside greedy ones: it asks now and then, they send thousands of requests ahead. How long does it wait?

On a busy machine a server also waits until it is given a processor. That time, as Linux tells it, does not count.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import MetadataRequest
from tests.reliability.child_server import Member, child_server, request
from tests.reliability.outcome import Outcome

CLIENTS = 300
REQUESTS = 2_000
BOUND_MS = 50.0
"""No quiet client waits longer. Kafka's worst was 38 ms."""

SECONDS = 10.0
_EVERY_MS = 5


def attack(
    count: int = CLIENTS,
    seed: int = 0,
    *,
    requests: int = REQUESTS,
    seconds: float = SECONDS,
    bound_ms: float = BOUND_MS,
) -> Outcome:
    """So many clients that send so many Metadata ``requests`` ahead, and a quiet one, for ``seconds``. No chance in it."""
    with child_server("--topic", "orders:6") as server:
        waits = measure(server.port, count, requests, seconds, [server.process.pid, os.getpid()])
    worst, usual = max(wait.server_ms for wait in waits), median(wait.server_ms for wait in waits)
    with_machine = max(wait.all_ms for wait in waits)
    problems = (f"the quiet client waited {worst:.0f} ms for a heartbeat",) if worst >= bound_ms else ()
    return Outcome(
        attack="fairness",
        tried=f"{count} clients that send {requests:,} Metadata requests each at once, and {len(waits):,} heartbeats",
        result=f"a heartbeat waits {worst:.0f} ms at worst (bound {bound_ms:.0f} ms), {usual:.1f} ms in the median; "
        f"{with_machine:.0f} ms at worst with what the machine let the server wait",
        problems=problems,
    )


class Wait(NamedTuple):
    """How long a heartbeat took (ms), and how long of that it was not the machine that let it wait."""

    all_ms: float
    server_ms: float


def measure(port: int, clients: int, requests: int, seconds: float, processes: Sequence[int] = ()) -> list[Wait]:
    """The heartbeats of a quiet client, from when the greedy ones begin, for so many seconds.

    ``processes`` are those whose waiting for a processor does not count.
    """
    member = Member(port, "quiet", session_ms=30_000)
    with contextlib.closing(member.wire), greedy_clients(port, clients, requests) as go:
        end = time.monotonic() + seconds
        waits: list[Wait] = []
        go()
        while not waits or time.monotonic() < end:
            machine_before_ms, asked = _waited_for_processor_ms(processes), time.monotonic()
            member.send_heartbeat()
            member.is_member()
            all_ms = (time.monotonic() - asked) * 1_000
            machine_ms = zip(_waited_for_processor_ms(processes), machine_before_ms, strict=True)
            # The longest, not the sum: they may have waited at the same time.
            waits.append(Wait(all_ms, all_ms - max((after - before for after, before in machine_ms), default=0.0)))
            member.wire.receive(_EVERY_MS)  # nothing comes: what makes it a quiet one is the time that passes
    return waits


def _waited_for_processor_ms(processes: Sequence[int]) -> list[float]:
    """For each of them how long it could have run and did not, since it began; 0 where the system does not tell."""
    try:
        said = [Path(f"/proc/{process}/schedstat").read_text(encoding="ascii") for process in processes]
    except FileNotFoundError:
        return [0.0] * len(processes)
    return [int(line.split()[1]) / 1e6 for line in said]


@contextlib.contextmanager
def greedy_clients(port: int, clients: int, requests: int) -> Iterator[Callable[[], None]]:
    """Greedy clients, in a process of their own until the block ends; call what it gives to let them loose."""
    frame = request(ApiKey.METADATA, MetadataRequest(topics=None))
    program = Path(__file__).with_name("greedy.py")
    command = [sys.executable, str(program), str(port), str(clients), str(requests), frame.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            stdin = process.stdin
            process.stdout.readline()  # they are connected

            def go() -> None:
                stdin.write("go\n")
                stdin.flush()

            yield go
        finally:
            process.kill()
