"""Records of a test: with keys, headers and times, in the partitions in which Kafka's own clients put them."""

import random
from typing import Any

import pytest

from groupcoord import Cluster, KafkaCluster, ProducerRecord, RecordMetadata, RemoteCluster, Topic
from groupcoord.partitioners import DefaultPartitioner, murmur2, positive
from groupcoord.testing.record_writing import BATCH_BYTES, batches_of

NOON_MS = 1_700_000_000_000


async def story(kafka: KafkaCluster) -> None:
    await kafka.create_topic("payments", 4)
    records = [
        ProducerRecord(b"paid", key=b"a", headers={"trace": b"1", "empty": None}, timestamp_ms=NOON_MS),
        ProducerRecord(None, key=b"c", headers=[("twice", b"1"), ("twice", b"2")]),
        ProducerRecord(b"here", key=b"a", partition=3),
        ProducerRecord(b"paid again", key=b"a"),
    ]
    a, b = (positive(murmur2(key)) % 4 for key in (b"a", b"c"))
    assert a != b
    sent = await kafka.produce("payments", records=records)
    assert [each.partition for each in sent] == [a, b, 3, a]
    assert [each.offset for each in sent] == [0, 0, int(a == 3), 1 + int(a == 3)]  # each partition has them in order
    found = {(each.partition, each.offset): each for each in await kafka.records("payments")}
    assert len(found) == len(records)
    for record, at in zip(records, sent, strict=True):
        read = found[at.partition, at.offset]
        assert (read.key, read.value, read.timestamp_ms) == (record.key, record.value, at.timestamp_ms)
    assert sent[0].timestamp_ms == NOON_MS < sent[1].timestamp_ms
    assert found[a, 0].headers == (("trace", b"1"), ("empty", None))
    assert found[b, 0].headers == (("twice", b"1"), ("twice", b"2"))
    assert [each.partition for each in await kafka.produce("payments", b"1", b"2", key=b"c")] == [b, b]
    assert [each.partition for each in await kafka.produce("payments", b"1", b"2")] == [0, 0]
    assert await kafka.produce("payments", records=[]) == []
    await kafka.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    (stamped,) = await kafka.produce("stamped", records=[ProducerRecord(b"x", timestamp_ms=NOON_MS)])
    assert stamped == RecordMetadata("stamped", 0, 0, (await kafka.records("stamped"))[0].timestamp_ms)
    assert stamped.timestamp_ms > NOON_MS


@pytest.mark.asyncio
async def test_the_same_in_this_process_and_elsewhere() -> None:
    async with Cluster(clock="manual") as kafka:
        await story(kafka)
    async with Cluster() as kafka, RemoteCluster(kafka.address) as remote:
        await story(remote)


@pytest.mark.untraced
@pytest.mark.slow
@pytest.mark.asyncio
async def test_many_small_records_fit_into_their_batches() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        sent = await kafka.produce("orders", *[b"order"] * 100_000)
        assert [each.offset for each in sent] == list(range(100_000))


@pytest.mark.asyncio
async def test_more_than_one_batch_goes_to_the_leaders_of_several_partitions() -> None:
    async with Cluster(topics={"orders": 4}, brokers=3, clock="manual") as kafka:
        large = [ProducerRecord(b"%d" % number * 100_000, partition=number % 4) for number in range(10, 40)]
        sent = await kafka.produce("orders", records=large)
        assert [(each.partition, each.offset) for each in sent] == [(n % 4, (n - 10) // 4) for n in range(10, 40)]
        assert sum(len(each.value or b"") for each in await kafka.records("orders", 0)) > BATCH_BYTES


@pytest.mark.asyncio
async def test_records_without_a_key_go_to_one_partition_after_the_other_and_are_there_again_in_the_next_run() -> None:
    async def partitions() -> list[int]:
        async with Cluster(topics={"orders": 6}) as kafka:
            return [
                each.partition for each in await kafka.produce("orders", records=[ProducerRecord(b"x" * 1_000)] * 100)
            ]

    found = await partitions()
    assert found == await partitions()
    assert len(set(found)) > 2
    assert len(set(found[:16])) == 1


def test_what_is_refused_is_told_in_the_broker_s_words() -> None:
    with Cluster(topics={"small": Topic(1, {"max.message.bytes": 100})}, clock="manual").sync() as kafka:
        with pytest.raises(ValueError, match="small-0: MESSAGE_TOO_LARGE: "):
            kafka.produce("small", b"x" * 1_000)
        (sent,) = kafka.produce("small", records=[ProducerRecord(b"x", headers={"a": b"1"})])
        assert sent.offset == 0


def test_a_partition_without_a_leader_takes_nothing() -> None:
    partitioner = DefaultPartitioner(random.Random(0).random)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="orders-1 has no leader at present"):
        batches_of([ProducerRecord(b"x", partition=1)], "orders", {0: 1, 1: None}, partitioner)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"value": "text"}, TypeError, r"the value of a record is bytes: b'text', not 'text'"),
        ({"value": 7}, TypeError, r"the value of a record is bytes, not 7"),
        ({"key": "k"}, TypeError, r"the key of a record is bytes: b'k', not 'k'"),
        ({"headers": {"trace": "1"}}, TypeError, r"the header 'trace' of a record is bytes: b'1', not '1'"),
        ({"headers": {b"trace": b"1"}}, TypeError, r"headers=.*: values by their keys, such as {\"trace\": b\"1\"}"),
        ({"headers": [b"trace"]}, TypeError, r"headers=.*: values by their keys"),
        ({"headers": 7}, TypeError, r"headers=7: values by their keys"),
        ({"timestamp_ms": 1.5}, TypeError, r"timestamp_ms=1\.5: it is a whole number or None"),
        ({"timestamp_ms": -1}, ValueError, r"timestamp_ms=-1: it is 0 or more"),
        ({"partition": True}, TypeError, r"partition=True: it is a whole number or None"),
        ({"partition": -1}, ValueError, r"partition=-1: it is 0 or more"),
    ],
)
def test_a_record_says_what_is_wrong_with_it(wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ProducerRecord(**{"value": b"x", **wrong})


@pytest.mark.parametrize(
    ("values", "more", "text"),
    [
        (["text"], {}, "the value of a record is bytes: b'text', not 'text'"),
        ([], {}, "produce what"),
        ([ProducerRecord(b"x")], {}, r"is one of records=\[…\]"),
        ([b"x"], {"records": [ProducerRecord(b"x")]}, "its own value, key and partition"),
        ([], {"records": [ProducerRecord(b"x")], "key": b"k"}, "its own value, key and partition"),
        ([], {"records": [ProducerRecord(b"x")], "partition": 0}, "its own value, key and partition"),
        ([], {"records": ProducerRecord(b"x")}, "it is a list of records"),
        ([], {"records": b"x"}, "it is a list of records"),
        ([], {"records": 7}, "it is a list of records"),
        ([], {"records": [b"x"]}, r"records\[0\] is a ProducerRecord, such as ProducerRecord\(b'paid'\), not b'x'"),
    ],
)
@pytest.mark.asyncio
async def test_produce_says_what_is_wrong_with_its_arguments(
    values: list[Any], more: dict[str, Any], text: str
) -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        with pytest.raises(TypeError, match=text):
            await kafka.produce("orders", *values, **more)


@pytest.mark.asyncio
async def test_a_transactional_producer_takes_bytes_as_well() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        producer = kafka.manual_producer("billing")
        with pytest.raises(TypeError, match="the value of a record is bytes: b'text'"):
            producer.produce("orders", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="the key of a record is bytes: b'k'"):
            producer.produce("orders", b"x", key="k")  # type: ignore[arg-type]
