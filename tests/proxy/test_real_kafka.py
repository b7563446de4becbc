"""A real Kafka behind the proxy, and its recording told to groupcoord."""

import asyncio

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from groupcoord.coordinator.events import GenerationStarted, GroupEpochBumped
from groupcoord.proxy.recording import RecordedFrame
from groupcoord.proxy.replay import replay
from groupcoord.proxy.written_trace import WrittenTrace
from tests.clients.support import unique
from tests.proxy.support import proxy_to
from tests.real_kafka.broker import Broker

PATIENCE_S = 60.0
VALUES = {f"value {number}".encode() for number in range(20)}


@pytest.mark.real_kafka
@pytest.mark.asyncio
async def test_what_a_real_kafka_answers_groupcoord_answers(real_kafka: Broker) -> None:
    """Two clients, a classic group and one of KIP-848, through the proxy; then the recording has no difference."""
    recorded: list[RecordedFrame] = []
    trace = WrittenTrace()
    topic, classic, modern = unique("orders"), unique("classic"), unique("modern")
    async with proxy_to(real_kafka.bootstrap_servers, trace, record=recorded.append) as proxy:
        producer = AIOKafkaProducer(bootstrap_servers=proxy.address)
        await producer.start()
        for value in sorted(VALUES):
            await producer.send_and_wait(topic, value)
        await producer.stop()
        await _classic(proxy.address, topic, classic)
        await asyncio.to_thread(_modern, proxy.address, topic, modern)
    assert trace.of(GenerationStarted, group=classic).last.generation == 1
    assert trace.of(GroupEpochBumped, group=modern)
    found = replay(recorded)
    assert [step.text() for step in found.different] == []
    assert len(found.steps) > 20


async def _classic(bootstrap: str, topic: str, group: str) -> None:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    await consumer.start()
    seen: set[bytes | None] = set()
    async with asyncio.timeout(PATIENCE_S):
        while seen != VALUES:
            seen.add((await consumer.getone()).value)
    await consumer.commit()
    await consumer.stop()


def _modern(bootstrap: str, topic: str, group: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": "consumer"})
    consumer.subscribe([topic])
    seen: set[bytes | None] = set()
    while seen != VALUES:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        seen.add(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
