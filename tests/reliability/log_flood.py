"""One client in a loop of what makes a line each: how much log is that in an hour?"""

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.reliability.outcome import Outcome
from tests.reliability.requests import Membership, commit, join, refused
from tests.reliability.served import served, size_of
from tests.reliability.talk import Talk

MOST_BYTES = 150_000
"""Of text in ten seconds, for there are arrows in it: 54 MB an hour."""
_INTERVAL_SECONDS = 10

Loop = Callable[[Talk, int], object]


def _join(talk: Talk, number: int) -> None:
    group = f"group-{number}"
    member_id = talk.ask(join(group, 10_000)).member_id
    talk.ask(Membership(group, -1, member_id).leave())


LOOPS: dict[str, Loop] = {
    "refused heartbeats": lambda talk, _: refused(talk, "app"),
    "refused heartbeats of new groups": lambda talk, number: refused(talk, f"group-{number}"),
    "commits": lambda talk, number: talk.ask(commit("app", "orders", {0: number})),
    "joins of new groups": _join,
}


def flood(folder: Path, name: str, loop: Loop, count: int, style: str) -> tuple[float, list[str]]:
    """(bytes in an interval, what is wrong)."""
    logs = folder / f"{name} {style}"
    logs.mkdir()
    options = ("--log-format", style, "--log-file", str(logs / "log"), "-c", "group.initial.rebalance.delay.ms=0")
    with served("--data-dir", str(folder / f"{name} {style} data"), "--topic", "orders", *options) as server:
        began = time.monotonic()
        with Talk(server.address) as talk:
            for number in range(count):
                loop(talk, number)
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
        tried=f"{count} of each of {', '.join(LOOPS)}, one after the other, text and JSON",
        result=f"at most {largest * 3_600 / _INTERVAL_SECONDS / 1e6:.0f} MB of log an hour, of "
        f"{MOST_BYTES * 3_600 / _INTERVAL_SECONDS / 1e6:.0f} allowed",
        problems=tuple(problems),
    )
