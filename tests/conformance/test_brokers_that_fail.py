"""Three brokers that stop, die, pause and come back: groupcoord's do what three real ones did, step by step."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import groupcoord as gc
from tests.conformance import brokers_that_fail
from tests.conformance.brokers_that_fail import PROPERTIES, Observation, recorded
from tests.conformance.wire import Hungup
from tests.real_kafka.broker import RealKafkaUnavailable
from tests.real_kafka.cluster_process import KafkaClusterProcess
from tests.real_kafka.waiting import until

SESSION_S = 9.0
PATIENCE_S = 90.0


class OwnTrio:
    """groupcoord's brokers, whose time the story moves."""

    def __init__(self, kafka: gc.SyncCluster) -> None:
        self._kafka = kafka

    def ask(self, broker_id: int, request: Any, version: int) -> Any:
        return self._kafka.ask_broker(broker_id, request, version=version)

    def act(self, action: str, broker_id: int) -> None:
        getattr(self._kafka.broker(broker_id), action)()

    def settle(self) -> None:
        self._kafka.clock.advance(SESSION_S)


class RealTrio:
    """Real brokers."""

    def __init__(self, cluster: KafkaClusterProcess) -> None:
        self.ask = cluster.ask
        self._cluster = cluster

    def act(self, action: str, broker_id: int) -> None:
        getattr(self._cluster.nodes[broker_id], action)()

    def settle(self) -> None:
        """``look`` waits."""


@pytest.fixture(scope="module")
def real_trio() -> Iterator[RealTrio]:
    try:
        cluster = KafkaClusterProcess(PROPERTIES)
    except RealKafkaUnavailable as reason:
        (pytest.fail if os.environ.get("REQUIRE_REAL_KAFKA") == "1" else pytest.skip)(f"no real Kafka: {reason}")
    with cluster:
        yield RealTrio(cluster)


@pytest.mark.slow
def test_groupcoord_does_what_was_recorded() -> None:
    seen: dict[str, Observation] = {}

    def look(name: str, find: Callable[[], Observation]) -> None:
        seen[name] = find()
        assert seen[name] == recorded()[name], name

    with gc.Cluster(brokers=3, clock="manual", config=PROPERTIES).sync() as kafka:
        brokers_that_fail.tell(OwnTrio(kafka), look)
    assert list(seen) == list(recorded())


@pytest.mark.slow
@pytest.mark.real_kafka
def test_real_brokers_do_what_was_recorded(real_trio: RealTrio) -> None:
    expected = recorded()

    def shows(wanted: Observation, find: Callable[[], Observation]) -> bool:
        try:
            return find() == wanted
        except (OSError, Hungup):  # of a broker that the others have not missed yet
            return False

    def look(name: str, find: Callable[[], Observation]) -> None:
        is_write = name.endswith("write")  # what is written is written: this is looked at once
        if is_write or not until(lambda: shows(expected[name], find), PATIENCE_S):
            assert find() == expected[name], name

    brokers_that_fail.tell(real_trio, look)
