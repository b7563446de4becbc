"""The properties of a lone KRaft node, broker and controller in one, and how a container is told them."""

import random
import socket
from collections.abc import Mapping
from contextlib import suppress

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
"""Kafka's own default for containers; any base64 of sixteen bytes would do."""

OF_LISTENERS = {"listeners", "advertised.listeners", "listener.security.protocol.map"}

HEAP = "-Xms128m -Xmx512m"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The options of a Java whose broker starts with half the processor time, and is slower under load."""


def properties(
    advertised: int, given: Mapping[str, str], *, host: str = "", ports: tuple[int, int, int] = (9092, 19092, 9093)
) -> dict[str, str]:
    """All properties of a node that clients find at 127.0.0.1:``advertised``, with those ``given`` in the end. Listeners that
    are given are more of them.

    ``ports`` are where it listens on ``host`` (empty: on all addresses) to clients, to itself as a broker and to itself as
    a controller.
    """
    client, broker, controller = ports
    inside = host or "localhost"
    own = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{inside}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"CLIENT://{host}:{client},BROKER://{host}:{broker},CONTROLLER://{host}:{controller}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{advertised},BROKER://{inside}:{broker}",
        # Kafka's defaults want three brokers.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    return {**own, **given, **{name: f"{own[name]},{given[name]}" for name in OF_LISTENERS & given.keys()}}


def offsets_partitions(given: Mapping[str, str]) -> int:
    """How many partitions ``__consumer_offsets`` will have."""
    return int(given.get("offsets.topic.num.partitions", "50"))


def variable(name: str) -> str:
    """The environment variable that stands for a property in apache/kafka."""
    return "KAFKA_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()


_PORTS = random.SystemRandom().sample(range(20_000, 30_000), 10_000)
"""In an order that no other process has, whatever its seed is."""


def free_port() -> int:
    """A port on 127.0.0.1 that is free, another one each time.

    It is from below those that sockets of clients get: none can take it meanwhile.
    """
    while True:
        port = _PORTS.pop()
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
