"""``make break``: every attack on a server and on its data directory, one after the other, and a table of what came of it.

``python -m tests.reliability [ATTACK ...] [--scale 0.01] [--seed N] [--soak-minutes 60] [--list]``
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from tests.reliability.outcome import Outcome

SOAK = "soak"


@dataclass(frozen=True)
class Attack:
    """A module of this package with ``attack(count, seed)``; ``count`` is how much is tried unless told otherwise."""

    name: str
    count: int
    what: str


ATTACKS = (
    Attack("kills", 1_000, "kill -9 at random moments: under load, during start, during shutdown"),
    Attack("transaction_kills", 400, "kill -9 at every point of a transaction"),
    Attack("hostile_frames", 500_000, "frames of every API and version, spoiled, beside a client that behaves"),
    Attack("crash_points", 1_000, "the disk as a crash leaves it at each point of its history"),
    Attack("transaction_crash_points", 500, "the same at each point of transactions"),
    Attack("damaged_files", 1_000, "files of a data directory damaged, then started with"),
    Attack("bombs", 50, "compressed batches that unpack to far more than they are"),
    Attack("fairness", 300, "clients that send far ahead beside a quiet one"),
    Attack("paused", 20, "a process that stands still for longer than a session"),
    Attack("slow_readers", 30, "clients that fetch much and do not read"),
    Attack("descriptors", 300, "more connections than there are descriptors"),
    Attack("log_flood", 100_000, "a client in a loop against the log"),
    Attack("soak", 30, "mixed load for so many minutes"),
)


class Ran(NamedTuple):
    """An attack that was made."""

    name: str
    outcome: Outcome
    seconds: float


def make(attack: Attack, count: int, seed: int) -> Ran:
    """Make one attack. One that fails itself is a problem, too."""
    began = time.monotonic()
    try:
        run: Callable[[int, int], Outcome] = import_module(f"tests.reliability.{attack.name}").attack
        outcome = run(count, seed)
    except Exception:  # the others are still to be made
        problem = f"seed {seed}: the attack itself failed\n{traceback.format_exc()}"
        outcome = Outcome(tried="", result="not finished", problems=(problem,))
    return Ran(attack.name, outcome, time.monotonic() - began)


def table(ran: Iterable[Ran]) -> str:
    """What came of it, as in ``docs/reliability.md``."""
    lines = ["| attack | tried | result | problems | seconds |", "|---|---|---|---|---|"]
    for name, outcome, seconds in ran:
        cells = (name, outcome.tried, outcome.result, f"{len(outcome.problems)}", f"{seconds:,.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the attacks that are asked for; returns the exit code, 1 if there is any problem."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.reliability", description="Attacks on a server, and their table."
    )
    parser.add_argument("attacks", metavar="ATTACK", nargs="*", help="all of them unless named; see --list")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times as much of each is tried (1)")
    parser.add_argument("--seed", type=int, default=1, help="what chance follows from (1)")
    parser.add_argument("--soak-minutes", type=int, metavar="N", help="how long the soak takes, whatever --scale says")
    parser.add_argument("--list", action="store_true", help="say what there is, and end")
    arguments = parser.parse_args(argv)
    known = {attack.name: attack for attack in ATTACKS}
    if unknown := [name for name in arguments.attacks if name not in known]:
        parser.error(f"there is no attack {', '.join(unknown)}; there are {', '.join(known)}")
    if arguments.list:
        for attack in ATTACKS:
            sys.stdout.write(f"{attack.name:<25}{attack.count:>9,}  {attack.what}\n")
        return 0
    ran = []
    for attack in [known[name] for name in arguments.attacks] or ATTACKS:
        count = max(1, round(attack.count * arguments.scale))
        if attack.name == SOAK and arguments.soak_minutes is not None:
            count = arguments.soak_minutes
        sys.stderr.write(f"{attack.name}: {attack.what}\n")
        ran.append(make(attack, count, arguments.seed))
    sys.stdout.write(f"{table(ran)}\n")
    return _tell_problems(ran, arguments.scale, arguments.seed)


def _tell_problems(ran: Iterable[Ran], scale: float, seed: int) -> int:
    code = 0
    for name, outcome, _ in ran:
        if outcome.problems:
            code = 1
            again = f"python -m tests.reliability {name} --scale {scale:g} --seed {seed}"
            sys.stdout.write(f"\n{name}, again: {again}\n")
            sys.stdout.writelines(f"- {problem}\n" for problem in outcome.problems)
    return code


if __name__ == "__main__":
    sys.exit(main())
