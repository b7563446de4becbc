"""Plays stories on a server and prints where it differs: ``python -m tests.conformance.compare --bootstrap HOST:PORT``.

With ``--with FOLDER`` instead of a server, two folders of recordings are compared.
"""

# ruff: noqa: T201 -- a command says what it found
import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import settings
from tests.conformance.record import KAFKA_VERSION, RECORDINGS, chosen_by
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales, ready, tell_all
from tests.conformance.transcript import Step, differences, from_text, path_of
from tests.conformance.wire import SocketTarget


def recorded(folder: Path, tale: Tale) -> list[Step]:
    """The recorded transcript of ``tale``; empty when there is none."""
    path = path_of(folder, tale.name)
    return from_text(path.read_text()) if path.exists() else []


def explain(expected: list[Step], got: list[Step], *, every: bool = False) -> list[str]:
    """The first step that differs (or ``every`` one), each place in it, and the step before; empty when all are equal."""
    lines: list[str] = []
    for number, (want, have) in enumerate(_pairs(expected, got), 1):
        if want == have:
            continue
        step = want or have
        lines.append(f"step {number}: {step.get('actor')} {step.get('does')}")
        if number > 1 and not every:
            before = expected[number - 2] if number - 2 < len(expected) else {}
            lines.append(f"  after step {number - 1}: {before.get('actor')} {before.get('does')}")
        if not want or not have:
            lines.append("  expected no such step" if not want else "  the story did not get here")
        else:
            lines += [f"  sent {json.dumps(want.get('sends'), ensure_ascii=False)}"]
            lines += [f"  {difference}" for difference in differences(want, have)]
        if not every:
            break
    return lines


def _pairs(expected: list[Step], got: list[Step]) -> Iterator[tuple[Step, Step]]:
    for index in range(max(len(expected), len(got))):
        yield (
            expected[index] if index < len(expected) else {},
            got[index] if index < len(got) else {},
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.compare", description=__doc__)
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the server to compare with the recordings")
    parser.add_argument("--with", dest="other", type=Path, help="another folder of recordings")
    parser.add_argument("--settings", choices=[known.name for known in settings.ALL], default=settings.FAST.name)
    parser.add_argument("--recordings", type=Path, default=RECORDINGS / KAFKA_VERSION)
    parser.add_argument("--quick", action="store_true", help="leave out the stories that last longer than a minute")
    parser.add_argument("--story", action="append", help="only this story (repeatable); a word of its name will do")
    parser.add_argument("--every", action="store_true", help="every step that differs, not only a story's first")
    options = parser.parse_args()
    tales = [
        tale
        for tale in all_tales()
        if (options.other or tale.settings.name == options.settings) and chosen_by(tale, options)
    ]
    if options.other:
        told: Iterator[tuple[Tale, list[Step]]] = ((tale, recorded(options.other, tale)) for tale in tales)
    else:
        target = SocketTarget.at(options.bootstrap)
        ready(target)
        told = tell_all(tales, target)
    unequal = steps_in_all = 0
    for tale, got in told:
        steps_in_all += len(got)
        if lines := explain(recorded(options.recordings, tale), got, every=options.every):
            unequal += 1
            print("\n".join([f"{tale.topic}.{tale.name}", *(f"  {line}" for line in lines)]), flush=True)
    print(f"{len(tales)} stories, {steps_in_all} steps, {unequal} stories differ")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
