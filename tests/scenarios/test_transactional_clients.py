"""Unmodified confluent-kafka and aiokafka in transactions: the errors that applications get, and how to react."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from groupcoord.testing import Cluster
from groupcoord.testing.trace import RequestReceived

LOOKS_EVERY_SECOND = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000}
PATIENCE_S = 60.0

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.kafka(topics={"orders": 1}, config=LOOKS_EVERY_SECOND)]


@contextmanager
def transactional(kafka_sync: Any, transactional_id: str) -> Iterator[Producer]:
    """An initialised transactional producer, with a transaction timeout of ten seconds."""
    settings = {
        "bootstrap.servers": kafka_sync.address,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 10_000,
        "message.timeout.ms": 10_000,
    }
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_S)
    try:
        yield producer
    finally:
        with suppress(KafkaException):  # one with a fatal error cannot abort what it had open
            producer.close()


@contextmanager
def consuming(kafka_sync: Any, **settings: Any) -> Iterator[Consumer]:
    """A read-committed consumer of the group ``app``."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_sync.address,
            "group.id": "app",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    try:
        yield consumer
    finally:
        consumer.close()


def write(producer: Producer, value: bytes) -> None:
    """Begin a transaction and produce a record in it."""
    producer.begin_transaction()
    producer.produce("orders", value)
    assert producer.flush(PATIENCE_S) == 0


def test_a_commit_that_comes_too_late_ends_the_producer(kafka_sync: Any) -> None:
    """confluentinc/librdkafka#3297 "Transaction timeout can lead to non-recoverable INVALID_TXN_STATE error"
    confluentinc/librdkafka#3928 "Transactional client showing producer fenced error even when only a single producer is used"

    There is only one producer with that transactional id. After some hours it gets the error that a newer one has fenced
    it, and its application ends.

    Right: the transaction took longer than `transaction.timeout.ms`. A client without KIP-890 gets the same error as if it
    was fenced. The error is fatal, and this producer cannot recover: close it, create a new one, and process the records
    again.
    """
    with transactional(kafka_sync, "billing") as producer:
        write(producer, b"too slow")
        kafka_sync.clock.advance(12)
        with pytest.raises(KafkaException) as told:
            producer.commit_transaction(PATIENCE_S)
        assert told.value.args[0].fatal()
        with pytest.raises(KafkaException):
            producer.abort_transaction(PATIENCE_S)
    with transactional(kafka_sync, "billing") as another:
        write(another, b"once more")
        another.commit_transaction(PATIENCE_S)
    with consuming(kafka_sync) as consumer:
        record = consumer.poll(PATIENCE_S)
        assert record is not None
        assert record.value() == b"once more"


def test_a_consumer_waits_for_offsets_that_may_still_change(kafka_sync: Any) -> None:
    """confluentinc/librdkafka#3265 "rd_kafka_OffsetFetchRequest should keep retrying till UNSTABLE_OFFSETS are not cleared"
    confluentinc/librdkafka#3272 "Retry fetching committed offsets indefinitely (#3265)"

    A partition moves to another member while an offset of the former owner is pending in its transaction. The new member
    fetched the offset twice, and crashed.

    Right: the client repeats the request until it succeeds, without an error for the application, and starts at the offset
    that is committed at the end. Here the transaction was aborted, so the records are processed again.
    """
    kafka_sync.produce("orders", b"0", b"1", b"2")
    lost = kafka_sync.manual_producer("former-member")
    lost.init(transaction_timeout_ms=10_000).result()
    lost.commit_offsets("app", {("orders", 0): 1}).result()
    lost.end().result()
    lost.commit_offsets("app", {("orders", 0): 3}).result()
    with consuming(kafka_sync) as consumer:

        def asked() -> int:
            return len(list(kafka_sync.trace.of(RequestReceived, api="OffsetFetch")))

        while asked() < 5:
            assert consumer.poll(0.05) is None
        kafka_sync.clock.advance(12)
        record = consumer.poll(PATIENCE_S)
        assert record is not None
        assert record.offset() == 1


def test_a_member_that_was_put_out_aborts(kafka_sync: Any) -> None:
    """apache/iceberg#16366 "Kafka Connect: Tolerate CommitFailedException and InvalidProducerEpochException during rebalance"
    typelevel/fs2-kafka#897 "Use ConsumerGroupMetadata for offset commits for stronger semantics"

    A removed member still treats its partitions as its own. The commit of its offsets is refused, which is no reason to end
    the whole connector: another member processes those records.

    Right: pass the consumer's group metadata together with the offsets. Then the commit of a zombie is refused, and the
    error says that the transaction must be aborted; the producer can be used again when the consumer has joined again.
    """
    with transactional(kafka_sync, "billing") as producer, consuming(kafka_sync, **{"client.id": "slow"}) as consumer:
        kafka_sync.produce("orders", b"0")
        assert consumer.poll(PATIENCE_S) is not None
        as_it_was = consumer.consumer_group_metadata()
        kafka_sync.group("app").expire_member("slow")
        write(producer, b"made of 0")
        offsets = [TopicPartition("orders", 0, 1)]
        with pytest.raises(KafkaException) as told:
            producer.send_offsets_to_transaction(offsets, as_it_was, PATIENCE_S)
        assert told.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
        assert told.value.args[0].txn_requires_abort()
        producer.abort_transaction(PATIENCE_S)
        assert kafka_sync.group("app").committed("orders", 0) is None


@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 1, "invoices": 1})
async def test_a_zombie_of_aiokafka_takes_the_group_back(kafka: Cluster) -> None:
    """aio-libs/aiokafka#844 "[QUESTION] Rebalance during transaction breaks exactly-once?"
    faust-streaming/faust#323 "Crash and duplicated events on rebalance with processing_guarantee="exactly_once""

    A worker is slow, its partition moves to another one, and that one processes the records and commits. Then the slow
    worker sends its offsets: `send_offsets_to_transaction` of aiokafka sends the group id without member and generation, so
    the broker cannot detect that it is too late.

    Right: the broker cannot recognise the zombie. Its transaction is committed, the output exists twice, and the group's
    committed offset goes back. As long as the client does not send member and generation (KIP-447), use one transactional
    id for each input partition: then the zombie's producer is fenced.
    """

    async def worker(transactional_id: str) -> aiokafka.AIOKafkaProducer:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.address, transactional_id=transactional_id)
        await producer.start()
        return producer

    async def works(producer: aiokafka.AIOKafkaProducer, offset: int) -> None:
        await producer.send_and_wait("invoices", b"for order %d" % offset, partition=0)

    async def commits(producer: aiokafka.AIOKafkaProducer, offset: int) -> None:
        await producer.send_offsets_to_transaction({aiokafka.TopicPartition("orders", 0): offset + 1}, "app")
        await producer.commit_transaction()

    async def two_at_work(slow_one: str, other_one: str) -> aiokafka.AIOKafkaProducer:
        slow = await worker(slow_one)
        await slow.begin_transaction()
        await works(slow, 0)
        other = await worker(other_one)
        for offset in (0, 1):
            await other.begin_transaction()
            await works(other, offset)
            await commits(other, offset)
        await other.stop()
        assert await kafka.group("app").committed("orders", 0) == 2
        return slow

    zombie = await two_at_work("worker-1", "worker-2")
    await commits(zombie, 0)
    assert await kafka.group("app").committed("orders", 0) == 1
    await zombie.stop()
    zombie = await two_at_work("orders-0", "orders-0")
    with pytest.raises(aiokafka.errors.ProducerFenced):
        await commits(zombie, 0)
    assert await kafka.group("app").committed("orders", 0) == 2
    await zombie.stop()
