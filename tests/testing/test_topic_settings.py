"""Topics with configurations of their own, and topics that there are not."""

from collections.abc import Awaitable, Callable

import pytest

from groupcoord import Cluster, KafkaCluster, ProducerRecord, RemoteCluster, Topic
from groupcoord.testing.topic_settings import unknown_topic

pytestmark = pytest.mark.asyncio
COMPACT = {"cleanup.policy": "compact"}


async def story(kafka: KafkaCluster) -> None:
    await kafka.create_topic("prices", 2, configs=COMPACT)
    with pytest.raises(ValueError, match=r"prices-0: INVALID_RECORD: .*cannot accept message without key"):
        await kafka.produce("prices", b"of nothing")
    await kafka.produce("prices", b"2", key=b"tea")
    with pytest.raises(ValueError, match="cleanup"):
        await kafka.create_topic("bills", configs={"cleanup": "compact"})
    with pytest.raises(TypeError, match="topic 'bills': partitions='2'"):
        await kafka.create_topic("bills", "2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the name of a topic is a string, not 2"):
        await kafka.create_topic(2)  # type: ignore[arg-type]
    wrong: list[Callable[[], Awaitable[object]]] = [
        lambda: kafka.produce("price", b"2"),
        lambda: kafka.produce("price", records=[ProducerRecord(b"2")]),
        lambda: kafka.records("price"),
        lambda: kafka.add_partitions("price", 1),
        lambda: kafka.delete_topic("price"),
    ]
    for each in wrong:
        with pytest.raises(
            ValueError, match=r"there is no topic 'price'; did you mean 'prices'\? The topics are .*prices"
        ):
            await each()


async def test_the_same_in_this_process_and_elsewhere() -> None:
    async with Cluster(clock="manual") as kafka:
        await story(kafka)
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)


async def test_topics_of_the_beginning_have_their_configurations() -> None:
    async with Cluster(topics={"orders": 1, "prices": Topic(2, COMPACT)}) as kafka:
        configs = {
            topic.name: (len(topic.partitions), topic.metadata.configs)
            for topic in kafka.core.broker.topics.all()
            if not topic.metadata.is_internal
        }
        assert configs == {"orders": (1, {}), "prices": (2, COMPACT)}


async def test_only_what_is_there_can_be_led() -> None:
    async with Cluster(topics={"orders": 1}, brokers=2, clock="manual") as kafka:
        with pytest.raises(ValueError, match="there is no topic 'oders'; did you mean 'orders'"):
            await kafka.move_leader("oders", 0, to=2)
        with pytest.raises(ValueError, match="there is no orders-1: orders has 1 partition, counted from 0"):
            await kafka.move_leader("orders", 1, to=2)
        with pytest.raises(ValueError, match="there is no broker 3: the ids are 1, 2"):
            await kafka.move_leader("orders", 0, to=3)


async def test_an_unknown_topic_is_told_with_what_there_is() -> None:
    assert str(unknown_topic("orders", [])) == "there is no topic 'orders'. There are none: topics=, create_topic"
    assert str(unknown_topic("x", ["orders", "__consumer_offsets"])) == "there is no topic 'x'. The topics are orders"
    assert str(unknown_topic("x", [f"topic-{number:02}" for number in range(25)])).endswith("topic-19 and 5 more")
