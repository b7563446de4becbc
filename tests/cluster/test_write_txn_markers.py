"""Markers of transactions on a cluster of three: they wait for replicas, as what is written with acks=all."""

import asyncio
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.protocol.apis.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import WriteTxnMarkersRequest
from tests.testing.retrying import done

pytestmark = pytest.mark.asyncio
SESSION_S, LAG_S, REQUEST_TIMEOUT_S = 9.0, 60.0, 30.0
CONFIG = {
    "default.replication.factor": 3,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "replica.lag.time.max.ms": int(LAG_S * 1000),
}


def trio() -> gc.Cluster:
    return gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=CONFIG)


def replicas(kafka: gc.Cluster) -> tuple[int, list[int]]:
    """The leader of orders-0, and its followers."""
    leader = kafka.core.broker.topics["orders"].metadata.leaders[0]
    return leader, [one for one in kafka.brokers if one != leader]


def end(kafka: gc.Cluster) -> int:
    return kafka.core.broker.existing_log("orders", 0).log_end_offset


async def mark(kafka: gc.Cluster) -> "asyncio.Task[Any]":
    """WriteTxnMarkers to orders-0 at its leader; the task is done when that is answered."""
    topics = (WritableTxnMarkerTopic(name="orders", partition_indexes=(0,)),)
    request = WriteTxnMarkersRequest(
        markers=(WritableTxnMarker(producer_id=7, producer_epoch=1, topics=topics, coordinator_epoch=0),)
    )
    asked = asyncio.ensure_future(kafka.ask_broker(replicas(kafka)[0], request, version=1))
    await kafka.settle()
    return asked


async def outcome(asked: "asyncio.Task[Any]") -> str:
    (marker,) = (await asked).markers
    return ErrorCode(marker.topics[0].partitions[0].error_code).name


@pytest.mark.slow
async def test_a_marker_is_written_when_all_replicas_in_sync_have_it() -> None:
    async with trio() as kafka:
        slow = kafka.broker(replicas(kafka)[1][0])
        await slow.pause_replication()
        first, second = await mark(kafka), await mark(kafka)
        assert (first.done(), end(kafka)) == (False, 2)
        await slow.resume_replication()
        assert (await outcome(first), await outcome(second)) == ("NONE", "NONE")
        await kafka.clock.advance(REQUEST_TIMEOUT_S)
        assert await outcome(await mark(kafka)) == "NONE"


async def test_a_marker_waits_no_longer_than_requests_between_brokers() -> None:
    async with trio() as kafka:
        slow = kafka.broker(replicas(kafka)[1][0])
        await slow.pause_replication()
        asked = await mark(kafka)
        await kafka.clock.advance(REQUEST_TIMEOUT_S)
        assert (await outcome(asked), end(kafka)) == ("REQUEST_TIMED_OUT", 1)
        await slow.resume_replication()
        assert await outcome(await mark(kafka)) == "NONE"


async def test_a_transaction_is_complete_when_its_markers_are_where_the_next_leader_has_them() -> None:
    async with trio() as kafka:
        producer, billing = kafka.manual_producer("billing"), kafka.transaction("billing")
        await done(producer.init)
        leader, followers = replicas(kafka)
        if kafka.core.broker.topics["__transaction_state"].metadata.leaders[billing_partition(kafka)] == leader:
            await kafka.move_leader("orders", 0, followers[0])
            leader, followers = replicas(kafka)
        await done(lambda: producer.produce("orders", b"paid"))
        for each in followers:
            await kafka.broker(each).pause_replication()
        await done(producer.end)
        assert (await billing.state(), end(kafka), await kafka.records("orders")) == ("PrepareCommit", 2, [])
        await kafka.broker(leader).kill()
        await kafka.clock.advance(SESSION_S)
        for each in followers:
            await kafka.broker(each).resume_replication()
        await kafka.clock.advance(1)
        await billing.wait_committed()
        assert [record.value for record in await kafka.records("orders")] == [b"paid"]


async def test_a_transaction_ends_without_the_marker_of_a_topic_that_was_deleted_meanwhile() -> None:
    async with gc.Cluster(clock="manual", topics={"orders": 1, "gone": 1}) as kafka:
        producer, billing = kafka.manual_producer("billing"), kafka.transaction("billing")
        await done(producer.init)
        await done(lambda: producer.produce("gone", b"lost"))
        await done(lambda: producer.produce("orders", b"paid"))
        await kafka.delete_topic("gone")
        await done(producer.end)
        await billing.wait_committed()
        assert [record.value for record in await kafka.records("orders")] == [b"paid"]


def billing_partition(kafka: gc.Cluster) -> int:
    return kafka.core.transactions.runtime.shard_of("billing").partition
