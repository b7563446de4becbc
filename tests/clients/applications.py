"""Applications that write and read, as programs of their own: an idempotent producer with acks=all, and a member of a group.

A program is told ``name=value``: ``bootstrap``, ``group``, ``topic``, and ``request_timeout_ms``, after which it gives up on a
broker that does not answer. It then does what its standard input says, a line each: ``send PARTITION VALUE``, and ``commit``,
which commits what was read. It ends in order when its input does. It says, a line each: ``acknowledged PARTITION OFFSET
VALUE``, ``read PARTITION OFFSET VALUE``, ``committed``, ``assigned COUNT``, ``revoked COUNT``, and ``failed WHY`` of a record.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.clients.processes import Running
from tests.clients.program_members import compiled_java
from tests.clients.support import eventually

PATIENCE_S = 60.0
"""Brokers take seconds to miss one that is gone, and clients take theirs to hear of it."""
REQUEST_TIMEOUT_MS = 1500


class Written(NamedTuple):
    """A record."""

    partition: int
    offset: int
    """-1: the client was told that the record is there, and not where."""
    value: str


class Application(Running):
    """An application that runs, and what it said."""

    def send(self, partition: int, value: str) -> None:
        """Let it write a record."""
        self._tell(f"send {partition} {value}")

    def commit(self) -> None:
        """Let it commit what it has read, and wait for that."""
        done = self.lines.count("committed")
        self._tell("commit")
        eventually(lambda: self.lines.count("committed") > done, PATIENCE_S, saying=f"{self} commits")

    @property
    def acknowledged(self) -> list[Written]:
        """The records that it was told are written."""
        return self._said("acknowledged")

    @property
    def read(self) -> list[Written]:
        """The records that it was handed."""
        return self._said("read")

    def _said(self, what: str) -> list[Written]:
        told = [words[1:] for words in map(str.split, self.lines) if words[0] == what]
        return [Written(int(partition), int(offset), value) for partition, offset, value in told]

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


def _python(name: str) -> Callable[[Path], Sequence[str]]:
    return lambda _: [sys.executable, "-m", f"tests.clients.programs.{name}_application"]


def java_command(build: Path) -> Sequence[str]:
    """Kafka's own client. Raises NoClient where there is no Java or there are no jars."""
    return compiled_java("JavaApplication", build, ())


COMMANDS: dict[str, Callable[[Path], Sequence[str]]] = {
    "aiokafka": _python("aiokafka"),
    "confluent": _python("confluent"),
    "java": java_command,
}
"""From the name of a client to what builds its program in a directory of its own and answers its command."""
