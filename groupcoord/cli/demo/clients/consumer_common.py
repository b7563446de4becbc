"""What the consumers have in common: their arguments, their bookkeeping, and the line to the process that started them.

A consumer tells its parent on stdout what it has read, one line of JSON for each batch, and hears from it on stdin when to join
and when to leave. The end of stdin says that the parent is gone, however that happened, and then the consumer goes too.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

JOIN, LEAVE = "join", "leave"
"""What the parent may say: make a client and join the group; close the client and end."""


class ReadRecord(NamedTuple):
    """A record as a consumer saw it."""

    partition: int
    offset: int
    key: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a consumer takes part; times are milliseconds."""

    bootstrap: str
    group: str
    topic: str
    client_id: str
    protocols: tuple[str, ...]
    session_ms: int
    heartbeat_ms: int
    poll_ms: int
    commit_every_ms: int

    def arguments(self) -> list[str]:
        """The command line that says the same."""
        said = {**asdict(self), "protocols": ",".join(self.protocols)}
        return [f"--{name.replace('_', '-')}={value}" for name, value in said.items()]

    def properties(self) -> dict[str, Any]:
        """The settings, except for the assignors, as Kafka's properties of a consumer."""
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": self.client_id,
            "group.id": self.group,
            "session.timeout.ms": self.session_ms,
            "heartbeat.interval.ms": self.heartbeat_ms,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }

    def keywords(self) -> dict[str, Any]:
        """The same for the libraries that are called with keywords."""
        return {name.replace(".", "_"): value for name, value in self.properties().items()}


def settings_from(arguments: list[str]) -> Settings:
    """The settings that a command line says. Ends the program if it says something else."""
    parser = argparse.ArgumentParser(description="A consumer of the groupcoord demo.")
    for name in ("bootstrap", "group", "topic", "client-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--protocols", required=True, type=lambda text: tuple(text.split(",")))
    for name in ("session-ms", "heartbeat-ms", "poll-ms", "commit-every-ms"):
        parser.add_argument(f"--{name}", required=True, type=int)
    return Settings(**vars(parser.parse_args(arguments)))


class Bookkeeping:
    """What was read and how far it is committed, by partition; safe to use from the thread that reads and the one that joins.

    Everything is forgotten when partitions are handed out anew, and only what is owned is noted: an offset of an earlier
    assignment must never be committed under a later one, when another owner may have gone further.
    """

    def __init__(self, commit_every_ms: int) -> None:
        self._lock = threading.Lock()
        self._owned: frozenset[int] = frozenset()
        self._next: dict[int, int] = {}
        self._commit_every_s = commit_every_ms / 1000
        self._committed_at = time.monotonic()

    def assigned(self, partitions: Iterable[int]) -> None:
        """These and no others are owned from now on; the next owner reads again what was not committed."""
        with self._lock:
            self._owned = frozenset(partitions)
            self._next = {}

    def read(self, records: Iterable[ReadRecord]) -> None:
        """Tell the parent of ``records``; only then may their offsets be committed, so that none is without being told."""
        records = list(records)
        if not records:
            return
        report(records)
        with self._lock:
            self._next.update({r.partition: r.offset + 1 for r in records if r.partition in self._owned})

    @contextmanager
    def committing(self) -> Iterator[dict[int, int]]:
        """Partition → the offset after the last record read, where that is not committed: to be committed in the block.

        If the block fails they are due again, unless partitions were handed out anew meanwhile.
        """
        with self._lock:
            owned, offsets, self._next = self._owned, self._next, {}
            self._committed_at = time.monotonic()
        try:
            yield offsets
        except BaseException:
            with self._lock:
                if owned is self._owned:
                    self._next = offsets | self._next
            raise

    @property
    def commit_is_due(self) -> bool:
        """Has the last commit been long enough ago, and is there anything to commit?"""
        return bool(self._next) and time.monotonic() - self._committed_at >= self._commit_every_s


def report(records: Iterable[ReadRecord]) -> None:
    """Tell the parent what was read: one line, written at once."""
    sys.stdout.write(json.dumps([list(record) for record in records]) + "\n")
    sys.stdout.flush()


def parse_report(line: bytes) -> list[ReadRecord]:
    """What ``report`` wrote. Raises ValueError if it did not write ``line``."""
    return [ReadRecord(int(partition), int(offset), str(key)) for partition, offset, key in json.loads(line)]


class Parent:
    """The process that started this one. It says when to join and to leave; when it ends, so does this process, at once."""

    def __init__(self) -> None:
        self._joining = threading.Event()
        self._leaving = threading.Event()
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def wait_until_wanted(self) -> None:
        """Wait for the word to join, with everything imported by then."""
        self._joining.wait()

    @property
    def should_run(self) -> bool:
        """False once the word to leave has come."""
        return not self._leaving.is_set()

    def _listen(self) -> None:
        # Not sys.stdin: its lock, held by a thread that reads for ever, would disturb the end of the interpreter.
        heard = b""
        while data := os.read(0, 1024):
            heard += data
            *words, heard = heard.split(b"\n")
            for word in words:
                {JOIN: self._joining, LEAVE: self._leaving}[word.decode()].set()
        os._exit(1)


def main(make: Callable[[Settings], Any]) -> None:
    """Wait until the parent wants the consumer that ``make`` makes of the settings on the command line; then run it."""
    settings, parent = settings_from(sys.argv[1:]), Parent()
    parent.wait_until_wanted()
    make(settings).run(parent)
