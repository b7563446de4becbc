"""Servers that keep their data and can be started again on the same address: groupcoord, killed, and a real Kafka, stopped."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from tests.clients.processes import Running
from tests.clients.support import eventually
from tests.offsets_log.lone_kafka import LoneKafka
from tests.real_kafka import RealKafkaUnavailable, alone
from tests.real_kafka.lone_node import free_port

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1500",
    "group.consumer.min.session.timeout.ms": "1500",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Of both servers; sessions are short, so that a member that was killed is soon missed. Who can begin a transaction
after a restart knows that all transactions are loaded."""


class Restartable(Protocol):
    """A server with a data directory; it does not run before ``start``."""

    bootstrap: str

    def start(self) -> None:
        """Start it, on what is in its directory; returns when it serves."""

    def end(self) -> None:
        """End it; its files stay."""


class Groupcoord:
    """``groupcoord serve`` as a process, which is killed in the end. What it logs as an error fails ``end``."""

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        options = [f"-c={name}={value}" for name, value in properties.items()]
        self._log = folder / "log"
        folder.mkdir(parents=True, exist_ok=True)
        self._log.touch()
        data = ["--data-dir", str(folder / "data"), "--log-file", str(self._log), "--log-level", "error"]
        serve = [sys.executable, "-m", "groupcoord", "serve", "--port", str(port)]
        self._command = [*serve, *data, *options]
        self._running: Running | None = None

    def start(self) -> None:
        """Start it; returns when it serves."""
        self._running = server = Running(self._command)
        eventually(lambda: server.lines, saying="it says where it listens")

    def end(self) -> None:
        """Kill it, whatever it is at."""
        assert self._running is not None
        self._running.kill()
        assert not self._log.read_text()


class RealKafka:
    """Kafka 4.3.1 as a child process. Raises RealKafkaUnavailable where it cannot be had."""

    def __init__(self, folder: Path, properties: Mapping[str, str]) -> None:
        self._kafka = LoneKafka(folder, properties)
        self.bootstrap = self._kafka.bootstrap_servers

    def start(self) -> None:
        """Start it; returns when it coordinates all groups."""
        self._kafka.__enter__()

    def end(self) -> None:
        """End it in order."""
        self._kafka.stop()


SERVERS: dict[str, Callable[[Path, Mapping[str, str]], Restartable]] = {"groupcoord": Groupcoord, "kafka": RealKafka}
PARAMETERS = ["groupcoord", pytest.param("kafka", marks=alone.MARKS)]
"""For a fixture: a real Kafka only if ``-m real_kafka`` asks for it."""


@contextmanager
def started(name: str, folder: Path) -> Iterator[Restartable]:
    """The server of that name, which runs until the block ends; skips where there is no real Kafka."""
    try:
        server = SERVERS[name](folder, PROPERTIES)
    except RealKafkaUnavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    try:
        server.start()
        yield server
    finally:
        server.end()
