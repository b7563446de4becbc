"""The interface of three brokers, real ones or groupcoord's, for stories of brokers and partitions."""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

import groupcoord as gc
from groupcoord.cluster.network_cuts import Peer
from groupcoord.protocol.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.conformance.wire import Hungup
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.cluster_process import CONTROLLER, KafkaClusterProcess
from tests.real_kafka.waiting import until

SESSION_S = 9.0
SHORT_SESSION = {"broker.session.timeout.ms": "5000", "broker.heartbeat.interval.ms": "500"}
"""Real brokers are fenced sooner, within SESSION_S."""
PATIENCE_S = 90.0

Observation = dict[str, Any]
Look = Callable[[str, Callable[[], Observation]], None]
"""Given the name of a step, and what finds out what came of it."""


class Trio(Protocol):
    """Three brokers under test, with the ids 1, 2 and 3."""

    silence_ms: int
    """How long nothing is to come of what is not answered yet."""

    def address(self, broker_id: int) -> tuple[str, int]:
        """Where clients find that broker: host and port."""

    def ask(self, broker_id: int, request: Any, version: int) -> Any:
        """The answer of that broker. Raises OSError if there is none."""

    def act(self, action: str, broker_id: int) -> None:
        """``stop``, ``kill``, ``pause``, ``resume`` or ``start`` that broker, or the controller."""

    def cut_off(self, broker_id: int, peer: Peer) -> None:
        """Cut the network between that broker and another one or the ``controller``."""

    def reconnect(self, broker_id: int, peer: Peer) -> None:
        """Mend what ``cut_off`` has cut."""

    def settle(self, seconds: float = SESSION_S) -> None:
        """Let so many seconds pass, by default until the sessions of brokers end that are silent."""


class OwnTrio:
    """groupcoord's brokers, whose time the story moves."""

    silence_ms = 20

    def __init__(self, kafka: gc.SyncCluster) -> None:
        self._kafka = kafka

    def address(self, broker_id: int) -> tuple[str, int]:
        host, _, port = self._kafka.brokers[broker_id].address.rpartition(":")
        return host, int(port)

    def ask(self, broker_id: int, request: Any, version: int) -> Any:
        return self._kafka.ask_broker(broker_id, request, version=version)

    def act(self, action: str, broker_id: int) -> None:
        node = self._kafka.controller if broker_id == CONTROLLER else self._kafka.broker(broker_id)
        getattr(node, action)()

    def cut_off(self, broker_id: int, peer: Peer) -> None:
        self._kafka.broker(broker_id).cut_off(peer)

    def reconnect(self, broker_id: int, peer: Peer) -> None:
        self._kafka.broker(broker_id).reconnect(peer)

    def settle(self, seconds: float = SESSION_S) -> None:
        self._kafka.clock.advance(seconds)


class RealTrio:
    """Real brokers."""

    silence_ms = 500

    def __init__(self, cluster: KafkaClusterProcess) -> None:
        self.ask = cluster.ask
        self.ports = cluster.ports
        self.restore = cluster.restore
        self._cluster = cluster

    def address(self, broker_id: int) -> tuple[str, int]:
        return "127.0.0.1", self._cluster.ports[broker_id]

    def act(self, action: str, broker_id: int) -> None:
        getattr(self._cluster.nodes[broker_id], action)()

    def cut_off(self, broker_id: int, peer: Peer) -> None:
        self._cluster.cut_off(broker_id, _node(peer))

    def reconnect(self, broker_id: int, peer: Peer) -> None:
        self._cluster.reconnect(broker_id, _node(peer))

    def settle(self, seconds: float = SESSION_S) -> None:
        """Who looks waits."""


def _node(peer: Peer) -> int:
    return peer if isinstance(peer, int) else CONTROLLER


@contextmanager
def real_trio(properties: Mapping[str, str]) -> Iterator[RealTrio]:
    """Real brokers. Where none can be started the test is skipped, or fails under REQUIRE_REAL_KAFKA=1."""
    try:
        cluster = KafkaClusterProcess(properties)
    except RealKafkaUnavailable as reason:
        (pytest.fail if os.environ.get("REQUIRE_REAL_KAFKA") == "1" else pytest.skip)(f"no real Kafka: {reason}")
    with cluster:
        yield RealTrio(cluster)


def create_topics(
    trio: Trio, topics: Mapping[str, Sequence[Sequence[int]]], configs: Mapping[str, Mapping[str, str]]
) -> dict[str, uuid.UUID]:
    """Create topics with the brokers of their partitions, and with what ``configs`` has for them. Returns their ids."""
    wanted = tuple(
        CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
                for index, brokers in enumerate(placed)
            ),
            configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in configs.get(name, {}).items()),
        )
        for name, placed in topics.items()
    )
    answer = trio.ask(1, CreateTopicsRequest(topics=wanted, timeout_ms=9000), 7)
    assert [topic.error_code for topic in answer.topics] == [0] * len(topics)
    return {topic.name: topic.topic_id for topic in answer.topics}


def look_until(expected: Mapping[str, Observation], once: str) -> Look:
    """Looks at real brokers until they are as expected, or for too long; at a step whose name ends with ``once`` only once."""

    def shows(wanted: Observation, find: Callable[[], Observation]) -> bool:
        try:
            return find() == wanted
        except (OSError, Hungup):  # of a broker that the others have not missed yet
            return False

    def look(name: str, find: Callable[[], Observation]) -> None:
        if name.endswith(once) or not until(lambda: shows(expected[name], find), PATIENCE_S):
            assert find() == expected[name], name

    return look


def check_own_trio(
    tell: Callable[[Trio, Look], None], properties: Mapping[str, str], expected: Mapping[str, Observation]
) -> None:
    """Tell a story to groupcoord's brokers: each step is as expected, and there is no other."""
    seen: list[str] = []

    def look(name: str, find: Callable[[], Observation]) -> None:
        seen.append(name)
        assert find() == expected[name], name

    with gc.Cluster(brokers=3, clock="manual", config=properties).sync() as kafka:
        tell(OwnTrio(kafka), look)
    assert seen == list(expected)
