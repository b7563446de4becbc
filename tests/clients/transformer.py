"""A consume-transform-produce process, which can be suspended or killed in the middle of a transaction.

It says, a line each: ``committed`` with how many records, ``refused`` with why, ``stopped`` before it stands still, ``closed``
at its end, to which it comes when its standard input does, so that it never outlives the tests.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.clients.members import TRANSACTIONAL_ADAPTERS, Diary, Flavour, Membership
from tests.clients.support import Partition, Record
from tests.clients.transactional import ERRORS, PRODUCERS, TIMEOUT_MS, named

FENCED = {"_FENCED, fatal", "ProducerFenced", "ProducerFencedError"}
"""After these a producer is of no use."""


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """``stops_before``: the step of its first transaction before which it stands still, ``offsets`` or ``commit``, if any."""

    membership: Membership
    target: str
    transactional_id: str
    timeout_ms: int = TIMEOUT_MS
    stops_before: str = ""

    def command(self) -> Sequence[str]:
        """The command that runs it."""
        return [sys.executable, "-m", "tests.clients.transformer", json.dumps(asdict(self))]


def transform(value: str) -> str:
    """What comes out for ``value``."""
    return value.upper()


class Running:
    """The loop."""

    def __init__(self, told: Transformer) -> None:
        self._told = told
        self._stops_before = told.stops_before
        membership = told.membership
        library = membership.flavour.library
        self._producer = PRODUCERS[library](membership.bootstrap, told.transactional_id, told.timeout_ms)
        self._consumer = TRANSACTIONAL_ADAPTERS[library](membership, Diary())

    def run(self, ended: threading.Event) -> None:
        """Transform what comes until ``ended``, or until it is fenced."""
        while not ended.is_set():
            records = self._consumer.poll()
            if not records:
                continue
            try:
                self._transact(records)
            except ERRORS as failure:
                say("refused", named(failure))
                if named(failure) in FENCED:
                    break
                self._producer.abort()
                self._begin_anew()
            else:
                say("committed", len(records))
        self._consumer.close()
        self._producer.close()

    def _transact(self, records: Sequence[Record]) -> None:
        # Who asks later, asks who it is by then: librdkafka may have joined again, and would commit what it has lost.
        member = self._consumer.member()
        offsets: dict[Partition, int] = {}
        for record in records:
            offsets[record.topic, record.partition] = record.offset + 1
        self._producer.begin()
        self._producer.write(self._told.target, [transform((record.value or b"").decode()) for record in records])
        self._stand_still("offsets")
        self._producer.send_offsets(offsets, member)
        self._stand_still("commit")
        self._producer.commit()

    def _stand_still(self, step: str) -> None:
        if step == self._stops_before:
            self._stops_before = ""
            say("stopped")
            os.kill(os.getpid(), signal.SIGSTOP)

    def _begin_anew(self) -> None:
        """Read on from what is committed."""
        self._consumer.close()
        membership = self._told.membership
        self._consumer = TRANSACTIONAL_ADAPTERS[membership.flavour.library](membership, Diary())


def say(*words: object) -> None:
    """One line for the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Be that transformer until standard input ends."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    membership = told.pop("membership")
    flavour = Flavour(**membership.pop("flavour"))
    running = Running(Transformer(membership=Membership(**{**membership, "flavour": flavour}), **told))
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    running.run(ended)
    say("closed")


if __name__ == "__main__":
    main()
