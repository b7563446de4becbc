"""A quiet client beside greedy ones: it asks now and then, they send thousands of requests ahead. How long does it wait?

On a busy machine a server also waits until it is given a processor. That time, as Linux tells it, does not count.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from groupcoord.protocol.messages import MetadataRequest
from tests.reliability.outcome import Outcome
from tests.reliability.quiet import Quiet
from tests.reliability.served import Served, served
from tests.reliability.talk import frame_of

CLIENTS = 300
REQUESTS = 2_000
BOUND_MS = 50.0
"""No quiet client waits longer. Kafka's worst was 38 ms."""

SECONDS = 10.0


def attack(
    count: int = CLIENTS,
    seed: int = 0,
    *,
    requests: int = REQUESTS,
    seconds: float = SECONDS,
    bound_ms: float = BOUND_MS,
) -> Outcome:
    """So many clients that send so many Metadata ``requests`` ahead, and a quiet one, for ``seconds``. No chance in it."""
    with (
        served("--quiet", "--dev", "--topic", "orders:6") as server,
        Quiet(server, "heartbeat") as quiet,
        greedy_clients(server, count, requests) as go,
    ):
        go()
        waits = quiet.ask_on(1, seconds)
    worst, usual = max(wait.server_ms for wait in waits), median(wait.server_ms for wait in waits)
    with_machine = max(wait.all_ms for wait in waits)
    problems = [f"the quiet client waited {worst:.0f} ms for a heartbeat"] if worst >= bound_ms else []
    problems += [f"the quiet client: {quiet.problem}"] if quiet.problem else []
    return Outcome(
        tried=f"{count} clients that send {requests:,} Metadata requests each at once, and {len(waits):,} heartbeats",
        result=f"a heartbeat waits {worst:.0f} ms at worst (bound {bound_ms:.0f} ms), {usual:.1f} ms in the median; "
        f"{with_machine:.0f} ms at worst with what the machine let the server wait",
        problems=tuple(problems),
    )


@contextlib.contextmanager
def greedy_clients(server: Served, clients: int, requests: int) -> Iterator[Callable[[], None]]:
    """Greedy clients, in a process of their own until the block ends; call what it gives to let them loose."""
    frame = frame_of(MetadataRequest(topics=None))
    program = Path(__file__).with_name("greedy.py")
    command = [sys.executable, str(program), str(server.address[1]), str(clients), str(requests), frame.hex()]
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
