"""What a user of aiokafka relies on: one body of tests for its consumer and groupcoord's, on groupcoord and on a real Kafka.

The calls are the same but for those that docs/client.md names: ``when_done`` and ``committed`` are all that differs.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import pytest
from aiokafka import TopicPartition

import groupcoord as gc
from tests.clients.cluster import Cluster
from tests.clients.in_process import groupcoord
from tests.clients.support import PATIENCE_S, unique

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

Library = Callable[..., Any]
LIBRARIES = {"aiokafka": aiokafka.AIOKafkaConsumer, "groupcoord": gc.Consumer}


@pytest.fixture(scope="module", params=["groupcoord", pytest.param("kafka", marks=pytest.mark.real_kafka)])
def server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """groupcoord or, if ``-m real_kafka`` asks for it, a real Kafka."""
    if request.param == "kafka":
        cluster = Cluster(request.getfixturevalue("real_kafka").bootstrap_servers)
        yield cluster
        cluster.close()
        return
    with groupcoord() as emulated:
        cluster = Cluster(emulated)
        yield cluster
        assert cluster.new_errors() == []
        cluster.close()


class Reader:
    """One of the two consumers; its settings are the same."""

    def __init__(self, library: Library, cluster: Cluster) -> None:
        self._library = library
        self.cluster = cluster

    @asynccontextmanager
    async def __call__(self, *topics: str, **settings: Any) -> AsyncIterator[Any]:
        settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, "metadata_max_age_ms": 300, **settings}
        if "group_id" in settings:
            settings = {"heartbeat_interval_ms": 100, "session_timeout_ms": 10_000, **settings}
        consumer = self._library(*topics, bootstrap_servers=self.cluster.bootstrap, **settings)
        async with asyncio.timeout(2 * PATIENCE_S):
            await consumer.start()
            try:
                yield consumer
            finally:
                await consumer.stop()


@pytest.fixture(params=LIBRARIES)
def reader(request: pytest.FixtureRequest, server: Cluster) -> Reader:
    return Reader(LIBRARIES[request.param], server)


async def when_done(result: Any) -> Any:
    """The result of a call that one library awaits and the other does not."""
    return await result if inspect.isawaitable(result) else result


async def committed(consumer: Any, place: TopicPartition) -> int | None:
    """aiokafka answers one number, groupcoord a dictionary: it asks for several at once."""
    found = await consumer.committed(place)
    if isinstance(found, dict):
        found = found[place]
        return None if found is None else int(found.offset)
    return found  # type: ignore[no-any-return]


async def values(consumer: Any, count: int) -> list[Any]:
    return [(await consumer.getone()).value for _ in range(count)]


async def until(consumer: Any, condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Poll until it holds."""
    while not await when_done(condition()):
        await consumer.getmany(timeout_ms=50)


def places(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


async def test_records_one_by_one_as_they_were_written(reader: Reader) -> None:
    topic = reader.cluster.topic()
    written = reader.cluster.produce(topic, ["a", "b", "c"])
    async with reader(topic, group_id=unique("group")) as consumer:
        for expected in written:
            record = await consumer.getone()
            assert (record.topic, record.partition, record.offset) == (topic, 0, expected.offset)
            assert (record.key, record.value, tuple(record.headers)) == (expected.key, expected.value, ())


async def test_records_in_a_loop(reader: Reader) -> None:
    topic = reader.cluster.topic()
    reader.cluster.produce(topic, ["a", "b", "c"])
    seen: list[bytes] = []
    async with reader(topic, group_id=unique("group")) as consumer:
        async for record in consumer:
            seen.append(record.value)
            if len(seen) == 3:
                break
    assert seen == [b"a", b"b", b"c"]


async def test_many_records_by_partition_and_no_more_than_wanted(reader: Reader) -> None:
    topic = reader.cluster.topic(2)
    reader.cluster.produce(topic, list("abcdef"), partitions=2)
    seen: dict[Any, list[bytes]] = {}
    async with reader(topic, group_id=unique("group")) as consumer:
        while sum(map(len, seen.values())) < 6:
            batches = await consumer.getmany(timeout_ms=1_000, max_records=4)
            assert sum(map(len, batches.values())) <= 4
            for place, records in batches.items():
                seen.setdefault(place, []).extend(record.value for record in records)
        assert await consumer.getmany(timeout_ms=1) == {}
    assert seen == {TopicPartition(topic, 0): [b"a", b"c", b"e"], TopicPartition(topic, 1): [b"b", b"d", b"f"]}


async def test_without_a_group_everything_is_read(reader: Reader) -> None:
    topic = reader.cluster.topic(2)
    reader.cluster.produce(topic, ["a", "b"], partitions=2)
    async with reader(topic) as consumer:
        assert sorted(await values(consumer, 2)) == [b"a", b"b"]
        assert consumer.assignment() == places(topic, 0, 1)


async def test_partitions_by_hand_and_places_in_them(reader: Reader) -> None:
    topic = reader.cluster.topic(2)
    reader.cluster.produce(topic, list("abcdef"), partitions=2)
    place = TopicPartition(topic, 1)
    async with reader() as consumer:
        consumer.assign([place])
        assert consumer.assignment() == {place}
        consumer.seek(place, 1)
        assert await values(consumer, 2) == [b"d", b"f"]
        assert await consumer.position(place) == 3
        await when_done(consumer.seek_to_beginning(place))
        assert await values(consumer, 1) == [b"b"]
        await when_done(consumer.seek_to_end(place))
        assert await consumer.position(place) == 3


async def test_partitions_by_hand_with_the_offsets_of_a_group(reader: Reader) -> None:
    topic, group = reader.cluster.topic(), unique("group")
    place = TopicPartition(topic, 0)
    reader.cluster.produce(topic, ["a", "b"])
    for expected in (b"a", b"b"):
        async with reader(group_id=group, enable_auto_commit=False) as consumer:
            consumer.assign([place])
            assert await values(consumer, 1) == [expected]
            await consumer.commit()
    assert reader.cluster.committed(group) == {(topic, 0): 2}


async def test_a_pattern_finds_new_topics(reader: Reader) -> None:
    prefix = unique("pattern")
    first = reader.cluster.topic()
    pattern = f"{first}|{prefix}-.*"
    async with reader(group_id=unique("group")) as consumer:
        consumer.subscribe(pattern=pattern)
        await until(consumer, lambda: consumer.assignment() == places(first, 0))
        reader.cluster.produce(f"{prefix}-new", ["a"])
        await until(consumer, lambda: f"{prefix}-new" in consumer.subscription())
        assert re.fullmatch(pattern, f"{prefix}-new")
        await until(consumer, lambda: TopicPartition(f"{prefix}-new", 0) in consumer.assignment())


async def test_from_one_subscription_to_another(reader: Reader) -> None:
    first, second = reader.cluster.topic(), reader.cluster.topic()
    reader.cluster.produce(first, ["a"])
    reader.cluster.produce(second, ["b"])
    async with reader(group_id=unique("group")) as consumer:
        consumer.subscribe([first])
        assert await values(consumer, 1) == [b"a"]
        assert consumer.subscription() == {first}
        consumer.unsubscribe()
        consumer.subscribe([second])
        assert await values(consumer, 1) == [b"b"]
        assert consumer.subscription() == {second}


async def test_two_members_share_and_one_inherits(reader: Reader) -> None:
    topic, group = reader.cluster.topic(4), unique("group")
    async with reader(topic, group_id=group) as first:
        await until(first, lambda: first.assignment() == places(topic, 0, 1, 2, 3))
        async with reader(topic, group_id=group) as second:

            def shared() -> bool:
                one, other = first.assignment(), second.assignment()
                return len(one) == len(other) == 2 and one | other == places(topic, 0, 1, 2, 3)

            await asyncio.gather(until(first, shared), until(second, shared))
        await until(first, lambda: first.assignment() == places(topic, 0, 1, 2, 3))


async def test_what_is_committed_is_where_the_next_one_begins(reader: Reader) -> None:
    topic, group = reader.cluster.topic(), unique("group")
    place = TopicPartition(topic, 0)
    reader.cluster.produce(topic, ["a", "b", "c"])
    async with reader(topic, group_id=group, enable_auto_commit=False) as consumer:
        assert await values(consumer, 1) == [b"a"]
        assert await committed(consumer, place) is None
        await consumer.commit({place: 2})
        assert await committed(consumer, place) == 2
        await consumer.commit({place: (1, "with metadata")})
        assert await committed(consumer, place) == 1
    async with reader(topic, group_id=group, enable_auto_commit=False) as consumer:
        assert await values(consumer, 2) == [b"b", b"c"]
        await when_done(consumer.seek_to_committed(place))
        assert await values(consumer, 1) == [b"b"]


async def test_positions_are_committed_by_themselves_in_the_end(reader: Reader) -> None:
    topic, group = reader.cluster.topic(), unique("group")
    reader.cluster.produce(topic, ["a", "b"])
    async with reader(topic, group_id=group) as consumer:
        assert await values(consumer, 2) == [b"a", b"b"]
    assert reader.cluster.committed(group) == {(topic, 0): 2}


async def test_positions_are_committed_by_themselves_from_time_to_time(reader: Reader) -> None:
    topic, group = reader.cluster.topic(), unique("group")
    place = TopicPartition(topic, 0)
    reader.cluster.produce(topic, ["a", "b"])

    async def both() -> bool:
        return await committed(consumer, place) == 2

    async with reader(topic, group_id=group, auto_commit_interval_ms=50) as consumer:
        assert await values(consumer, 2) == [b"a", b"b"]
        await until(consumer, both)


async def test_a_partition_that_is_paused_waits(reader: Reader) -> None:
    topic = reader.cluster.topic(2)
    reader.cluster.produce(topic, ["a", "b"], partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with reader() as consumer:
        consumer.assign([first, second])
        consumer.pause(first)
        assert consumer.paused() == {first}
        assert await values(consumer, 1) == [b"b"]
        assert await consumer.getmany(timeout_ms=50) == {}
        consumer.resume(first)
        assert await values(consumer, 1) == [b"a"]


async def test_keys_and_values_are_deserialized(reader: Reader) -> None:
    topic = reader.cluster.topic()
    reader.cluster.produce(topic, ["1"])
    functions = {"key_deserializer": bytes.decode, "value_deserializer": int}
    async with reader(topic, group_id=unique("group"), **functions) as consumer:
        record = await consumer.getone()
    assert (record.key, record.value) == ("key of 1", 1)


async def test_where_logs_begin_and_end_and_what_came_when(reader: Reader) -> None:
    topic = reader.cluster.topic(2)
    written = reader.cluster.produce(topic, ["a", "b", "c"])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with reader(topic) as consumer:
        assert await consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert await consumer.end_offsets([first, second]) == {first: 3, second: 0}
        found = await consumer.offsets_for_times({first: written[0].timestamp_ms, second: 0})
        assert (found[first].offset, found[second]) == (0, None)
        later = await consumer.offsets_for_times({first: written[-1].timestamp_ms + 3_600_000})
        assert later == {first: None}
        assert sorted(await values(consumer, 3)) == [b"a", b"b", b"c"]
        assert consumer.highwater(first) == 3


async def test_topics_and_their_partitions(reader: Reader) -> None:
    topic = reader.cluster.topic(3)
    async with reader(topic) as consumer:
        found = await consumer.topics()
        assert topic in found
        assert "__consumer_offsets" not in found
        assert await when_done(consumer.partitions_for_topic(topic)) == {0, 1, 2}


async def test_only_what_is_newer_than_the_start(reader: Reader) -> None:
    topic = reader.cluster.topic()
    place = TopicPartition(topic, 0)
    reader.cluster.produce(topic, ["old"])
    async with reader(topic, auto_offset_reset="latest") as consumer:
        await until(consumer, lambda: consumer.assignment() == {place})
        assert await consumer.position(place) == 1
        reader.cluster.produce(topic, ["new"])
        assert await values(consumer, 1) == [b"new"]


async def test_a_setting_of_neither_is_refused(reader: Reader) -> None:
    with pytest.raises((TypeError, ValueError), match="max_pol_records"):
        async with reader("t", max_pol_records=1):
            pass
