"""A lone broker in a container, by testcontainers, from Apache's image or the one of ``make kafka-image``.

testcontainers' own KafkaContainer assumes Confluent's image and its start script; Apache's takes properties as variables.
"""

import os
import socket
from collections.abc import Mapping
from types import MappingProxyType

from docker.errors import DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, end_of_log
from tests.real_kafka.image import kafka_version, local_image, usable_image
from tests.real_kafka.waiting import until_it_coordinates

STARTED_BY = "groupcoord.started-by"
"""The label that says which process a container belongs to, as ``host:process id``."""


class KafkaContainer(DockerContainer):
    """``properties`` are broker properties under Kafka's names. Raises RealKafkaUnavailable when none can be started here."""

    def __init__(self, properties: Mapping[str, str] = MappingProxyType({}), version: str | None = None) -> None:
        version = version or kafka_version()
        image = usable_image(version)
        if image == local_image(version):
            # Where the image was built, the image of testcontainers' reaper can hardly be pulled.
            testcontainers_config.ryuk_disabled = True
        super().__init__(image)
        self.what = f"container of {image}"
        self.port = lone_node.free_port()
        self._partitions = lone_node.offsets_partitions(properties)
        # The address is part of the broker's own configuration, so that the port cannot be left to Docker.
        self.ports["9092/tcp"] = ("127.0.0.1", self.port)  # type: ignore[assignment]
        for name, value in lone_node.properties(self.port, properties).items():
            self.with_env(lone_node.variable(name), value)
        self.with_env("KAFKA_HEAP_OPTS", lone_node.HEAP).with_env("KAFKA_JVM_PERFORMANCE_OPTS", lone_node.QUICK)
        self.with_env("CLUSTER_ID", lone_node.CLUSTER_ID)
        self.with_kwargs(labels={STARTED_BY: f"{socket.gethostname()}:{os.getpid()}"})

    @property
    def bootstrap_servers(self) -> str:
        """``127.0.0.1:PORT``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> "KafkaContainer":
        """Start it. Returns when it coordinates all groups. Raises BrokerFailed with the log, if it never does."""
        self._remove_orphans()
        super().start()
        try:
            until_it_coordinates(self.port, self._partitions, self._gone)
        except BrokerFailed as problem:
            raise BrokerFailed(f"{self.what}: {problem}\n{end_of_log(self.what, self.log())}") from problem
        return self

    def log(self) -> str:
        """Everything that the broker has logged so far."""
        return bytes(self.get_wrapped_container().logs()).decode(errors="replace")

    def _gone(self) -> str | None:
        self.reload()
        return f"it has {self.status}" if self.status in {"exited", "dead"} else None

    def _remove_orphans(self) -> None:
        """Remove what runs of this machine left behind that were killed before they could clean up."""
        for container in self.get_docker_client().client.containers.list(all=True, filters={"label": STARTED_BY}):
            host, _, process = container.labels[STARTED_BY].rpartition(":")
            if host == socket.gethostname() and not _lives(int(process)):
                try:
                    container.remove(force=True, v=True)
                except DockerException:
                    continue  # somebody else is removing it


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
