"""A real broker whose log directory outlives it, so that a test can change its files between two runs."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.real_kafka.process import KafkaProcess


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

    def _made_folder(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def stop(self) -> None:
        """End it in order; its files stay."""
        self._end()
        self._log = self.log()

    def run_class(self, name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One of Kafka's command-line classes of the same version, ended or not."""
        return self._java.run_class(name, *arguments)
