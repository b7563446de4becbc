"""Kafka's own command-line tools, run by ``java`` from a directory of Kafka's jars."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.clients.processes import ROOT, run

LIBS = "KAFKA_LIBS"
PACKAGE = "org.apache.kafka.tools"
CLASSES = {
    "kafka-cluster": f"{PACKAGE}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{PACKAGE}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{PACKAGE}.ConsoleProducer",
    "kafka-consumer-groups": f"{PACKAGE}.consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets": f"{PACKAGE}.GetOffsetShell",
    "kafka-log-dirs": f"{PACKAGE}.LogDirsCommand",
    "kafka-metadata-quorum": f"{PACKAGE}.MetadataQuorumCommand",
    "kafka-topics": f"{PACKAGE}.TopicCommand",
    "kafka-transactions": f"{PACKAGE}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{PACKAGE}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{PACKAGE}.VerifiableProducer",
}


class NoTools(Exception):
    """Why Kafka's tools cannot be run here."""


class KafkaTools:
    """The tools by the names of their scripts. Raises NoTools where Java or the jars are missing.

    Most of a tool's time is the loading of classes, so one of them first writes down what it loaded, for all others.
    """

    def __init__(self, bootstrap: str, directory: Path) -> None:
        class_path = jars()
        if shutil.which("java") is None:
            raise NoTools("there is no java here")
        self._bootstrap = bootstrap
        self._archive = directory / "classes.jsa"
        self._java = ["java", "-Xlog:disable", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._class_path = ["-cp", os.pathsep.join(class_path)]
        writing = [*self._java, f"-XX:ArchiveClassesAtExit={self._archive}", *self._class_path]
        run([*writing, CLASSES["kafka-topics"], "--bootstrap-server", bootstrap, "--list"])

    def command(self, tool: str, *arguments: str) -> Sequence[str]:
        """The command that runs ``tool``."""
        reading = [*self._java, f"-XX:SharedArchiveFile={self._archive}", *self._class_path]
        # One tool takes the address only behind its own command.
        own_command = arguments[: tool == "kafka-cluster"]
        rest = arguments[len(own_command) :]
        return [*reading, CLASSES[tool], *own_command, "--bootstrap-server", self._bootstrap, *rest]

    def __call__(self, tool: str, *arguments: str, stdin: str = "") -> str:
        """What ``tool`` prints. Raises AssertionError if it fails."""
        return run(self.command(tool, *arguments), stdin)

    def rows(self, tool: str, *arguments: str) -> list[list[str]]:
        """The words of each line that ``tool`` prints, without the empty ones."""
        return [line.split() for line in self(tool, *arguments).splitlines() if line.strip()]


def jars() -> list[str]:
    """The jars of Kafka's tools, and of its clients with them. Raises NoTools where there are none."""
    libs = Path(os.environ.get(LIBS) or ROOT / "docker" / "kafka" / "libs")
    found = sorted(str(jar) for jar in libs.glob("*.jar"))
    if not any("kafka-tools" in jar for jar in found):
        raise NoTools(f"no Kafka jars in {libs}; {LIBS} may name another directory")
    return found
