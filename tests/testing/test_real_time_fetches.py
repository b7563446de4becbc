"""A fetch that waits does not hold up its connection on a clock that stands still."""

import asyncio

import aiokafka
import pytest

from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.messages import FetchRequest
from groupcoord.testing import Cluster
from groupcoord.testing.trace import RequestReceived

pytestmark = pytest.mark.asyncio


@pytest.mark.slow
async def test_a_consumer_consumes_while_time_stands_still() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=kafka.address,
            group_id="app",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=20,
            heartbeat_interval_ms=50,
        )
        async with consumer:
            began = kafka.clock.now_ms()
            await kafka.produce("orders", b"a")
            assert (await consumer.getone()).value == b"a"
            await consumer.commit()  # it waits behind no fetch
            assert await kafka.group("app").committed("orders", 0) == 1
            more = asyncio.ensure_future(consumer.getone())
            fetches = kafka._engine.waiting.until(
                lambda: len(kafka.trace.of(RequestReceived, api="Fetch")) > 5, "fetches should end", lambda: ""
            )
            await fetches  # though nothing came, and no time passed
            await kafka.produce("orders", b"b")
            assert (await more).value == b"b"
            await kafka.clock.advance(120)  # somebody who is connected keeps its session
            assert len((await kafka.group("app").describe()).members) == 1
            assert kafka.clock.now_ms() == began + 120_000
            await kafka.clock.advance(46, heartbeats=False)
            assert await kafka.group("app").state() in ("Empty", "Dead")
            await kafka.group("app").wait_stable(members=1)  # it was told by its next heartbeat, and is back


async def test_a_fetch_ends_when_the_time_is_moved_past_it() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        engine = kafka._engine
        topic_id = kafka.core.broker.topics.topic_id("orders")
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1_000,
            topics=(
                FetchTopic(
                    topic="orders",
                    topic_id=topic_id,
                    partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000),),
                ),
            ),
        )
        api = APIS[ApiKey.FETCH]
        call = Call(77, 1, api, 12, "c", "/127.0.0.1")
        assert not [
            each for each in engine.transport.handle(call, request, kafka.clock.now_ms()) if isinstance(each, Reply)
        ]
        waiting = [each for each in kafka.clock.deadlines(everything=True) if each.kind == "fetch"]
        assert waiting[0].reason.startswith("a fetch on connection 77")
        assert len(engine._real_time_fetches._timers) == 1
        await kafka.clock.advance(60)
        assert not [each for each in kafka.clock.deadlines(everything=True) if each.kind == "fetch"]
        await asyncio.wait([asyncio.ensure_future(kafka.settle())])
        engine.transport.handle(call, request, kafka.clock.now_ms())
        assert len(engine._real_time_fetches._timers) == 1
