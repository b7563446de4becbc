"""The registry of a running cluster, asked for over sockets."""

from typing import Any

import pytest

from groupcoord import Cluster
from groupcoord.client.client_errors import BrokerError, DisconnectedError, UnsupportedVersionError
from groupcoord.client.network_client import NetworkClient
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.client.zookeeper_paths_reader import ZooKeeperTreeReader
from groupcoord.protocol.apis.metadata import MetadataRequest


@pytest.mark.slow
def test_what_is_read_is_what_the_cluster_knows() -> None:
    with Cluster(brokers=3, racks=("a", "b", "c"), topics={"orders": 2}).sync() as kafka:
        with ZooKeeperTreeReader(parse_addresses(kafka.address)) as reader:
            assert reader.read() == kafka.registry
            kafka.broker(3).stop()
            after = reader.read()
        assert after == kafka.registry
        assert after.children("/brokers/ids") == ["1", "2"]
        kafka.faults.when("DescribeQuorum").refuse("CLUSTER_AUTHORIZATION_FAILED")
        with ZooKeeperTreeReader(parse_addresses(kafka.address)) as reader:
            assert reader.read()["/controller"]["brokerid"] == 1, "as metadata has it"


def test_metadata_that_is_refused_is_an_error() -> None:
    with Cluster().sync() as kafka:
        kafka.faults.when("Metadata").refuse("CLUSTER_AUTHORIZATION_FAILED")
        refused = pytest.raises(BrokerError, match="the metadata of all topics: CLUSTER_AUTHORIZATION_FAILED")
        with ZooKeeperTreeReader(parse_addresses(kafka.address)) as reader, refused:
            reader.read()


def test_a_cluster_that_is_too_old_tells_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(topics={"orders": 1}).sync() as kafka:
        ask = NetworkClient.request_any

        async def as_an_old_broker(self: NetworkClient, request: Any) -> Any:
            if not isinstance(request, MetadataRequest):
                raise UnsupportedVersionError("no version in common")
            return await ask(self, request)

        monkeypatch.setattr(NetworkClient, "request_any", as_an_old_broker)
        with ZooKeeperTreeReader(parse_addresses(kafka.address)) as reader:
            found = reader.read()
        assert (found["/controller"]["brokerid"], found["/controller_epoch"]) == (1, -1)
        assert found["/brokers/topics/orders"] == kafka.registry["/brokers/topics/orders"]


def test_an_address_where_nobody_listens() -> None:
    with ZooKeeperTreeReader(parse_addresses("127.0.0.1:1")) as reader, pytest.raises(DisconnectedError):
        reader.read()
