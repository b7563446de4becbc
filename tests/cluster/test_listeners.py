"""A client is told the addresses of the listener it came by, whatever it asks."""

from typing import Any

import pytest

from groupcoord.cluster.assemble import assemble
from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS
from groupcoord.protocol.apis.describe_configs import DescribeConfigsResource
from groupcoord.protocol.apis.describe_topic_partitions import TopicRequest
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.metadata import MetadataRequestTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    ProduceRequest,
)
from groupcoord.testing.engine import SeededRandomSource
from tests.broker.data_plane import batch

_API_OF = {api.request: api for api in APIS.values()}

LISTENERS = (
    "listeners=INSIDE://:29092,HOST://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map=INSIDE:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name=INSIDE",
)
ADVERTISED = "advertised.listeners=INSIDE://kafka:29092,HOST://localhost:9092"
TOLD = {0: ("kafka", 29092), 1: ("localhost", 9092)}


def cluster(*items: str, brokers: int = 1) -> ClusterCore:
    config = load((*LISTENERS, *items), dev=True, brokers=brokers)
    topics = [("orders", 4)]
    return assemble(config, random=SeededRandomSource(1), now_ms=0, topics=topics, brokers=brokers).core


def ask(core: ClusterCore, request: Any, listener: int, version: int | None = None, broker: int = 0) -> Any:
    api = _API_OF[type(request)]
    call = Call(1, 1, api, api.max_version if version is None else version, "me", "/127.0.0.1", broker, listener)
    effects = [*core.handle(call, request, 0), *core.flush(0)]
    (reply,) = [effect for effect in effects if isinstance(effect, Reply) and effect.call == call]
    return reply.response


def places(told: Any) -> list[tuple[str, int]]:
    return [(one.host, one.port) for one in told]


@pytest.mark.parametrize("listener", [0, 1])
@pytest.mark.parametrize("brokers", [1, 2])
def test_brokers_and_coordinators_are_those_of_the_listener(listener: int, brokers: int) -> None:
    core = cluster(ADVERTISED, brokers=brokers)
    host, port = TOLD[listener]
    expected = [(host, port + number) for number in range(brokers)]
    assert places(ask(core, MetadataRequest(topics=()), listener).brokers) == expected
    assert places(ask(core, DescribeClusterRequest(), listener).brokers) == expected
    ask(core, FindCoordinatorRequest(coordinator_keys=("x",), key_type=1), listener)  # creates the topic
    for key_type in (0, 1):
        keys = tuple(f"app-{number}" for number in range(10))
        found = ask(core, FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type), listener).coordinators
        assert {(one.node_id, one.host, one.port) for one in found} == {
            (1 + number, *place) for number, place in enumerate(expected)
        }


@pytest.mark.parametrize("listener", [0, 1])
def test_who_asks_the_wrong_broker_is_told_the_leader_by_the_listener(listener: int) -> None:
    core = cluster(ADVERTISED, brokers=2)
    orders = core.broker.topics.get("orders")
    assert orders is not None
    partition = orders.metadata.leaders.index(2)
    host, port = TOLD[listener]
    data = PartitionProduceData(index=partition, records=batch(b"v"))
    produce = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="orders", partition_data=(data,)),)
    )
    assert places(ask(core, produce, listener, 12).node_endpoints) == [(host, port + 1)]
    wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic_id=orders.topic_id, partitions=(wanted,))
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
    assert places(ask(core, fetch, listener, 16).node_endpoints) == [(host, port + 1)]


def test_where_nothing_is_advertised_each_listener_tells_where_it_listens() -> None:
    core = cluster()
    core.listening_at("127.0.0.1", 4711)
    core.listening_at("127.0.0.2", 4712, 1)
    for listener, expected in enumerate([("127.0.0.1", 4711), ("127.0.0.2", 4712)]):
        assert places(ask(core, MetadataRequest(topics=()), listener).brokers) == [expected]
        found = ask(core, FindCoordinatorRequest(coordinator_keys=("app",)), listener).coordinators
        assert places(found) == [expected]


def test_every_broker_describes_all_its_listeners() -> None:
    core = cluster(ADVERTISED, brokers=2)
    resource = DescribeConfigsResource(
        resource_type=4, resource_name="2", configuration_keys=("listeners", "advertised.listeners")
    )
    for listener in (0, 1):
        (result,) = ask(core, DescribeConfigsRequest(resources=(resource,)), listener, broker=1).results
        assert {one.name: one.value for one in result.configs} == {
            "listeners": "INSIDE://:29092,HOST://:9092,CONTROLLER://:9093",
            "advertised.listeners": "INSIDE://kafka:29093,HOST://localhost:9093",
        }


@pytest.mark.parametrize("brokers", [1, 2])
def test_clients_of_a_listener_that_is_not_advertised_are_told_of_no_broker(brokers: int) -> None:
    """As Kafka 4.3.1 answered on such a listener."""
    core = cluster("advertised.listeners=INSIDE://kafka:29092", brokers=brokers)
    orders = core.broker.topics.get("orders")
    assert orders is not None
    host = 1

    def partitions(version: int) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
        named = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
        answer = ask(core, named, host, version)
        assert answer.brokers == ()
        return [
            (each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes, each.offline_replicas)
            for each in answer.topics[0].partitions
        ]

    assert [each[:4] for each in partitions(0)] == [(E.LEADER_NOT_AVAILABLE, -1, (), ())] * 4
    for version, error in (5, E.LEADER_NOT_AVAILABLE), (6, E.LISTENER_NOT_FOUND), (13, E.LISTENER_NOT_FOUND):
        assert partitions(version) == [(error, -1, each, each, each) for each in orders.metadata.replicas]
    assert ask(core, MetadataRequest(topics=()), host).controller_id == 1
    described = ask(core, DescribeClusterRequest(), host)
    assert (described.controller_id, described.brokers) == (-1, ())
    wanted = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="orders"),), response_partition_limit=10)
    assert [
        (each.error_code, each.leader_id, each.replica_nodes, each.offline_replicas)
        for each in ask(core, wanted, host).topics[0].partitions
    ] == [(E.NONE, -1, each, each) for each in orders.metadata.replicas]
    for key_type in (0, 1):
        (found,) = ask(core, FindCoordinatorRequest(coordinator_keys=("app",), key_type=key_type), host).coordinators
        assert (found.error_code, found.node_id) == (E.COORDINATOR_NOT_AVAILABLE, -1)
    assert places(ask(core, MetadataRequest(topics=()), 0).brokers)[0] == ("kafka", 29092)
    resource = DescribeConfigsResource(
        resource_type=4, resource_name=str(brokers), configuration_keys=("advertised.listeners",)
    )
    (result,) = ask(core, DescribeConfigsRequest(resources=(resource,)), 0, broker=brokers - 1).results
    assert [each.value for each in result.configs] == [f"INSIDE://kafka:{29091 + brokers}"]
