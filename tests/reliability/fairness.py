"""A quiet client beside greedy ones: it asks now and then, they send thousands of requests ahead. How long does it wait?"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import MetadataRequest
from tests.reliability.child_server import Member, child_server, request
from tests.reliability.outcome import Outcome

CLIENTS = 300
REQUESTS = 2_000
BOUND_MS = 50.0
"""No quiet client waits longer. Kafka's worst was 38 ms."""

SECONDS = 10.0
_EVERY_SECONDS = 0.005


def attack(
    count: int = CLIENTS,
    seed: int = 0,
    *,
    requests: int = REQUESTS,
    seconds: float = SECONDS,
    bound_ms: float = BOUND_MS,
) -> Outcome:
    """``count`` clients that send so many Metadata ``requests`` ahead, beside a quiet one, for ``seconds``; ``seed`` is unused."""
    with child_server("--topic", "orders:6") as server:
        waits_ms = measure(server.port, count, requests, seconds)
    worst, usual = max(waits_ms), median(waits_ms)
    problems = (f"the quiet client waited {worst:.0f} ms for a heartbeat",) if worst >= bound_ms else ()
    return Outcome(
        attack="fairness",
        tried=f"{count} clients that send {requests:,} Metadata requests each at once, and {len(waits_ms):,} heartbeats",
        result=f"a heartbeat waits {worst:.0f} ms at worst (bound {bound_ms:.0f} ms), {usual:.1f} ms in the median",
        problems=problems,
    )


def measure(port: int, clients: int, requests: int, seconds: float) -> list[float]:
    """How long each heartbeat of a quiet client waits (ms), from when the greedy ones begin, for so many seconds."""
    member = Member(port, "quiet", session_ms=30_000)
    with contextlib.closing(member.wire), greedy_clients(port, clients, requests) as go:
        end = time.monotonic() + seconds
        waits_ms: list[float] = []
        go()
        while not waits_ms or time.monotonic() < end:
            asked = time.monotonic()
            member.send_heartbeat()
            member.is_member()
            waits_ms.append((time.monotonic() - asked) * 1_000)
            time.sleep(_EVERY_SECONDS)  # what makes it a quiet one
    return waits_ms


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
