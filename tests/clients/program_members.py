"""Members as programs of their own, one for each client that has the consumer protocol: they can be killed, and started again.

A program is told ``name=value``: ``bootstrap``, ``group``, ``client`` (its id), ``protocol`` (``classic`` or ``consumer``),
``topic`` (what begins with ``^`` is an expression) and perhaps ``instance``. It says, a line each: ``assigned`` and ``revoked``
with partitions as ``topic:0``, ``read`` with ``topic:0:5`` for the record at offset 5, ``failed`` with why, ``closed`` at its
end, to which it comes when its standard input does, so that it never outlives the tests.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.clients.kafka_tools import NoTools, jars
from tests.clients.processes import Running
from tests.clients.support import Partition

PROGRAMS = Path(__file__).parent / "programs"
BUILD_PATIENCE_S = 300.0


class NoClient(Exception):
    """Why a client cannot be run here."""


class Place(NamedTuple):
    """Where a record is that was read."""

    topic: str
    partition: int
    offset: int


class ProgramMember(Running):
    """A member that runs, and what it said."""

    def said(self, what: str) -> list[list[str]]:
        """The words after ``what``, of each line that begins with it."""
        return [words[1:] for words in map(str.split, self.lines) if words[0] == what]

    @property
    def entries(self) -> list[tuple[str, frozenset[Partition]]]:
        """What its client told its application, in order: ``("assigned" | "revoked", partitions)``, never without any."""
        changes = [words for words in map(str.split, self.lines) if words[0] in ("assigned", "revoked") and words[1:]]
        return [(what, frozenset(map(_partition, partitions))) for what, *partitions in changes]

    @property
    def owned(self) -> frozenset[Partition]:
        """The partitions that it has."""
        owned: frozenset[Partition] = frozenset()
        for what, partitions in self.entries:
            owned = owned | partitions if what == "assigned" else owned - partitions
        return owned

    @property
    def read(self) -> list[Place]:
        """The records that it was handed, in that order."""
        places = [where.rsplit(":", 2) for (where,) in self.said("read")]
        return [Place(topic, int(partition), int(offset)) for topic, partition, offset in places]

    def leave(self) -> None:
        """Close the client as an application that ends does; a static member stays in the group."""
        assert self.end() == 0
        assert self.lines[-1] == "closed"


def _partition(text: str) -> Partition:
    topic, _, number = text.rpartition(":")
    return topic, int(number)


def confluent_command(_: Path) -> Sequence[str]:
    """confluent-kafka, that is librdkafka."""
    return [sys.executable, "-m", "tests.clients.programs.confluent_member"]


def java_command(build: Path) -> Sequence[str]:
    """Kafka's own client. Raises NoClient where there is no Java or there are no jars."""
    nowhere = ["bootstrap=127.0.0.1:1", "group=none", "client=none", "topic=none", "protocol=consumer"]
    return compiled_java("JavaMember", build, nowhere)


def compiled_java(name: str, build: Path, arguments: Sequence[str], more_jars: Sequence[str] = ()) -> Sequence[str]:
    """The command of one of the programs in Java. Raises NoClient where there is no Java or there are no jars.

    Most of the time until a program does something is the loading of classes. If it ends by itself with ``arguments``, it is
    run with them once, to write down what it loads; without them it is not.
    """
    jar = str(build / "program.jar")
    try:
        class_path = os.pathsep.join([*jars(), *more_jars, jar])
    except NoTools as reason:
        raise NoClient(str(reason)) from None
    if not (shutil.which("java") and shutil.which("javac")):
        raise NoClient("there is no java, or no javac, here")
    classes = build / "classes"
    run_to_build(["javac", "-cp", class_path, "-d", str(classes), str(PROGRAMS / f"{name}.java")], PROGRAMS)
    run_to_build(["jar", "--create", "--file", jar, "-C", str(classes), "."], build)
    java = ["java", "-Xlog:disable", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    program = ["-cp", class_path, name]
    if not arguments:
        return [*java, *program]
    archive = build / "classes.jsa"
    run_to_build([*java, f"-XX:ArchiveClassesAtExit={archive}", *program, *arguments], build)
    return [*java, f"-XX:SharedArchiveFile={archive}", *program]


def franz_go_command(build: Path) -> Sequence[str]:
    """franz-go. Raises NoClient where there is no Go, or its modules cannot be had."""
    return compiled_go(".", build)


def compiled_go(package: str, build: Path) -> Sequence[str]:
    """The command of one of the programs in Go. Raises NoClient where there is no Go, or its modules cannot be had."""
    if not shutil.which("go"):
        raise NoClient("there is no go here")
    folder = PROGRAMS / "franz_go"
    try:
        run_to_build(["go", "mod", "download"], folder)
    except AssertionError as failure:
        raise NoClient(f"the modules of Go cannot be had here: {failure}") from None
    run_to_build(["go", "build", "-o", str(build / "franz-go"), package], folder)
    return [str(build / "franz-go")]


def run_to_build(command: Sequence[str], folder: Path) -> None:
    """Run what makes a program. Raises AssertionError with its complaints if it fails."""
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run(command, cwd=folder, timeout=BUILD_PATIENCE_S, check=False, **options)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stderr}"


COMMANDS: dict[str, Callable[[Path], Sequence[str]]] = {
    "confluent": confluent_command,
    "java": java_command,
    "franz-go": franz_go_command,
}
"""From the name of a client to what builds its program in a directory of its own and answers its command."""
