"""A real broker whose log directory outlives it, so that files can be taken out and put in between two lives."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

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

    def run_class(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One of Kafka's command-line classes of the same version, ended or not."""
        return self._java.run_class(name, *arguments)
