"""An unmodified aiokafka on simulated time: tests that cover minutes and run in a moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Partition
from aiokafka.errors import CommitFailedError

from groupcoord.coordinator.events import Departure, MemberRemoved, RebalanceStarted
from groupcoord.testing import Cluster, virtual_time
from groupcoord.testing.trace import RequestReceived

pytestmark = [pytest.mark.clients, pytest.mark.slow]

P0, P1 = Partition("orders", 0), Partition("orders", 1)


@asynccontextmanager
async def reading(kafka: Cluster, client_id: str, **settings: Any) -> AsyncIterator[tuple[AIOKafkaConsumer, Any]]:
    """A consumer of the group ``app``, and the task in which its application waits for a record."""
    settings = {"group_id": "app", "auto_offset_reset": "earliest", "fetch_max_wait_ms": 30_000, **settings}
    async with AIOKafkaConsumer("orders", bootstrap_servers=kafka.address, client_id=client_id, **settings) as consumer:
        record = asyncio.create_task(consumer.getone())
        try:
            yield consumer, record
        finally:
            record.cancel()


@virtual_time
async def test_a_spare_stays_and_takes_over() -> None:
    """aio-libs/aiokafka#720 "A Consumer with no partitions assigned will timeout and leave the consumer group"
    aio-libs/aiokafka#1187 "Consumer holding no partitions can never rejoin after max_poll_interval_ms"

    One partition, two consumers. The spare waited in `getone()` for longer than `max_poll_interval_ms` and was therefore
    removed from the group. When the active consumer ended, no member was left.

    Right: a consumer that waits for records counts as polling. The spare stays a member as long as it waits, and takes
    over.
    """
    async with (
        Cluster(topics={"orders": 1}, clock="virtual") as kafka,
        reading(kafka, "active"),
        reading(kafka, "spare") as (spare, record),
    ):
        await kafka.group("app").wait_stable(members=2, timeout=30)
        if spare.assignment():
            await kafka.group("app").expire_member("spare")  # so that it is the other one that reads
            await kafka.group("app").wait_until(lambda view: bool(view.member("active").assigned), "change", timeout=30)
        await asyncio.wait([record], timeout=900)
        kafka.trace.of(MemberRemoved, how=Departure.LEFT).none()
        assert len((await kafka.group("app").describe()).members) == 2
        await kafka.group("app").expire_member("active")
        await kafka.produce("orders", b"at last")
        await asyncio.wait([record], timeout=60)
        assert record.result().value == b"at last"


@virtual_time
async def test_too_long_between_two_polls() -> None:
    """confluentinc/confluent-kafka-python#552 "Application maximum poll interval (300000ms) exceeded by 88ms…"
    confluentinc/confluent-kafka-dotnet#1220 "Consumer error Local_MaxPollExceeded is Fatal for consumer"

    A handler takes longer than `max_poll_interval_ms`. The client leaves the group, as it should; an application that polls
    again afterwards must become a member again.

    Right: the client itself sends LeaveGroup, when the poll interval is over and not when the session times out. The other
    members take over at once; the next poll joins the group again.
    """
    async with (
        Cluster(topics={"orders": 2}, clock="virtual") as kafka,
        reading(kafka, "quick") as (quick, reads),
        reading(kafka, "slow") as (slow, record),
    ):
        await kafka.group("app").wait_stable(members=2, timeout=30)
        mine = next(iter(slow.assignment()))
        begun_ms = kafka.clock.now_ms()
        await kafka.produce("orders", b"a lot of work", partition=mine.partition)
        await asyncio.wait([record], timeout=30)
        await kafka.group("app").wait_until(lambda view: len(view.members) == 1, "do without it", timeout=400)
        gone = kafka.trace.of(MemberRemoved).one()
        assert gone.how is Departure.LEFT
        assert 300_000 <= gone.at_ms - begun_ms <= 310_000
        await kafka.group("app").wait_stable(members=1, timeout=30)
        await asyncio.wait([reads], timeout=1)  # it hears what it was assigned
        assert quick.assignment() == {P0, P1}
        again = asyncio.create_task(slow.getone())
        await kafka.group("app").wait_stable(members=2, timeout=30)
        await kafka.produce("orders", b"to one", partition=0)
        await kafka.produce("orders", b"to the other", partition=1)
        await asyncio.wait([again], timeout=30)
        assert again.done()


@virtual_time
async def test_back_after_a_minute_without_network() -> None:
    """aio-libs/aiokafka#344 "First commit after regaining connectivity causes group coordinator to raise exception and halt the
    loop"
    aio-libs/aiokafka#230 "Don't fail GroupCoordinator._on_join_prepare() if commit_offset() throws exception"

    There is no network for longer than the session timeout. When it was back, the first commit failed, which ended the
    background task, and no records were read any more, without an error.

    Right: the consumer learns that it is no longer a member, joins again, and reads the partitions that it is assigned.
    """
    async with Cluster(topics={"orders": 2}, clock="virtual") as kafka:
        quick = {"fetch_max_wait_ms": 3_000}
        async with reading(kafka, "there", **quick) as (there, _), reading(kafka, "away", **quick) as (away, record):
            await kafka.group("app").wait_stable(members=2, timeout=30)
            before = (await kafka.group("app").describe()).member("away").member_id
            with kafka.faults.when(client_id="away").drop():
                await asyncio.wait([record], timeout=100)
                assert there.assignment() == {P0, P1}
                kafka.trace.of(MemberRemoved, member=before, how=Departure.SESSION_OVER).one()
            await kafka.group("app").wait_stable(members=2, timeout=100)
            (mine,) = (await kafka.group("app").describe()).member("away").assigned
            await kafka.produce("orders", b"welcome back", partition=mine[1])
            await asyncio.wait([record], timeout=60)
            assert record.result().value == b"welcome back"
            assert away.assignment() == {Partition(*mine)}


@virtual_time
async def test_a_coordinator_after_a_minute() -> None:
    """dpkp/kafka-python#1310 "Rolling Kafka cluster results in Consumer not recovering"

    During a rolling restart there was no coordinator for a while. The consumer logged that it would try again, but did not.

    Right: the client repeats FindCoordinator until it succeeds. Its session has timed out meanwhile, so it joins as a new
    member.
    """
    async with (
        Cluster(topics={"orders": 2}, clock="virtual") as kafka,
        reading(kafka, "a", retry_backoff_ms=1_000) as (_, record),
    ):
        await kafka.group("app").wait_stable(members=1, timeout=30)
        before = (await kafka.group("app").describe()).member("a").member_id
        with kafka.faults.when("FindCoordinator").refuse("COORDINATOR_NOT_AVAILABLE"):
            await kafka.stop()
            await asyncio.wait([record], timeout=5)
            await kafka.restart()
            await asyncio.wait([record], timeout=60)
            assert before not in await kafka.group("app").assignment()
            assert len(kafka.trace.of(RequestReceived, api="FindCoordinator")) > 10
        view = await kafka.group("app").wait_stable(members=1, timeout=30)
        assert view.member("a").member_id != before
        await kafka.produce("orders", b"it reads")
        await asyncio.wait([record], timeout=30)
        assert record.result().value == b"it reads"


@virtual_time
async def test_loading_passes() -> None:
    """tulios/kafkajs#267 "[Consumer] Stopped when Kafka broker restarts"

    After a restart the coordinator is loading for some seconds, and each request gets COORDINATOR_LOAD_IN_PROGRESS.

    Right: the client repeats the request, keeps its partitions, and gets its committed offset.
    """
    async with Cluster(topics={"orders": 1}, clock="virtual") as kafka:
        await kafka.produce("orders", b"done before", b"new")
        async with reading(kafka, "first") as (consumer, record):
            await record
            await consumer.commit()
        for api in ("FindCoordinator", "JoinGroup"):
            kafka.faults.when(api).refuse("COORDINATOR_LOAD_IN_PROGRESS").times(5)
        async with reading(kafka, "second") as (_, record):
            await asyncio.wait([record], timeout=60)
            assert record.result().value == b"new"


@virtual_time
async def test_many_commits_lose_their_connection_together() -> None:
    """apache/kafka#4349 "KAFKA-6366: Fix stack overflow in consumer due to many offset commits during coordinator disconnect"

    A hundred commits were in flight when the connection was lost; each of them marked the coordinator as unknown again.

    Right: the client looks up the coordinator once, or once for each lost connection, and no commit is lost.
    """
    async with (
        Cluster(topics={"orders": 1}, clock="virtual") as kafka,
        reading(kafka, "a", enable_auto_commit=False) as (consumer, _),
    ):
        await kafka.group("app").wait_stable(members=1, timeout=30)
        searched = len(kafka.trace.of(RequestReceived, api="FindCoordinator"))
        hold = kafka.faults.when("OffsetCommit").hold()
        commits = [asyncio.create_task(consumer.commit({P0: number})) for number in range(100)]
        await hold.wait()
        await kafka.stop()
        await kafka.restart()
        await asyncio.gather(*commits)
        assert len(kafka.trace.of(RequestReceived, api="FindCoordinator")) - searched <= 3
        await consumer.commit({P0: 100})
        assert await kafka.group("app").committed("orders", 0) == 100
        assert len(kafka.trace.of(RebalanceStarted)) == 1


@virtual_time
async def test_who_forgets_its_id_waits_for_itself() -> None:
    """apache/kafka#11451 "KAFKA-13419: Only reset generation ID when ILLEGAL_GENERATION error"

    A commit gets ILLEGAL_GENERATION. The client forgets its member id together with the generation and joins as a new
    member. The group waits for the old member id, which sends no heartbeats, until its session times out.

    Right: only the generation is invalid. A client that keeps its member id, as Kafka's own client does since this fix,
    does not have to wait; aiokafka forgets the id and waits. The commit raises an error, and its records are read again.
    """
    async with (
        Cluster(topics={"orders": 1}, clock="virtual") as kafka,
        reading(kafka, "a", enable_auto_commit=False, fetch_max_wait_ms=500) as (consumer, record),
    ):
        await kafka.produce("orders", b"twice")
        assert (await record).value == b"twice"
        kafka.faults.when("OffsetCommit").refuse("ILLEGAL_GENERATION")
        began_ms = kafka.clock.now_ms()
        with pytest.raises(CommitFailedError):
            await consumer.commit()
        assert (await consumer.getone()).value == b"twice"
        assert kafka.clock.now_ms() - began_ms >= 10_000  # aiokafka's session_timeout_ms
        kafka.trace.of(MemberRemoved, how=Departure.SESSION_OVER).one()
        assert [each.client_id for each in (await kafka.group("app").describe()).members] == ["a"]


@virtual_time
async def test_new_partitions_find_an_owner() -> None:
    """IBM/sarama#1462 "Add a new partition during the consumer group running，but the cousumer group not rebalance。"
    tulios/kafkajs#133 "Trigger rebalance if partitions change after metadata update"

    A topic gets more partitions, producers write to them at once, and no consumer reads them.

    Right: the leader notices the new partitions within `metadata_max_age_ms`, and records written meanwhile are read from
    the beginning of these partitions.
    """
    async with (
        Cluster(topics={"orders": 1}, clock="virtual") as kafka,
        reading(kafka, "a", metadata_max_age_ms=60_000) as (consumer, record),
    ):
        await kafka.group("app").wait_stable(members=1, timeout=30)
        await kafka.add_partitions("orders", 1)
        await kafka.produce("orders", b"early", partition=1)
        await asyncio.wait([record], timeout=100)
        assert (record.result().partition, record.result().value) == (1, b"early")
        assert consumer.assignment() == {P0, P1}
