"""A broker for as long as a block runs."""

import socket
from pathlib import Path

import pytest

from groupcoord.config.config_def import ConfigError
from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.messages import MetadataRequest
from groupcoord.server.running import running
from groupcoord.server.server import Server
from groupcoord.storage.errors import StorageError
from tests.server.sockets import Client, Run

METADATA = APIS[ApiKey.METADATA]


async def topics_of(server: Server) -> dict[str, int]:
    """Topic → number of partitions, as a client is told."""
    client = await Client.connect(server)
    client.send(METADATA, MetadataRequest(topics=None))
    _, answer = await client.answer(METADATA)
    assert [(broker.host, broker.port) for broker in answer.brokers] == [(server.host, server.port)]
    await client.close()
    return {topic.name: len(topic.partitions) for topic in answer.topics if not topic.is_internal}


def test_it_serves_the_topics_asked_for(run: Run) -> None:
    async def story() -> None:
        async with running(topics={"orders": 3}) as server:
            assert await topics_of(server) == {"orders": 3}
        with pytest.raises(ConnectionRefusedError):
            await Client.connect(server)

    run(story())


def test_it_is_configured_as_a_broker(run: Run) -> None:
    async def story() -> None:
        async with running(config={"group.max.size": 5, "auto.create.topics.enable": False}) as server:
            assert server.cluster.config.group_max_size == 5
            assert server.cluster.config.auto_create_topics_enable is False
            assert server.cluster.config.group_initial_rebalance_delay_ms == 0
        async with running(dev=False) as server:
            assert server.cluster.config.group_initial_rebalance_delay_ms == 3_000

    run(story())


def test_several_brokers_are_a_cluster(run: Run) -> None:
    async def story() -> None:
        async with running(topics={"orders": 6}, brokers=3, racks=("a", "b")) as server:
            for broker in range(3):
                client = await Client.connect(server, broker)
                client.send(METADATA, MetadataRequest(topics=None))
                _, answer = await client.answer(METADATA)
                assert [f"{one.host}:{one.port}" for one in answer.brokers] == server.addresses
                assert [(one.node_id, one.rack) for one in answer.brokers] == [(1, "a"), (2, "b"), (3, "a")]
                orders, offsets = answer.topics if answer.topics[0].name == "orders" else answer.topics[::-1]
                assert {part.leader_id for part in orders.partitions} <= {1, 2, 3}
                assert {len(part.replica_nodes) for part in offsets.partitions} == {3}
                await client.close()

    run(story())


def test_brokers_that_cannot_be_are_refused(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        with pytest.raises(ValueError, match="data_dir is for one broker only"):
            await running(brokers=2, data_dir=tmp_path).__aenter__()
        with pytest.raises(ValueError, match="more racks"):
            await running(racks=("a", "b")).__aenter__()

    run(story())
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_data_directory_outlives_it(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        for _ in range(2):
            async with running(topics={"orders": 3}, data_dir=tmp_path) as server:
                assert await topics_of(server) == {"orders": 3}
            assert (tmp_path / ".kafka_cleanshutdown").exists()
        async with running(data_dir=tmp_path) as server:
            assert await topics_of(server) == {"orders": 3}
            with pytest.raises(StorageError, match="is in use"):
                await running(data_dir=tmp_path).__aenter__()

    run(story(), patience_s=120)  # it waits for the disk, hundreds of times


def test_what_cannot_be_is_refused(run: Run) -> None:
    async def story() -> None:
        with pytest.raises(ConfigError, match=r"group\.max\.size"):
            async with running(config={"group.max.syze": 5}):
                raise AssertionError
        with pytest.raises(ValueError, match="orders/"):
            async with running(topics={"orders/": 1}):
                raise AssertionError
        with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
            async with running(port=taken.getsockname()[1]):
                raise AssertionError

    run(story())


def test_what_went_wrong_unexpectedly_is_raised_at_the_end(run: Run) -> None:
    async def story() -> None:
        def fail(_: Event) -> None:
            raise ZeroDivisionError("a bug")

        with pytest.raises(ExceptionGroup) as raised:
            async with running(listeners=[fail]) as server:
                server._dispatcher._notify(None)  # type: ignore[arg-type]
        assert raised.group_contains(ZeroDivisionError, match="a bug")

    run(story())
