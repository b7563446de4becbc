"""What the demo's client programs share: their arguments, the bookkeeping of offsets, and the communication with their parent.

A consumer reports on stdout what it has read, one line of JSON for each batch, and reads on stdin when to join and when to
leave. When stdin is closed, the parent has ended, and the consumer ends, too.
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
"""The words of the parent: create a client and join the group; close the client and end."""


class ReadRecord(NamedTuple):
    """A record as a consumer saw it."""

    partition: int
    offset: int
    key: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a consumer; times are milliseconds."""

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
        """The settings as command-line arguments."""
        said = {**asdict(self), "protocols": ",".join(self.protocols)}
        return [f"--{name.replace('_', '-')}={value}" for name, value in said.items()]

    def properties(self) -> dict[str, Any]:
        """The settings, without the assignors, as Kafka's consumer configs."""
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
        """The same for libraries that take keyword arguments."""
        return {name.replace(".", "_"): value for name, value in self.properties().items()}


def settings_from(arguments: list[str]) -> Settings:
    """The settings in command-line arguments. Ends the program if they are invalid."""
    parser = argparse.ArgumentParser(description="A consumer of the groupcoord demo.")
    for name in ("bootstrap", "group", "topic", "client-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--protocols", required=True, type=lambda text: tuple(text.split(",")))
    for name in ("session-ms", "heartbeat-ms", "poll-ms", "commit-every-ms"):
        parser.add_argument(f"--{name}", required=True, type=int)
    return Settings(**vars(parser.parse_args(arguments)))


class Bookkeeping:
    """The position and committed offset of each partition; thread-safe, because rebalances may run in another thread.

    It is cleared when partitions are assigned, and notes only owned partitions: an offset of an earlier assignment must never
    be committed under a later one, because another owner may have advanced further.
    """

    def __init__(self, commit_every_ms: int) -> None:
        self._lock = threading.Lock()
        self._owned: frozenset[int] = frozenset()
        self._next: dict[int, int] = {}
        self._commit_every_s = commit_every_ms / 1000
        self._committed_at = time.monotonic()

    def assigned(self, partitions: Iterable[int]) -> None:
        """Own exactly these partitions from now on, and forget uncommitted offsets of earlier ones."""
        with self._lock:
            self._owned = frozenset(partitions)
            self._next = {}

    def read(self, records: Iterable[ReadRecord]) -> None:
        """Report ``records`` to the parent; only then may their offsets be committed, so that no committed record is lost."""
        records = list(records)
        if not records:
            return
        report(records)
        with self._lock:
            self._next.update({r.partition: r.offset + 1 for r in records if r.partition in self._owned})

    @contextmanager
    def committing(self) -> Iterator[dict[int, int]]:
        """Partition → the next offset, where it is not committed yet: the block has to commit them.

        If the block fails they are uncommitted again, unless partitions were assigned anew meanwhile.
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
        """Is the last commit long enough ago, and is there anything to commit?"""
        return bool(self._next) and time.monotonic() - self._committed_at >= self._commit_every_s


def report(records: Iterable[ReadRecord]) -> None:
    """Report to the parent what was read: one line, flushed at once."""
    sys.stdout.write(json.dumps([list(record) for record in records]) + "\n")
    sys.stdout.flush()


def parse_report(line: bytes) -> list[ReadRecord]:
    """The records in a ``line`` of ``report``. Raises ValueError if it is not one."""
    return [ReadRecord(int(partition), int(offset), str(key)) for partition, offset, key in json.loads(line)]


class Parent:
    """The process that started this one. It says when to join and when to leave; when it ends, this process ends at once."""

    def __init__(self) -> None:
        self._joining = threading.Event()
        self._leaving = threading.Event()
        threading.Thread(target=self._listen, name="parent", daemon=True).start()

    def wait_until_wanted(self) -> None:
        """Wait until the parent says to join; everything has been imported by then."""
        self._joining.wait()

    @property
    def should_run(self) -> bool:
        """False after the parent has said to leave."""
        return not self._leaving.is_set()

    def _listen(self) -> None:
        # Not sys.stdin: a thread that waits in it holds its lock, which would disturb the shutdown of the interpreter.
        heard = b""
        while data := os.read(0, 1024):
            heard += data
            *words, heard = heard.split(b"\n")
            for word in words:
                {JOIN: self._joining, LEAVE: self._leaving}[word.decode()].set()
        os._exit(1)


def main(make: Callable[[Settings], Any]) -> None:
    """Wait until the parent says to join; then create the consumer with ``make`` from the command line, and run it."""
    settings, parent = settings_from(sys.argv[1:]), Parent()
    parent.wait_until_wanted()
    make(settings).run(parent)
