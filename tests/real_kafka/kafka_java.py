"""Runs Java with the jars of a Kafka version, for brokers as child processes."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, RealKafkaUnavailable
from tests.real_kafka.image import DEFAULT_VERSION

DOCKER_KAFKA = Path(__file__).resolve().parents[2] / "docker" / "kafka"
OLDEST_JAVA = 17
STOP_S = 60
"""Java that archives its classes takes ten of them on an idle machine."""

LOGGING = (
    f"-Dlog4j2.configurationFile={DOCKER_KAFKA / 'conf' / 'log4j2.yaml'}",
    f"-Dlog4j.configuration=file:{DOCKER_KAFKA / 'conf' / 'log4j.properties'}",
)
"""What Kafka 4 reads, and what Kafka 3 reads."""


def libs_of(version: str) -> Path:
    """Where ``docker/kafka/jars.sh`` puts the jars of a version."""
    return DOCKER_KAFKA / ("libs" if version == DEFAULT_VERSION else f"libs-{version}")


def java_version(said: str) -> int:
    """The feature release in what ``java -version`` says: 17, or 8 for ``1.8.0``; 0 when it says none."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else 0


def why_not(libs: Path, java: str | None, said: str) -> str | None:
    """Why no broker can be started with these jars and this Java, or None."""
    if not libs.is_dir():
        return f"docker/kafka/{libs.name} is not there (`make kafka-libs`)"
    if java is None:
        return "there is no Java"
    if java_version(said) < OLDEST_JAVA:
        return f"{java} is not Java {OLDEST_JAVA} or newer"
    return None


def write_config(path: Path, properties: Mapping[str, str]) -> None:
    """Write what ``kafka.Kafka`` and the storage tool read."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def end(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM: a broker hands over what it leads first. What does not end within STOP_S is killed."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_FORMATTED: dict[Path, dict[str, bytes]] = {}
"""The files of a directory that Kafka's tool has formatted, by the folder of its jars."""


class KafkaJava:
    """The Java of this machine, with ``options``, and the jars of ``version``; ``archive`` is where classes of these are kept.

    Raises RealKafkaUnavailable where one of the two is missing.
    """

    def __init__(self, version: str, options: Sequence[str] = ()) -> None:
        self._libs, self._options = libs_of(version), options
        java = shutil.which("java")
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr if java else ""
        if reason := why_not(self._libs, java, said):
            raise RealKafkaUnavailable(reason)
        self.archive = DOCKER_KAFKA / f"{self._libs.name}-classes-java-{java_version(said)}.jsa"

    @property
    def what(self) -> str:
        """Which jars these are."""
        return f"docker/kafka/{self._libs.name}"

    def format(self, config: Path, node_id: int, data: Path, log: IO[bytes]) -> None:
        """Make ``data``, the directory of a new node. Raises BrokerFailed.

        Kafka's tool does it once for all: its Java costs a fifth of what a broker's start does, and only ids would differ.
        """
        if self._libs not in _FORMATTED:
            words = ["kafka.tools.StorageTool", "format", "--cluster-id", lone_node.CLUSTER_ID, "--config", str(config)]
            if subprocess.run([*self._command(()), *words], stdout=log, stderr=log, check=False).returncode:
                raise BrokerFailed("its storage could not be formatted")
            _FORMATTED[self._libs] = {path.name: path.read_bytes() for path in data.iterdir()}
            return
        data.mkdir()
        for name, content in _FORMATTED[self._libs].items():
            (data / name).write_bytes(content)
        # A broker that finds no id of its directory gives it one.
        ids = {"version": "1", "cluster.id": lone_node.CLUSTER_ID, "node.id": str(node_id)}
        write_config(data / "meta.properties", ids)

    def start(self, config: Path, log: IO[bytes], *options: str) -> "subprocess.Popen[bytes]":
        """Start a node. It is killed with the thread that starts it, and out of reach of a Ctrl-C meant for the tests."""
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        command = [*leash, *self._command(options), "kafka.Kafka", str(config)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def run_class(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One of Kafka's command-line classes, ended or not."""
        command = [*self._command(["-Xlog:disable"]), name, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _command(self, options: Sequence[str]) -> list[str]:
        return ["java", *lone_node.HEAP.split(), *LOGGING, *self._options, *options, "-cp", f"{self._libs}/*"]
