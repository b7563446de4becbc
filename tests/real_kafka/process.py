"""A lone broker as a child process: what is left where there is no Docker, but Java and the jars of ``make kafka-libs``."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, RealKafkaUnavailable, end_of_log
from tests.real_kafka.image import DEFAULT_VERSION, kafka_version
from tests.real_kafka.waiting import until_it_coordinates

DOCKER_KAFKA = Path(__file__).resolve().parents[2] / "docker" / "kafka"
OLDEST_JAVA = 17
STOP_S = 20


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


class KafkaProcess:
    """``properties`` are broker properties under Kafka's names. Raises RealKafkaUnavailable when none can be started here."""

    def __init__(self, properties: Mapping[str, str] = MappingProxyType({}), version: str | None = None) -> None:
        self._libs = libs_of(version or kafka_version())
        java = shutil.which("java")
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr if java else ""
        if reason := why_not(self._libs, java, said):
            raise RealKafkaUnavailable(reason)
        self.what = f"process of docker/kafka/{self._libs.name}"
        ports = (lone_node.free_port(), lone_node.free_port(), lone_node.free_port())
        self.port = ports[0]
        self._partitions = lone_node.offsets_partitions(properties)
        self._properties = lone_node.properties(self.port, properties, host="127.0.0.1", ports=ports)
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log = ""

    @property
    def bootstrap_servers(self) -> str:
        """``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process that runs."""
        if self._process is None:
            raise BrokerFailed(f"{self.what}: it does not run")
        return self._process.pid

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="real-kafka-"))
        try:
            self._start(self._folder)
            until_it_coordinates(self.port, self._partitions, self._gone)
        except BrokerFailed as problem:
            self.stop()
            raise BrokerFailed(f"{self.what}: {problem}\n{end_of_log(self.what, self._log)}") from problem
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and remove everything of it but its log."""
        self._end()
        if self._folder is not None:
            self._log = self.log()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def log(self) -> str:
        """Everything that the broker has logged so far."""
        path = self._folder / "log" if self._folder else None
        return path.read_text(errors="replace") if path and path.exists() else self._log

    def _start(self, folder: Path) -> None:
        lines = [f"{name}={value}" for name, value in {**self._properties, "log.dirs": str(folder / "data")}.items()]
        config = folder / "server.properties"
        config.write_text("\n".join(lines) + "\n")
        logging = [
            f"-Dlog4j2.configurationFile={DOCKER_KAFKA / 'conf' / 'log4j2.yaml'}",
            f"-Dlog4j.configuration=file:{DOCKER_KAFKA / 'conf' / 'log4j.properties'}",
        ]
        java = ["java", *lone_node.HEAP.split(), *logging, "-cp", f"{self._libs}/*"]
        with (folder / "log").open("wb") as log:
            format_storage = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", lone_node.CLUSTER_ID]
            formatted = subprocess.run([*format_storage, "--config", config], stdout=log, stderr=log, check=False)
            if formatted.returncode:
                raise BrokerFailed("its storage could not be formatted")
            # Killed with the thread that starts it, if that is killed; out of reach of a Ctrl-C meant for the tests.
            leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
            command = [*leash, *java, "kafka.Kafka", str(config)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _gone(self) -> str | None:
        code = None if self._process is None else self._process.poll()
        return None if code is None else f"it has exited with {code}"
