"""The records of a topic, as readers of either isolation level find them."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from groupcoord.testing import Cluster, KafkaCluster, RemoteCluster, WaitTimeoutError
from tests.testing.retrying import done

pytestmark = pytest.mark.asyncio


async def values(kafka: KafkaCluster, partition: int | None = None, isolation: Any = "read_committed") -> list[bytes]:
    return [record.value or b"" for record in await kafka.records("invoices", partition, isolation=isolation)]


async def story(kafka: KafkaCluster) -> None:
    await kafka.create_topic("invoices", 2)
    assert await kafka.records("invoices") == []
    await kafka.produce("invoices", b"plain", key=b"k", partition=1)
    committed, aborted, still_open = (kafka.manual_producer(name) for name in ("committed", "aborted", "open"))
    for producer in (aborted, committed, still_open):
        await done(producer.init)
        await done(partial(producer.produce, "invoices", producer.transactional_id.encode()))
    assert await values(kafka) == [b"plain"]
    assert await values(kafka, isolation="read_uncommitted") == [b"aborted", b"committed", b"open", b"plain"]
    waiting = asyncio.ensure_future(kafka.wait_records("invoices", 2, 0, isolation="read_uncommitted"))
    await done(partial(aborted.end, commit=False))
    await done(committed.end)
    assert [record.offset for record in await kafka.wait_records("invoices", 1, partition=0)] == [1]
    await done(still_open.end)
    found = await kafka.wait_records("invoices", 3)
    assert [(each.partition, each.offset, each.value) for each in found] == [
        (0, 1, b"committed"),
        (0, 2, b"open"),
        (1, 0, b"plain"),
    ]
    (plain,) = await kafka.records("invoices", 1)
    assert (plain.topic, plain.key, plain.headers) == ("invoices", b"k", ())
    assert plain.timestamp_ms > 0
    assert len(await waiting) == 3
    with pytest.raises(ValueError, match="there is no topic 'bills'"):
        await kafka.records("bills")
    with pytest.raises(ValueError, match="there is no invoices-2: invoices has 2 partitions, counted from 0"):
        await kafka.records("invoices", 2)
    with pytest.raises(ValueError, match="isolation_level is one of read_uncommitted, read_committed, not commited"):
        await values(kafka, isolation="commited")
    with pytest.raises(
        WaitTimeoutError, match=r"invoices should have 9 records for read_committed: not within 0 s\. It has 3"
    ):
        await kafka.wait_records("invoices", 9, timeout=0)


@pytest.mark.slow
async def test_the_same_in_this_process_and_elsewhere() -> None:
    async with Cluster(clock="manual") as kafka:
        await story(kafka)
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)
        assert await remote.records("invoices") == await kafka.records("invoices")


async def test_many_records_are_read_piece_by_piece() -> None:
    async with Cluster(topics={"invoices": 1}) as kafka, RemoteCluster(kafka.address) as remote:
        large = [b"%d" % number * 300_000 for number in range(10)]
        for value in large:
            await kafka.produce("invoices", value)
        assert await values(kafka) == await values(remote) == large


async def test_what_compaction_left() -> None:
    """Nothing may be there up to the end of the log."""
    async with Cluster(topics={"invoices": 1}, clock="manual") as kafka:
        log = kafka.core.broker.log("invoices", 0)
        assert log is not None
        await kafka.produce("invoices", b"gone", b"gone, too")
        log.roll(kafka.clock.now_ms())
        log.replace_segments(log.segments[:1], [])
        assert await values(kafka) == []


async def test_a_remote_broker_that_has_nothing_more() -> None:
    async with Cluster(topics={"invoices": 1}) as kafka, RemoteCluster(kafka.address) as remote:
        await kafka.produce("invoices", b"one")

        def empty(_: Any, answer: Any) -> Any:
            (topic,) = answer.responses
            return replace(answer, responses=(replace(topic, partitions=(replace(topic.partitions[0], records=b""),)),))

        kafka.faults.when("Fetch").after(empty)
        assert await values(remote) == []
        assert await values(remote) == [b"one"]


def sync_records() -> None:
    with Cluster(topics={"invoices": 1}).sync() as kafka:
        kafka.produce("invoices", b"one")
        assert [record.value for record in kafka.records("invoices")] == [b"one"]
        kafka.wait_until(lambda: len(kafka.records("invoices")) == 1, "it should be there")


async def test_the_same_without_asyncio() -> None:
    await asyncio.to_thread(sync_records)
