"""Fetching: no partition waits for another, and every error code has its answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from groupcoord.client.client_errors import BrokerError, CorruptRecordsError
from groupcoord.client.consumer import Consumer
from groupcoord.protocol.apis.fetch import FetchableTopicResponse, PartitionData
from groupcoord.protocol.batches.compression import Compression
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, MetadataRequest
from tests.client.broker import HANG_UP, Broker, broker, eventually, forever, patiently

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]
T = ("t", 0)


@asynccontextmanager
async def member(real: Broker, **how: Any) -> AsyncIterator[Consumer]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "retry_backoff_ms": 1, **how}
    async with Consumer("t", bootstrap_servers=real.address, group_id="g", **settings) as consumer:
        while not consumer.assignment():
            await consumer.getmany(50)
        yield consumer


async def read(consumer: Consumer, count: int, most: int | None = None) -> list[bytes | None]:
    """The values of the next ``count`` records, up to ``most`` at a time."""
    values: list[bytes | None] = []
    while len(values) < count:
        for records in (await consumer.getmany(1_000, most)).values():
            values += [record.value for record in records]
    assert len(values) == count
    return values


def refused(code: E, **fields: Any) -> Callable[[FetchRequest], FetchResponse]:
    """All that is asked for is refused with ``code``."""

    def answer(request: FetchRequest) -> FetchResponse:
        return FetchResponse(
            responses=tuple(
                FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        PartitionData(
                            partition_index=each.partition,
                            error_code=code,
                            **{"high_watermark": -1, "records": None, **fields},
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return answer


@pytest.mark.parametrize("compression", Compression)
@patiently
async def test_records_come_whatever_they_are_compressed_with(compression: Compression) -> None:
    async with broker() as real, member(real) as consumer:
        values = [b"value %d" % number for number in range(50)]
        await real.produce("t", values, attributes=compression)
        assert await read(consumer, 50) == values


@pytest.mark.parametrize("version", [4, 8, 12, 13])
@patiently
async def test_records_come_from_old_brokers_too(version: int) -> None:
    async with broker() as real:
        real.speaks(Fetch=version)
        async with member(real) as consumer:
            await real.produce("t", [b"a"])
            assert await read(consumer, 1) == [b"a"]
            assert {call.version for call in real.calls if call.api.name == "Fetch"} == {version}


@patiently
async def test_topics_without_ids_are_fetched_by_name() -> None:
    async with broker() as real:
        real.speaks(Metadata=9)
        async with member(real) as consumer:
            await real.produce("t", [b"a"])
            assert await read(consumer, 1) == [b"a"]
            assert {call.version for call in real.calls if call.api.name == "Fetch"} == {12}


@patiently
async def test_a_busy_partition_never_waits_for_an_idle_one() -> None:
    """Partition 1 has nothing, and the fetch for it waits an hour; partition 0 goes on nevertheless."""
    async with (
        broker({"t": 2}) as real,
        member(real, fetch_max_wait_ms=3_600_000, request_timeout_ms=7_200_000, max_poll_records=1) as consumer,
    ):
        for number in range(20):
            await real.produce("t", [b"%d" % number])
        assert await read(consumer, 20) == [b"%d" % number for number in range(20)]


@patiently
async def test_a_paused_partition_is_not_asked_for_and_holds_nobody() -> None:
    async with broker({"t": 2}) as real, member(real, fetch_max_wait_ms=10) as consumer:
        consumer.pause(("t", 0))
        assert consumer.paused() == {("t", 0)}
        await real.produce("t", [b"paused"], 0)
        await real.produce("t", [b"other"], 1)
        assert await read(consumer, 1) == [b"other"]
        assert await consumer.getmany(30) == {}
        consumer.resume(("t", 0))
        assert await read(consumer, 1) == [b"paused"]


@patiently
async def test_what_is_enough_is_not_fetched_any_more() -> None:
    async with broker() as real:
        for batch in ([b"a", b"b"], [b"c", b"d"], [b"e", b"f"]):
            await real.produce("t", batch)
        small: Any = {"max_poll_records": 2, "max_partition_fetch_bytes": 1, "fetch_max_wait_ms": 10}
        async with Consumer(
            "t", bootstrap_servers=real.address, group_id="g", auto_offset_reset="earliest", **small
        ) as consumer:
            polling = asyncio.create_task(consumer.getmany(10_000, 1))
            assert [record.value for records in (await polling).values() for record in records] == [b"a"]
            await eventually(lambda: len(real.got(FetchRequest)) == 2)
            for _ in range(3):
                assert await consumer.committed() == {T: None}  # time for another fetch, if there was one
            assert len(real.got(FetchRequest)) == 2
            assert [value for _ in range(5) for value in await read(consumer, 1, most=1)] == [
                b"b",
                b"c",
                b"d",
                b"e",
                b"f",
            ]


@patiently
async def test_a_seek_throws_away_what_was_on_its_way() -> None:
    async with broker() as real, member(real) as consumer:
        await real.produce("t", [b"%d" % number for number in range(10)])
        assert (await read(consumer, 10))[0] == b"0"
        consumer.seek(T, 7)
        assert await consumer.position(T) == 7
        assert await read(consumer, 3) == [b"7", b"8", b"9"]
        consumer.seek_to_beginning()
        assert await consumer.position(T) == 0
        assert len(await read(consumer, 10)) == 10
        consumer.seek(T, 3)
        consumer.seek_to_end(T)
        assert await consumer.position(T) == 10


@patiently
async def test_a_seek_does_not_wait_for_a_fetch_that_waits() -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=3_600_000, request_timeout_ms=7_200_000) as consumer:
        await real.produce("t", [b"a", b"b"])
        await read(consumer, 2)
        await consumer.getmany(20)
        consumer.seek(T, 1)
        assert await read(consumer, 1) == [b"b"]


# Error codes.

STALE = [
    E.NOT_LEADER_OR_FOLLOWER,
    E.FENCED_LEADER_EPOCH,
    E.UNKNOWN_LEADER_EPOCH,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.UNKNOWN_TOPIC_ID,
    E.INCONSISTENT_TOPIC_ID,
    E.KAFKA_STORAGE_ERROR,
    E.LEADER_NOT_AVAILABLE,
    E.REPLICA_NOT_AVAILABLE,
    E.OFFSET_NOT_AVAILABLE,
]


@pytest.mark.parametrize("code", STALE)
@patiently
async def test_what_the_client_knows_is_out_of_date(code: E) -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        before = len(real.got(MetadataRequest))
        real.answers(FetchRequest, refused(code))
        await real.has_answered()
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]
        await real.gets(MetadataRequest, before + 1)


@pytest.mark.parametrize("code", [E.UNKNOWN_SERVER_ERROR, E.REQUEST_TIMED_OUT])
@patiently
async def test_what_may_pass_is_tried_again(code: E) -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, refused(code), refused(code))
        await real.has_answered()
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@pytest.mark.parametrize("code", [E.TOPIC_AUTHORIZATION_FAILED, E(999)])
@patiently
async def test_what_does_not_pass_is_raised_once_each_time(code: E) -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, refused(code))
        with pytest.raises(BrokerError, match=r"the records of t-0"):
            await forever(consumer)
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@pytest.mark.parametrize("answer", [FetchResponse(error_code=E.FETCH_SESSION_ID_NOT_FOUND), HANG_UP])
@patiently
async def test_a_fetch_that_fails_as_a_whole(answer: object) -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, answer, answer)
        await real.has_answered()
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@patiently
async def test_a_fetch_that_is_refused_as_a_whole() -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, FetchResponse(error_code=E.CLUSTER_AUTHORIZATION_FAILED))
        with pytest.raises(BrokerError, match="Fetch: CLUSTER_AUTHORIZATION_FAILED"):
            await forever(consumer)


@patiently
async def test_partitions_nobody_asked_for_are_ignored() -> None:
    def answer(request: FetchRequest) -> FetchResponse:
        (topic,) = refused(E.UNKNOWN_SERVER_ERROR)(request).responses
        stranger = replace(topic.partitions[0], partition_index=99)
        return FetchResponse(
            responses=(replace(topic, partitions=(stranger,)), replace(topic, topic="", topic_id=None))
        )

    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, answer)
        await real.has_answered()
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@patiently
async def test_corrupt_records_are_raised_and_stay_where_they_are() -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10) as consumer:
        real.answers(FetchRequest, refused(E.NONE, high_watermark=1, records=b"\0" * 12 + b"\xff" * 70))
        with pytest.raises(CorruptRecordsError, match="t-0 at offset 0"):
            await forever(consumer)
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@patiently
async def test_a_nearer_replica_is_read_from_until_it_is_out_of_range() -> None:
    """KIP-392. The one broker is its own nearer replica; what it is asked is what counts."""
    async with (
        broker() as real,
        member(
            real, client_rack="r", fetch_max_wait_ms=10, fetch_max_bytes=77, isolation_level="read_committed"
        ) as consumer,
    ):
        real.answers(
            FetchRequest,
            refused(E.NONE, high_watermark=1, preferred_read_replica=1),
            refused(E.OFFSET_OUT_OF_RANGE),
            refused(E.NONE, high_watermark=1, preferred_read_replica=77),
        )
        await real.has_answered()
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]
        asked = {(request.rack_id, request.max_bytes, request.isolation_level) for request in real.got(FetchRequest)}
        assert asked == {("r", 77, 1)}
        assert len(real.got(ListOffsetsRequest)) == 1, (
            "the first position only: a replica that lags is not a reason to reset"
        )


@patiently
async def test_a_partition_without_a_leader_is_waited_for() -> None:
    async with broker() as real:
        led_by_nobody = 3

        def headless(_: object, answer: Any) -> Any:
            nonlocal led_by_nobody
            led_by_nobody -= 1
            if led_by_nobody < 0 or not answer.topics:
                return answer
            (topic,) = answer.topics
            return replace(answer, topics=(replace(topic, partitions=(replace(topic.partitions[0], leader_id=-1),)),))

        real.alter(MetadataRequest, headless)
        async with member(real, fetch_max_wait_ms=10) as consumer:
            await real.produce("t", [b"a"])
            assert await read(consumer, 1) == [b"a"]


@patiently
async def test_a_leader_that_goes_is_waited_for() -> None:
    async with broker() as real, member(real, fetch_max_wait_ms=10, retry_backoff_max_ms=2) as consumer:
        assert await consumer.position(T) == 0
        answers_without = 20

        def headless(_: object, answer: Any) -> Any:
            nonlocal answers_without
            answers_without -= 1
            (topic,) = answer.topics
            nobodys = replace(topic, partitions=(replace(topic.partitions[0], leader_id=-1),))
            return answer if answers_without < 0 else replace(answer, topics=(nobodys,))

        real.alter(MetadataRequest, headless)
        real.answers(FetchRequest, refused(E.NOT_LEADER_OR_FOLLOWER))
        while answers_without >= 0:
            await consumer.getmany(20)
        await real.produce("t", [b"a"])
        assert await read(consumer, 1) == [b"a"]


@patiently
async def test_what_is_revoked_while_it_is_on_its_way_is_thrown_away() -> None:
    async with broker({"t": 1, "u": 1}) as real, member(real, fetch_max_wait_ms=100) as consumer:
        await consumer.getmany(10)
        consumer.subscribe("u")
        while consumer.assignment() != {("u", 0)}:
            await consumer.getmany(50)
        await real.produce("t", [b"t"])
        await real.produce("u", [b"u"])
        assert await read(consumer, 1) == [b"u"]


@patiently
async def test_stopping_while_everything_is_under_way() -> None:
    async with broker() as real:
        consumer = Consumer("t", bootstrap_servers=real.address, group_id="g")
        async with consumer:
            await real.gets(FetchRequest) if consumer.assignment() else None
            real.answers(FetchRequest, refused(E.UNKNOWN_SERVER_ERROR))
            await consumer.getmany(100)
        await eventually(lambda: real.server.connection_count == 0)
        assert not [task for task in asyncio.all_tasks() if "groupcoord/client" in str(task.get_coro())]
