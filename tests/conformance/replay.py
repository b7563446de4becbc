"""Plays the stories on groupcoord with the virtual clock, and prints the first that differs: ``python -m
tests.conformance.replay [STORY]``. That story is the first to be played."""

# ruff: noqa: T201 -- a command says what it found
import logging
import sys

from tests.conformance.compare import explain, recorded
from tests.conformance.record import KAFKA_VERSION, RECORDINGS
from tests.conformance.story import Tale
from tests.conformance.telling import all_tales, tell
from tests.conformance.virtual import VirtualTarget

EXHAUSTED = "transactions_exhausted"
"""Each story of these begins tens of thousands of transactions."""


def differs(tale: Tale) -> list[str]:
    """The first step of ``tale`` that differs from its recording, in lines for people, and what went wrong in the server."""
    target = VirtualTarget(tale.settings.properties, seed=tale.name)
    lines = explain(recorded(RECORDINGS / KAFKA_VERSION, tale), tell(tale, target))
    return lines + [f"unexpected error: {unexpected.error!r}" for unexpected in target.unexpected_errors]


def main() -> int:
    logging.disable()
    begins = sys.argv[1:]
    in_order = sorted(all_tales(), key=lambda tale: (tale.name not in begins, tale.topic == EXHAUSTED))
    first = next((tale.name for tale in in_order if differs(tale)), None)
    print(first or "")
    return 0 if first is None else 1


if __name__ == "__main__":
    sys.exit(main())
