"""Brokers that are registered, fenced and unregistered: as three real brokers did it, and where their story does not go."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import BrokerStateChanged, RegistrationRefused
from groupcoord.protocol.apis.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsPartition
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DescribeLogDirsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    UnregisterBrokerRequest,
)
from tests.conformance.brokers_registered import METADATA, STORIES, quorum_request, recorded
from tests.conformance.trios import check_own_trio

SESSION_S = 9.0
SIZE_OF_A_RECORD = 69


def trio(**config: Any) -> gc.Cluster:
    return gc.Cluster(
        brokers=3, clock="manual", config={name.replace("_", "."): value for name, value in config.items()}
    )


async def quorum(kafka: gc.Cluster, asked: int = 1) -> Any:
    answer = await kafka.ask_broker(asked, quorum_request((METADATA, [0])), version=2)
    return answer.topics[0].partitions[0], answer.nodes


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_as_three_real_brokers(story: str) -> None:
    check_own_trio(*STORIES[story], recorded()[story])


@pytest.mark.asyncio
async def test_each_start_of_a_broker_has_another_epoch() -> None:
    async with trio() as kafka:
        first = [kafka.broker(broker_id).epoch for broker_id in (1, 2, 3)]
        assert first == [1, 2, 3]
        await kafka.broker(2).pause()
        await kafka.clock.advance(SESSION_S)
        await kafka.broker(2).resume()
        assert kafka.broker(2).epoch == 2, "it was fenced, and is the same broker"
        await kafka.broker(2).stop()
        await kafka.broker(2).start()
        second = kafka.broker(2).epoch
        assert second is not None
        assert second > 3
        await kafka.broker(2).unregister()
        assert (kafka.broker(2).epoch, kafka.broker(2).is_registered) == (None, False)
        assert kafka.trace.of(BrokerStateChanged).last.text() == "broker 2 is unregistered"


@pytest.mark.asyncio
async def test_a_second_broker_of_an_id_is_refused_while_the_session_of_the_first_lives() -> None:
    async with trio() as kafka:
        with pytest.raises(gc.testing.DuplicateBrokerRegistrationError, match="broker 2 is running: another broker"):
            await kafka.broker(2).start()
        assert kafka.broker(2).state == "running"
        await kafka.broker(2).pause()
        with pytest.raises(gc.testing.DuplicateBrokerRegistrationError, match="DUPLICATE_BROKER_REGISTRATION"):
            await kafka.broker(2).start()
        assert kafka.trace.of(RegistrationRefused).last.text() == (
            "the registration of broker 2 is refused (DUPLICATE_BROKER_REGISTRATION): "
            "an earlier session of that id has not expired"
        )
        await kafka.broker(2).kill()
        await kafka.broker(2).start()
        assert len(kafka.trace.of(RegistrationRefused)) == 3
        assert kafka.broker(2).state == "starting"
        with pytest.raises(gc.testing.DuplicateBrokerRegistrationError):
            await kafka.broker(2).start()
        await kafka.clock.advance(SESSION_S)
        assert kafka.broker(2).state == "running"
        assert not kafka.broker(2).is_fenced


@pytest.mark.asyncio
async def test_a_broker_that_waits_for_its_old_session_registers_when_that_is_forgotten() -> None:
    async with trio() as kafka:
        await kafka.broker(3).kill()
        await kafka.broker(3).start()
        answer = await kafka.ask_broker(1, UnregisterBrokerRequest(broker_id=3), version=0)
        assert answer.error_code == ErrorCode.NONE
        assert kafka.broker(3).state == "running"
        assert kafka.broker(3).is_registered


@pytest.mark.asyncio
async def test_a_broker_that_is_not_registered_stops_without_a_word() -> None:
    async with trio() as kafka:
        await kafka.broker(3).unregister()
        with pytest.raises(ValueError, match="broker 3 is not registered"):
            await kafka.broker(3).unregister()
        with pytest.raises(ValueError, match="broker 3 is running: it cannot be started"):
            await kafka.broker(3).start()
        await kafka.create_topic("orders")
        with pytest.raises(ValueError, match="broker 3 is not registered: it cannot lead orders-0"):
            await kafka.move_leader("orders", 0, to=3)
        await kafka.broker(3).stop()
        await kafka.clock.advance(2 * SESSION_S)
        told = [event.state for event in kafka.trace.of(BrokerStateChanged, broker=3)]
        assert told == ["unregistered", "stopped"]


@pytest.mark.asyncio
async def test_a_broker_that_is_gone_is_described_for_five_minutes() -> None:
    async with trio() as kafka:
        await kafka.broker(2).kill()
        await kafka.clock.advance(299)
        partition, _ = await quorum(kafka)
        assert [each.replica_id for each in partition.observers] == [1, 2, 3]
        lag = partition.high_watermark - partition.observers[1].log_end_offset
        assert lag >= 2 * 299, "two records a second say that the controller is there"
        assert partition.current_voters[0].last_fetch_timestamp - partition.observers[1].last_fetch_timestamp == 299_000
        await kafka.clock.advance(1)
        partition, _ = await quorum(kafka)
        assert [each.replica_id for each in partition.observers] == [1, 3]
        await kafka.broker(2).start()
        partition, _ = await quorum(kafka)
        assert [each.log_end_offset for each in partition.observers] == [partition.high_watermark] * 3


@pytest.mark.asyncio
async def test_an_idle_controller_writes_nothing_if_it_is_told_so() -> None:
    async with gc.Cluster(clock="manual", config={"metadata.max.idle.interval.ms": 0}) as kafka:
        before, _ = await quorum(kafka)
        await kafka.clock.advance(60)
        after, _ = await quorum(kafka)
        assert after.high_watermark == before.high_watermark


@pytest.mark.asyncio
async def test_a_lone_broker_is_its_own_controller() -> None:
    async with gc.Cluster(clock="manual") as kafka:
        partition, (node,) = await quorum(kafka)
        assert (partition.leader_id, partition.observers) == (1, ())
        assert (node.node_id, node.listeners[0].name, node.listeners[0].port) == (1, "CONTROLLER", 0)


@pytest.mark.asyncio
async def test_the_controllers_are_those_that_are_configured() -> None:
    config = {"controller.quorum.voters": "100@localhost:19093,101@localhost:29093"}
    async with gc.Cluster(brokers=3, clock="manual", config=config) as kafka:
        partition, nodes = await quorum(kafka)
        assert [each.replica_id for each in partition.current_voters] == [100, 101]
        assert partition.leader_id == 100
        assert [(node.node_id, node.listeners[0].port) for node in nodes] == [(100, 19093), (101, 29093)]
    async with trio() as kafka:
        partition, nodes = await quorum(kafka)
        assert (partition.leader_id, nodes[0].node_id) == (3000, 3000)


@pytest.mark.asyncio
async def test_a_lone_broker_that_is_unregistered_is_named_by_nobody() -> None:
    """As one of Kafka that is its own controller."""
    async with gc.Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.ask_broker(1, UnregisterBrokerRequest(broker_id=1), version=0)
        answer = await kafka.ask_broker(1, MetadataRequest(topics=None), version=12)
        assert (answer.brokers, answer.controller_id) == ((), -1)
        assert {each.leader_id for topic in answer.topics for each in topic.partitions} == {-1}
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=("app",))
        (found,) = (await kafka.ask_broker(1, find, version=6)).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(ValueError, match="All brokers are currently fenced"):
            await kafka.create_topic("later")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_directory_is_the_one_that_keeps_the_data(tmp_path: Path) -> None:
    async def directory(kafka: gc.Cluster) -> Any:
        return (await kafka.ask_broker(1, DescribeLogDirsRequest(topics=None), version=5)).results[0]

    async with gc.Cluster(data_dir=tmp_path) as kafka:
        told = await directory(kafka)
        assert told.log_dir == str(tmp_path)
        assert 0 <= told.usable_bytes <= told.total_bytes
    async with gc.Cluster(config={"log.dirs": "/data/kafka"}) as kafka:
        told = await directory(kafka)
        assert (told.log_dir, told.total_bytes, told.usable_bytes) == ("/data/kafka", -1, -1)
    async with gc.Cluster() as kafka:
        assert (await directory(kafka)).log_dir == "/tmp/kafka-logs"


@pytest.mark.asyncio
async def test_the_size_of_a_copy_that_is_behind_is_that_of_what_it_has() -> None:
    config = {"default.replication.factor": 3, "log.roll.ms": 1_000}
    async with gc.Cluster(brokers=3, topics={"orders": 1}, clock="manual", config=config) as kafka:
        leader, slow, _ = kafka.core.broker.topics["orders"].metadata.replicas[0]
        await kafka.produce("orders", b"a")
        await kafka.clock.advance(2)
        await kafka.produce("orders", b"b")
        await kafka.broker(slow).pause_replication()
        writing = asyncio.ensure_future(kafka.produce("orders", b"c"))
        await kafka.settle()

        async def size(broker_id: int) -> int:
            asked = (DescribableLogDirTopic(topic="orders", partitions=(0,)),)
            answer = await kafka.ask_broker(broker_id, DescribeLogDirsRequest(topics=asked), version=5)
            log: DescribeLogDirsPartition = answer.results[0].topics[0].partitions[0]
            return log.partition_size

        assert len(kafka.core.broker.topics["orders"].partitions[0].segments) == 2
        assert await size(slow) == 2 * SIZE_OF_A_RECORD
        assert await size(leader) == 3 * SIZE_OF_A_RECORD
        await kafka.broker(slow).resume_replication()
        await writing
        assert await size(slow) == 3 * SIZE_OF_A_RECORD
