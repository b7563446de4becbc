"""Clients of three brokers: each partition is written to and read from at its leader, also when that is another one by now."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest

from groupcoord import Cluster, SyncCluster
from groupcoord.core.java_hash_order import partition_for
from tests.clients.in_process import CONFIG
from tests.clients.members import Flavour, Member, Membership
from tests.clients.support import PATIENCE_S, Record, eventually, partitions_of, unique

pytestmark = pytest.mark.slow

TOPIC = "orders"
PARTITIONS = 6
OFFSETS = "__consumer_offsets"

Send = Callable[[int, bytes], int]
"""Writes a value to a partition of the topic and says its offset, when it is acknowledged."""


class Trio:
    """Three brokers in another thread, whose partitions can be told to move."""

    def __init__(self, cluster: SyncCluster) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.address

    def leaders(self, topic: str) -> tuple[int, ...]:
        found = self.cluster.core.broker.topics.get(topic)
        assert found is not None
        return found.metadata.leaders

    def move(self, topic: str, partition: int) -> None:
        """Let the next broker lead."""
        to = self.leaders(topic)[partition] % 3 + 1
        self.cluster.move_leader(topic, partition, to=to)
        assert self.leaders(topic)[partition] == to


@pytest.fixture
def trio() -> Iterator[Trio]:
    config = {**CONFIG, "default.replication.factor": 2}
    with Cluster(config=config, topics={TOPIC: PARTITIONS}, brokers=3).sync() as cluster:
        yield Trio(cluster)


@contextmanager
def _aiokafka(bootstrap: str) -> Iterator[Send]:
    with asyncio.Runner() as runner:

        async def start() -> Any:
            producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
            await producer.start()
            return producer

        producer = runner.run(start())

        async def send(partition: int, value: bytes) -> int:
            sent = await producer.send_and_wait(TOPIC, value, partition=partition)
            return int(sent.offset)

        yield lambda partition, value: runner.run(send(partition, value))
        runner.run(producer.stop())


@contextmanager
def _kafka_python(bootstrap: str) -> Iterator[Send]:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    yield lambda partition, value: int(producer.send(TOPIC, value, partition=partition).get(PATIENCE_S).offset)
    producer.close(PATIENCE_S)


@contextmanager
def _confluent(bootstrap: str) -> Iterator[Send]:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})

    def send(partition: int, value: bytes) -> int:
        answered: Future[int] = Future()

        def delivered(error: Any, message: Any) -> None:
            answered.set_result(message.offset()) if error is None else answered.set_exception(AssertionError(error))

        producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)
        assert producer.flush(PATIENCE_S) == 0
        return answered.result(0)

    yield send


PRODUCERS = {"aiokafka": _aiokafka, "kafka-python": _kafka_python, "confluent": _confluent}


def read(records: list[Record]) -> Counter[tuple[int, int, bytes | None]]:
    return Counter((record.partition, record.offset, record.value) for record in records)


@pytest.mark.parametrize("library", PRODUCERS)
def test_leaders_and_the_coordinator_move_under_a_producer_and_a_consumer(trio: Trio, library: str) -> None:
    """Nothing is lost, nothing comes twice, and the group does not rebalance for it."""
    assert set(trio.leaders(TOPIC)) == {1, 2, 3}
    group = unique("group")
    coordinated = partition_for(group, 50)
    written: list[tuple[int, int, bytes | None]] = []
    membership = Membership(
        bootstrap=trio.bootstrap, flavour=Flavour(library, "range"), group=group, topics=(TOPIC,), client_id="c"
    )
    member = Member(membership)
    try:
        with PRODUCERS[library](trio.bootstrap) as send:
            for ctx in range(3):
                for number in range(18):
                    partition, value = number % PARTITIONS, b"%d in turn %d" % (number, ctx)
                    written.append((partition, send(partition, value), value))
                eventually(lambda: len(member.received) >= len(written), saying="what was written is read")
                member.commit()
                if ctx < 2:  # whoever leaves while the coordinator moves is not heard by it
                    trio.move(TOPIC, ctx)
                    trio.move(OFFSETS, coordinated)
        assert read(member.received) == Counter(written)
        assert member.diary.entries == [("assigned", partitions_of(TOPIC, PARTITIONS))]
    finally:
        member.end()

    successor = Member(membership)
    try:
        eventually(
            lambda: successor.owned == partitions_of(TOPIC, PARTITIONS), saying="the next one has all partitions"
        )
        with PRODUCERS[library](trio.bootstrap) as send:
            offset = send(0, b"late")
        eventually(lambda: successor.received, saying="it reads what came since")
        assert read(successor.received) == Counter([(0, offset, b"late")])
    finally:
        successor.end()


def test_a_broker_that_is_not_the_first_is_as_good_to_begin_with(trio: Trio) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": trio.cluster.addresses[2]})
    metadata = producer.list_topics(timeout=PATIENCE_S)
    assert sorted(f"{one.host}:{one.port}" for one in metadata.brokers.values()) == sorted(trio.cluster.addresses)
    told = {index: one.leader for index, one in metadata.topics[TOPIC].partitions.items()}
    assert told == dict(enumerate(trio.leaders(TOPIC)))
