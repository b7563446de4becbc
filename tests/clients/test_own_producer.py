"""groupcoord's producer on groupcoord and on a real Kafka, read by others."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import confluent_kafka
import pytest

from groupcoord import Consumer, Producer
from groupcoord.client.client_errors import BrokerError
from tests.clients.cluster import Cluster
from tests.clients.support import PATIENCE_S, unique

pytestmark = pytest.mark.slow


def patiently(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE_S))


def values(cluster: Cluster, topic: str, last: bytes) -> list[bytes | None]:
    """What a reader of committed records is given of partition 0, until ``last``."""
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": unique("reader"), "isolation.level": "read_committed"}
    )
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    while last not in found:
        message = reader.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        found.append(message.value())
    reader.close()
    return found


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_others_read_what_it_wrote(cluster: Cluster, compression: str) -> None:
    topic = cluster.topic()

    async def story() -> None:
        async with Producer(cluster.bootstrap, compression_type=compression, batch_size=1_000) as producer:
            sent = [await producer.send(topic, b"%d" % number) for number in range(1_000)]
            assert [(await each).offset for each in sent] == list(range(1_000))

    patiently(story)
    assert values(cluster, topic, b"999") == [b"%d" % number for number in range(1_000)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_each_kind_of_acknowledgement(cluster: Cluster, acks: int | str) -> None:
    topic = cluster.topic()

    async def story() -> None:
        async with Producer(cluster.bootstrap, acks=acks) as producer:
            assert (await producer.send_and_wait(topic, b"a")).offset == (-1 if acks == 0 else 0)

    patiently(story)
    assert values(cluster, topic, b"a") == [b"a"]


def test_transactions_with_the_offsets_of_a_consumer(cluster: Cluster) -> None:
    source, target, group = cluster.topic(), cluster.topic(), unique("group")

    async def story() -> None:
        how: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with (
            Producer(cluster.bootstrap, transactional_id=unique("transactions")) as producer,
            Consumer(source, bootstrap_servers=cluster.bootstrap, **how) as consumer,
        ):
            async with producer.transaction():
                await producer.send(source, b"1")
                await producer.send(source, b"2")
            await producer.begin_transaction()
            await producer.send(target, b"aborted")
            await producer.flush()
            await producer.abort_transaction()
            while not (records := await consumer.getmany(timeout_ms=1_000)):
                pass
            async with producer.transaction():
                for record in records[source, 0]:
                    await producer.send(target, record.value)
                await producer.send_offsets_to_transaction({(source, 0): 2}, consumer.group_metadata())
            committed = (await consumer.committed((source, 0)))[source, 0]
            assert committed is not None
            assert committed.offset == 2

    patiently(story)
    assert values(cluster, target, b"2") == [b"1", b"2"]


def test_the_newer_of_two_fences_the_other(cluster: Cluster) -> None:
    topic, transactional_id = cluster.topic(), unique("transactions")

    async def story() -> None:
        async with Producer(cluster.bootstrap, transactional_id=transactional_id) as old:
            await old.begin_transaction()
            await old.send_and_wait(topic, b"old")
            async with Producer(cluster.bootstrap, transactional_id=transactional_id) as new, new.transaction():
                await new.send(topic, b"new")
            with pytest.raises(BrokerError, match="PRODUCER_FENCED"):
                await old.commit_transaction()

    patiently(story)
    assert values(cluster, topic, b"new") == [b"new"]


def test_records_above_the_limit_of_the_topic(cluster: Cluster) -> None:
    topic = cluster.topic(max_message_bytes="1000")

    async def story() -> None:
        async with Producer(cluster.bootstrap) as producer:
            too_large = await producer.send(topic, bytes(2_000))
            with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
                await too_large
            sent = [await producer.send(topic, b"%d" % number) for number in range(200)]  # a batch of them is too large
            assert sorted([(await each).offset for each in sent]) == list(range(200))

    patiently(story)
    assert values(cluster, topic, b"199") == [b"%d" % number for number in range(200)]
