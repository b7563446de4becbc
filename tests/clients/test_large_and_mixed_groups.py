"""Groups of many, and groups of different clients: one protocol, one generation, one owner for each partition."""

import asyncio

import aiokafka
import pytest

from tests.clients.cluster import Cluster
from tests.clients.conftest import MakeMember
from tests.clients.members import Flavour
from tests.clients.support import PATIENCE_S, eventually, partitions_of

pytestmark = pytest.mark.slow
MANY = 24


def test_three_libraries_share_one_group(cluster: Cluster, group: str, member: MakeMember) -> None:
    topic = cluster.topic(partitions=6)
    members = [member(Flavour(library, "range"), topic) for library in ("aiokafka", "kafka-python", "confluent")]

    eventually(lambda: [len(member.owned) for member in members] == [2, 2, 2], saying="each owns two partitions")
    assert frozenset().union(*(member.owned for member in members)) == partitions_of(topic, 6)
    described = cluster.group(group)
    assert (described.state.name, described.partition_assignor) == ("STABLE", "range")
    assert {member.host for member in described.members} == {"/127.0.0.1"}

    sent = cluster.produce(topic, [f"value {number}" for number in range(60)], partitions=6)
    eventually(
        lambda: sorted(record for member in members for record in member.received) == sent, saying="everything is read"
    )
    for one in members:
        one.commit()
    assert cluster.committed(group) == dict.fromkeys(partitions_of(topic, 6), 10)


def test_a_crowd_gets_one_partition_each(cluster: Cluster, group: str) -> None:
    topic = cluster.topic(partitions=MANY)
    sent = cluster.produce(topic, [f"value {number}" for number in range(MANY)], partitions=MANY)

    async def consume() -> tuple[list[frozenset[int]], set[bytes]]:
        consumers = [
            aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=cluster.bootstrap,
                group_id=group,
                heartbeat_interval_ms=200,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            for _ in range(MANY)
        ]
        values: set[bytes] = set()

        async def poll(consumer: aiokafka.AIOKafkaConsumer) -> None:
            while True:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    values.update(record.value for record in batch)

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(consumer.start() for consumer in consumers))
            polling = [asyncio.create_task(poll(consumer)) for consumer in consumers]
            try:
                while not (len(values) == MANY and all(len(consumer.assignment()) == 1 for consumer in consumers)):
                    await asyncio.wait(polling, timeout=0.05)
                owned = [frozenset(place.partition for place in consumer.assignment()) for consumer in consumers]
            finally:
                for task in polling:
                    task.cancel()
                await asyncio.gather(*polling, return_exceptions=True)
                await asyncio.gather(*(consumer.stop() for consumer in consumers))
        return owned, values

    owned, values = asyncio.run(consume())

    assert set(owned) == {frozenset({partition}) for partition in range(MANY)}
    assert values == {record.value for record in sent}
    eventually(lambda: cluster.group(group).state.name == "EMPTY", saying="all have left")
