"""One client in a loop of what makes a line each: how much log is that in an hour?"""

import contextlib
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.wire import Connection
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.messages import JoinGroupRequest, LeaveGroupRequest
from groupcoord.protocol.messages.join_group import JoinGroupRequestProtocol
from groupcoord.protocol.messages.leave_group import MemberIdentity
from tests.reliability.a_server import a_server, commit, refused, size_of
from tests.reliability.outcome import Outcome

MOST_BYTES = 150_000
"""Of text in ten seconds, for there are arrows in it: 54 MB an hour."""
_INTERVAL_SECONDS = 10

Loop = Callable[[Connection, int], object]


def _join(peer: Connection, number: int) -> None:
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    group = f"group-{number}"
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )
    member = peer.ask(ApiKey.JOIN_GROUP, request, 3).member_id
    peer.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member),)))


LOOPS: dict[str, Loop] = {
    "refused heartbeats": lambda peer, _: refused(peer, "app"),
    "refused heartbeats of new groups": lambda peer, number: refused(peer, f"group-{number}"),
    "commits": lambda peer, number: commit(peer, "app", {0: number}),
    "joins of new groups": _join,
}


def flood(folder: Path, name: str, loop: Loop, count: int, style: str) -> tuple[float, list[str]]:
    """(bytes in an interval, what is wrong)."""
    logs = folder / f"{name} {style}"
    logs.mkdir()
    options = ("--log-format", style, "--log-file", str(logs / "log"), "-c", "group.initial.rebalance.delay.ms=0")
    with a_server(folder / f"{name} {style} data", "--topic", "orders", *options) as server:
        began = time.monotonic()
        with contextlib.closing(Connection(server.port)) as peer:
            for number in range(count):
                loop(peer, number)
        server.process.terminate()
        server.process.wait(60)
        intervals = (time.monotonic() - began) // _INTERVAL_SECONDS + 1
    said = "".join(log.read_text(encoding="utf-8") for log in logs.iterdir())
    folded = sum(int(number.replace(",", "")) for number in re.findall(r"… ([\d,]+) more in", said))
    problems = []
    if size_of(logs) / intervals > MOST_BYTES:
        problems.append(f"{name} ({style}): {size_of(logs):,} bytes in {intervals * _INTERVAL_SECONDS:.0f} s")
    if said.count("\n") + folded < count:
        problems.append(f"{name} ({style}): {count} of them, {said.count(chr(10))} lines and {folded} that were folded")
    return size_of(logs) / intervals, problems


def attack(count: int, seed: int) -> Outcome:
    """``count`` requests of each kind, in both forms of the log; there is no chance in it."""
    del seed
    problems: list[str] = []
    largest = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        for style in ("text", "json"):
            for name, loop in LOOPS.items():
                size, wrong = flood(Path(temporary), name, loop, count, style)
                largest = max(largest, size)
                problems += wrong
    return Outcome(
        attack="log flood",
        tried=f"{count} of each of {', '.join(LOOPS)}, one after the other, text and JSON",
        result=f"at most {largest * 3_600 / _INTERVAL_SECONDS / 1e6:.0f} MB of log an hour, of "
        f"{MOST_BYTES * 3_600 / _INTERVAL_SECONDS / 1e6:.0f} allowed",
        problems=tuple(problems),
    )
