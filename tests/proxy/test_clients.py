"""Real clients through the proxy, in front of three brokers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from groupcoord import Cluster, SyncCluster
from groupcoord.coordinator.events import GenerationStarted, GroupEpochBumped
from groupcoord.proxy.proxy import Proxy
from groupcoord.proxy.written_trace import WrittenTrace
from tests.clients.in_process import CONFIG
from tests.proxy.support import proxy_to

pytestmark = [pytest.mark.clients, pytest.mark.slow]
PATIENCE_S = 60.0
VALUES = {f"value {number}".encode() for number in range(30)}


@contextmanager
def three_brokers() -> Iterator[SyncCluster]:
    with Cluster(config=CONFIG, topics={"orders": 6}, brokers=3).sync() as kafka:
        yield kafka


def assert_all_went_through(kafka: SyncCluster, proxy: Proxy) -> None:
    """Each broker was found, and the proxy has a port for each."""
    assert set(proxy.brokers) == {broker.address for broker in kafka.brokers.values()}


@pytest.mark.asyncio
async def test_aiokafka_through_the_proxy() -> None:
    trace = WrittenTrace()
    with three_brokers() as kafka:
        async with proxy_to(kafka.address, trace) as proxy:
            producer = AIOKafkaProducer(bootstrap_servers=proxy.address)
            await producer.start()
            for value in sorted(VALUES):
                await producer.send_and_wait("orders", value)
            await producer.stop()
            consumer = AIOKafkaConsumer(
                "orders", bootstrap_servers=proxy.address, group_id="g", auto_offset_reset="earliest"
            )
            await consumer.start()
            seen: set[bytes | None] = set()
            async with asyncio.timeout(PATIENCE_S):
                while seen != VALUES:
                    seen.add((await consumer.getone()).value)
            await consumer.commit()
            await consumer.stop()
            assert_all_went_through(kafka, proxy)
        assert trace.of(GenerationStarted, group="g").last.generation == 1
        assert kafka.trace.why("g", 1).split(":")[0] == trace.why("g", 1).split(":")[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.asyncio
async def test_confluent_kafka_through_the_proxy(protocol: str) -> None:
    trace = WrittenTrace()
    with three_brokers() as kafka:
        async with proxy_to(kafka.address, trace) as proxy:
            assert await asyncio.to_thread(_produce_and_consume, proxy.address, protocol) == VALUES
            assert_all_went_through(kafka, proxy)
    begun: Any = GroupEpochBumped if protocol == "consumer" else GenerationStarted
    assert trace.of(begun, group="g")
    assert trace.why("g")


def _produce_and_consume(bootstrap: str, protocol: str) -> set[bytes | None]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for value in sorted(VALUES):
        producer.produce("orders", value)
    assert producer.flush(PATIENCE_S) == 0
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe(["orders"])
    seen: set[bytes | None] = set()
    try:
        while seen != VALUES:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            seen.add(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return seen
