"""A cluster as a broker for programs: what it listens on, how it is configured, what it keeps in files."""

import socket
from pathlib import Path

import pytest

from groupcoord import Cluster, RemoteCluster
from groupcoord.config.config_def import ConfigError
from groupcoord.coordinator.events import RegexResolved
from groupcoord.core.events import Event
from groupcoord.storage.file_io import StorageError

pytestmark = pytest.mark.asyncio


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def test_it_is_configured_as_a_broker() -> None:
    async with Cluster(config={"group.max.size": 5, "auto.create.topics.enable": False}) as kafka:
        assert kafka.core.config.group_max_size == 5
        assert kafka.core.config.auto_create_topics_enable is False
        assert kafka.core.config.group_initial_rebalance_delay_ms == 0
    async with Cluster(dev=False) as kafka:
        assert kafka.core.config.group_initial_rebalance_delay_ms == 3_000


async def test_several_brokers_are_a_cluster() -> None:
    async with Cluster(topics={"orders": 6}, brokers=3, racks=("a", "b")) as kafka:
        brokers = {number + 1: address for number, address in enumerate(kafka.addresses)}
        for address in kafka.addresses:
            async with RemoteCluster(address) as remote:
                assert {each.id: each.address for each in remote.brokers.values()} == brokers
                assert dict(remote.brokers) == dict(kafka.brokers)
                assert [each.rack for each in remote.brokers.values()] == ["a", "b", "a"]


@pytest.mark.slow
async def test_a_data_directory_outlives_it(tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": 1}
    async with Cluster(topics={"orders": 3}, data_dir=tmp_path, clock="manual", config=settings) as kafka:
        (member,) = await kafka.consumers(1, "app", "orders")
        member.commit({("orders", 0): 5})
        await kafka.restart()
        assert await kafka.group("app").committed("orders", 0) == 5
        member.leave()
        await kafka.group("app").wait_empty()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    async with Cluster(topics={"orders": 3}, data_dir=str(tmp_path), config=settings) as kafka:
        await kafka.produce("orders", b"an espresso", partition=2)
        assert await kafka.group("app").committed("orders", 0) == 5
        with pytest.raises(StorageError, match="is in use"):
            await Cluster(data_dir=tmp_path).__aenter__()


@pytest.mark.slow
async def test_a_topic_created_after_a_restart_matches_an_expression_of_before(tmp_path: Path) -> None:
    settings = {"offsets.topic.num.partitions": 1}
    async with Cluster(topics={"orders": 1}, data_dir=tmp_path, clock="manual", config=settings) as kafka:
        for number in range(9):
            await kafka.create_topic(f"old-{number}", 1)
        await kafka.manual_consumer("app", regex="ord.*").reconcile()
        for number in range(9):
            await kafka.delete_topic(f"old-{number}")
    async with Cluster(data_dir=tmp_path, clock="manual", config=settings) as kafka:
        await kafka.create_topic("ordinals", 1)
        member = kafka.manual_consumer("app", regex="ord.*")
        await member.join()
        await kafka.clock.advance(20)
        await member.heartbeat()
        await member.heartbeat()  # the answer to the first comes before the expression is resolved
        (resolved,) = kafka.trace.of(RegexResolved)
        assert resolved.topics == ("orders", "ordinals")


async def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"group\.max\.size"):
        await Cluster(config={"group.max.syze": 5}).__aenter__()
    with pytest.raises(ValueError, match="orders/"):
        await Cluster(topics={"orders/": 1}).__aenter__()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await Cluster(port=taken.getsockname()[1]).__aenter__()


async def test_what_went_wrong_unexpectedly_is_raised_at_the_end() -> None:
    def fail(_: Event) -> None:
        raise ZeroDivisionError("a bug")

    async def story() -> None:
        async with Cluster(listeners=[fail], topics={"orders": 1}) as kafka:
            await kafka.manual_member("app", "orders").join()
            assert isinstance(kafka.server_errors[0], ZeroDivisionError)

    with pytest.raises(ExceptionGroup) as raised:
        await story()
    assert raised.group_contains(ZeroDivisionError, match="a bug")


async def test_ids_differ_from_run_to_run_unless_the_test_moves_the_clock() -> None:
    async def topic_id(clock: str) -> str:
        async with Cluster(clock=clock, topics={"orders": 1}) as kafka:
            return str(kafka.core.broker.topics.topic_id("orders"))

    assert await topic_id("manual") == await topic_id("manual")
    assert await topic_id("real") != await topic_id("real")
