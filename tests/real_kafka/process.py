"""A lone broker as a child process: what is left where there is no Docker, but Java and the jars of ``make kafka-libs``.

Most of what a broker costs that lives for a test is its start: Java reads, checks and compiles classes. So Java compiles with
its quick compiler alone, and takes the classes from an archive (JEP 350) beside the jars, which the first broker makes.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, end_of_log
from tests.real_kafka.image import kafka_version
from tests.real_kafka.kafka_java import KafkaJava, end, write_config
from tests.real_kafka.waiting import until_it_coordinates


def quick_java(version: str) -> KafkaJava:
    """A Java with which a broker starts quickly. Raises RealKafkaUnavailable, BrokerFailed."""
    archive = KafkaJava(version).archive
    options = lone_node.QUICK.split()
    if not archive.exists():
        written = archive.with_suffix(f".{os.getpid()}")  # others of this machine may do the same at the same time
        with KafkaProcess(java=lambda _: KafkaJava(version, [*options, f"-XX:ArchiveClassesAtExit={written}"])):
            pass
        if not written.exists():  # it was killed before it had written it
            return KafkaJava(version, options)
        written.replace(archive)
    return KafkaJava(version, [*options, f"-XX:SharedArchiveFile={archive}"])


class KafkaProcess:
    """``properties`` are broker properties under Kafka's names; ``java`` is KafkaJava if the broker is to be measured.

    Raises RealKafkaUnavailable when none can be started here.
    """

    def __init__(
        self,
        properties: Mapping[str, str] = MappingProxyType({}),
        version: str | None = None,
        *,
        java: Callable[[str], KafkaJava] = quick_java,
    ) -> None:
        self._java = java(version or kafka_version())
        self.what = f"process of {self._java.what}"
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
        self._folder = self._made_folder()
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

    def _made_folder(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="real-kafka-"))

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
            end(self._process)
            self._process = None

    def log(self) -> str:
        """Everything that the broker has logged so far."""
        path = self._folder / "log" if self._folder else None
        return path.read_text(errors="replace") if path and path.exists() else self._log

    def _start(self, folder: Path) -> None:
        config = folder / "server.properties"
        with (folder / "log").open("ab") as log:
            if not config.exists():
                data = folder / "data"
                write_config(config, {**self._properties, "log.dirs": str(data)})
                self._java.format(config, int(self._properties["node.id"]), data, log)
            self._process = self._java.start(config, log)

    def _gone(self) -> str | None:
        code = None if self._process is None else self._process.poll()
        return None if code is None else f"it has exited with {code}"
