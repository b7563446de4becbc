"""Several brokers as child processes, with a controller of their own: they can be stopped, killed, paused and started again."""

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
from groupcoord.protocol.apis.metadata import MetadataRequest
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import encode_request, parse_response
from tests.conformance.wire import SocketWire
from tests.real_kafka import lone_node
from tests.real_kafka.broker import BrokerFailed, RealKafkaUnavailable, end_of_log
from tests.real_kafka.image import kafka_version
from tests.real_kafka.process import DOCKER_KAFKA, STOP_S, libs_of, why_not
from tests.real_kafka.waiting import START_S, until

CONTROLLER = 100
"""The id of the node that is the controller."""


class Node:
    """One node; its data stays while it does not run."""

    def __init__(self, node_id: int, properties: Mapping[str, str], folder: Path, libs: Path) -> None:
        self.id = node_id
        self._folder = folder / str(node_id)
        self._folder.mkdir()
        self._config = self._folder / "server.properties"
        lines = {**properties, "node.id": str(node_id), "log.dirs": str(self._folder / "data")}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        logging = f"-Dlog4j2.configurationFile={DOCKER_KAFKA / 'conf' / 'log4j2.yaml'}"
        self._java = ["java", *lone_node.HEAP.split(), "-XX:TieredStopAtLevel=1", logging, "-cp", f"{libs}/*"]
        self._process: subprocess.Popen[bytes] | None = None

    def format(self) -> None:
        """Make its data directory."""
        command = [*self._java, "kafka.tools.StorageTool", "format", "--cluster-id", lone_node.CLUSTER_ID]
        with (self._folder / "log").open("ab") as log:
            subprocess.run([*command, "--config", self._config], stdout=log, stderr=log, check=True)

    def start(self) -> None:
        """Start it, or start it again."""
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        command = [*leash, *self._java, "kafka.Kafka", str(self._config)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def stop(self) -> None:
        """SIGTERM: a broker hands over what it leads first."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
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
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        """What it has logged."""
        return (self._folder / "log").read_text(errors="replace")


class KafkaClusterProcess:
    """``brokers`` brokers with ids from 1 on. Raises RealKafkaUnavailable when none can be started here."""

    def __init__(self, properties: Mapping[str, str] = MappingProxyType({}), brokers: int = 3) -> None:
        self._libs = libs_of(kafka_version())
        java = shutil.which("java")
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr if java else ""
        if reason := why_not(self._libs, java, said):
            raise RealKafkaUnavailable(reason)
        self._properties = properties
        self.ports = {broker_id: lone_node.free_port() for broker_id in range(1, brokers + 1)}
        self.nodes: dict[int, Node] = {}

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="real-kafka-cluster-"))
        controller = lone_node.free_port()
        common = {
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            **self._properties,
        }
        of_controller = {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{controller}"}
        self.nodes[CONTROLLER] = Node(CONTROLLER, {**common, **of_controller}, self._folder, self._libs)
        for broker_id, port in self.ports.items():
            listeners = f"CLIENT://127.0.0.1:{port},BROKER://127.0.0.1:{lone_node.free_port()}"
            of_broker = {"process.roles": "broker", "inter.broker.listener.name": "BROKER"}
            of_broker |= {"listeners": listeners, "advertised.listeners": listeners}
            self.nodes[broker_id] = Node(broker_id, {**common, **of_broker}, self._folder, self._libs)
        try:
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
        shutil.rmtree(self._folder, ignore_errors=True)

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

    def _knows_all(self, broker_id: int) -> bool:
        try:
            return len(self.ask(broker_id, MetadataRequest(topics=()), 12).brokers) == len(self.ports)
        except (OSError, WireError):
            return False
