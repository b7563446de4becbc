"""Several brokers as child processes, with a controller of their own: they can be stopped, killed, paused and started again.

The network between them can be cut. Nodes find each other by names. Each node has a file of hosts of its own, where the name of
another one is an address at which a relay listens, for the two of them alone.
"""

import itertools
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from groupcoord.protocol.apis.metadata import MetadataRequest
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_request, parse_response
from tests.conformance.wire import SocketWire
from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, end_of_log
from tests.real_kafka.image import kafka_version
from tests.real_kafka.kafka_java import KafkaJava, end, write_config
from tests.real_kafka.process import quick_java
from tests.real_kafka.relay import Relay
from tests.real_kafka.waiting import START_S, until
from tests.suspending import suspend

CONTROLLER = 100
"""The id of the node that is the controller."""


def _host(node_id: int) -> str:
    return f"node-{node_id}"


class Node:
    """One node; its data stays while it does not run."""

    def __init__(
        self, node_id: int, properties: Mapping[str, str], folder: Path, java: KafkaJava, hosts: Mapping[str, str]
    ) -> None:
        self.id = node_id
        self._folder = folder / str(node_id)
        self._folder.mkdir()
        self._config = self._folder / "server.properties"
        write_config(self._config, {**properties, "node.id": str(node_id), "log.dirs": str(self._folder / "data")})
        hosts_file = self._folder / "hosts"
        hosts_file.write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
        self._java, self._finds = java, f"-Djdk.net.hosts.file={hosts_file}"
        self._process: subprocess.Popen[bytes] | None = None

    def format(self) -> None:
        """Make its data directory."""
        with (self._folder / "log").open("ab") as log:
            self._java.format(self._config, self.id, self._folder / "data", log)

    def start(self) -> None:
        """Start it, or start it again."""
        with (self._folder / "log").open("ab") as log:
            self._process = self._java.start(self._config, log, self._finds)

    def stop(self) -> None:
        """SIGTERM: a broker hands over what it leads first."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP."""
        assert self._process is not None
        suspend(self._process)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def run(self) -> None:
        """Start it or let it go on, unless it runs."""
        if self._process is None:
            self.start()
        else:
            self.resume()

    def log(self) -> str:
        """What it has logged."""
        return (self._folder / "log").read_text(errors="replace")


class KafkaClusterProcess:
    """``brokers`` brokers with ids from 1 on. Raises RealKafkaUnavailable when none can be started here."""

    def __init__(self, properties: Mapping[str, str] = MappingProxyType({}), brokers: int = 3) -> None:
        self._java = quick_java(kafka_version())
        self._properties = properties
        self.ports = {broker_id: lone_node.free_port() for broker_id in range(1, brokers + 1)}
        self.nodes: dict[int, Node] = {}
        self._relays: dict[tuple[int, int], Relay] = {}

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="real-kafka-cluster-"))
        inside = {node_id: lone_node.free_port() for node_id in (*self.ports, CONTROLLER)}
        common = {
            "controller.quorum.voters": f"{CONTROLLER}@{_host(CONTROLLER)}:{inside[CONTROLLER]}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            **self._properties,
        }
        for node_id, port in inside.items():
            own = {
                "process.roles": "controller",
                "listeners": f"CONTROLLER://127.0.0.1:{port}",
                "advertised.listeners": f"CONTROLLER://{_host(node_id)}:{port}",
            }
            if node_id != CONTROLLER:
                clients = f"CLIENT://127.0.0.1:{self.ports[node_id]}"
                own = {
                    "process.roles": "broker",
                    "inter.broker.listener.name": "BROKER",
                    "listeners": f"{clients},BROKER://127.0.0.1:{port}",
                    "advertised.listeners": f"{clients},BROKER://{_host(node_id)}:{port}",
                }
            hosts = {_host(other): f"127.0.{node_id}.{other}" for other in inside if other != node_id}
            hosts[_host(node_id)] = "127.0.0.1"
            self.nodes[node_id] = Node(node_id, {**common, **own}, self._folder, self._java, hosts)
        try:
            for one, other in itertools.permutations(inside, 2):
                self._relays[one, other] = Relay(f"127.0.{one}.{other}", inside[other])
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(Node.format, self.nodes.values()))
            for node in self.nodes.values():
                node.start()
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.kill()
        for relay in self._relays.values():
            relay.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def cut_off(self, one: int, other: int) -> None:
        """Cut the network between two nodes; what they send each other waits."""
        self._relays[one, other].cut()
        self._relays[other, one].cut()

    def reconnect(self, one: int, other: int) -> None:
        """Mend what ``cut_off`` has cut."""
        self._relays[one, other].mend()
        self._relays[other, one].mend()

    def restore(self) -> None:
        """All nodes run, nothing is cut, and there are no topics. Raises BrokerFailed."""
        for relay in self._relays.values():
            relay.mend()
        for node in self.nodes.values():
            node.run()
        self._wait()
        names = [topic.name for topic in self.ask(1, MetadataRequest(topics=None), 12).topics]
        gone = tuple(DeleteTopicState(name=name) for name in names)
        self.ask(1, DeleteTopicsRequest(topics=gone, timeout_ms=9000), 6)
        if not until(lambda: not any(map(self._topics, self.ports)), START_S):
            raise BrokerFailed(f"topics stay that were deleted within {START_S} s: {', '.join(names)}")

    def ask(self, broker_id: int, request: Any, version: int) -> Any:
        """The answer of that broker. Raises OSError."""
        api = API_BY_REQUEST[type(request)]
        wire = SocketWire("127.0.0.1", self.ports[broker_id])
        try:
            wire.send(encode_request(api, version, 1, "judge", request))
            frame = wire.receive(15_000)
        finally:
            wire.close()
        if frame is None:
            raise OSError(f"broker {broker_id} does not answer")
        return parse_response(api, version, frame)[1]

    def _wait(self) -> None:
        if not until(lambda: all(map(self._knows_all, self.ports)), START_S):
            logs = "\n".join(end_of_log(f"node {node.id}", node.log()) for node in self.nodes.values())
            raise BrokerFailed(f"no cluster of {len(self.ports)} within {START_S} s\n{logs}")

    def _topics(self, broker_id: int) -> int:
        return len(self.ask(broker_id, MetadataRequest(topics=None), 12).topics)

    def _knows_all(self, broker_id: int) -> bool:
        try:
            return len(self.ask(broker_id, MetadataRequest(topics=()), 12).brokers) == len(self.ports)
        except (OSError, WireError):
            return False
