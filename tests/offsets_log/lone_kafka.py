"""A real broker whose log directory outlives it, so that files can be taken out and put in between two lives."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, end_of_log
from tests.real_kafka.process import KafkaProcess
from tests.real_kafka.waiting import until_it_coordinates


class LoneKafka(KafkaProcess):
    """Kafka as a child process with its logs in ``folder/data``; runs as a context manager, as often as wanted.

    Raises RealKafkaUnavailable without Java or the jars, and what KafkaProcess raises.
    """

    def __init__(
        self, folder: Path, properties: Mapping[str, str] = MappingProxyType({}), version: str | None = None
    ) -> None:
        super().__init__(properties, version)
        self.folder = folder
        self.data = folder / "data"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._folder = self.folder
        try:
            if self.data.exists():
                self._start_again()
            else:
                self._start(self.folder)
            until_it_coordinates(self.port, self._partitions, self._gone)
        except BrokerFailed as problem:
            self.stop()
            raise BrokerFailed(f"{problem}\n{end_of_log(self.what, self._log)}") from problem
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it in order; its files stay."""
        self._end()
        self._log = self.log()

    def _start_again(self) -> None:
        command = ["java", *lone_node.HEAP.split(), "-cp", f"{self._libs}/*"]
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*leash, *command, "kafka.Kafka", str(self.folder / "server.properties")],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run_class(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One of Kafka's command-line classes of the same version, ended or not."""
        java = ["java", "-Xlog:disable", "-XX:TieredStopAtLevel=1", "-cp", f"{self._libs}/*"]
        return subprocess.run([*java, name, *arguments], capture_output=True, text=True, check=False)
