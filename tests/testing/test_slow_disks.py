"""Brokers with slow disks: what they append comes later, as leaders, as followers and as coordinators."""

import asyncio
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import BrokerStateChanged, IsrChanged, LogTruncated
from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import MetadataRequest
from groupcoord.testing.wait_reasons import wait_reasons
from tests.testing.faults import support
from tests.testing.producing import outcome, produce

pytestmark = pytest.mark.asyncio
SESSION_S, LAG_S = 9.0, 30.0


def trio(**topics: int) -> gc.Cluster:
    config = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3}
    return gc.Cluster(brokers=3, clock="manual", topics=topics or {"orders": 1}, config=config)


def one(**config: object) -> gc.Cluster:
    return gc.Cluster(clock="manual", topics={"orders": 1}, config=config)


def state(kafka: gc.Cluster) -> PartitionState:
    return kafka.core.broker.topics["orders"].metadata.partitions[0]


def copies(kafka: gc.Cluster) -> dict[int, int]:
    """Where the copy of each broker ends."""
    return {broker: log.log_end_offset for broker, log in kafka.core.broker.topics["orders"].copies[0].items()}


def end(kafka: gc.Cluster) -> int:
    return kafka.core.broker.topics["orders"].partitions[0].log_end_offset


@pytest.mark.parametrize("acks", [1, -1])
async def test_what_is_produced_is_in_the_log_and_answered_when_the_disk_has_it(acks: int) -> None:
    async with one() as kafka:
        await kafka.broker(1).slow_disk(0.5)
        written = await produce(kafka, 1, acks)
        await kafka.clock.advance(0.499)
        assert (written.done(), end(kafka)) == (False, 0)
        await kafka.clock.advance(0.001)
        assert (outcome(await written), end(kafka)) == (("NONE", 0), 1)


async def test_appends_end_in_the_order_in_which_they_began() -> None:
    async with one() as kafka:
        await kafka.broker(1).slow_disk(2)
        slow = await produce(kafka, 1)
        await kafka.clock.advance(1)
        await kafka.broker(1).slow_disk(0.25)
        behind = await produce(kafka, 1)
        await kafka.broker(1).slow_disk(0)
        last = await produce(kafka, 1)
        await kafka.clock.advance(0.999)
        assert not any(each.done() for each in (slow, behind, last))
        await kafka.clock.advance(0.001)
        assert [outcome(await each) for each in (slow, behind, last)] == [("NONE", 0), ("NONE", 1), ("NONE", 2)]
        assert outcome(await (await produce(kafka, 1))) == ("NONE", 3)
        told = [each.state for each in kafka.trace.of(BrokerStateChanged)]
        assert told == [
            "on a slow disk: 2000 ms for each append",
            "on a slow disk: 250 ms for each append",
            "on a quick disk again",
        ]


async def test_what_is_refused_before_the_append_is_refused_at_once() -> None:
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        for each in (leader, follower):
            await kafka.broker(each).slow_disk(5)
        assert outcome(await (await produce(kafka, follower))) == ("NOT_LEADER_OR_FOLLOWER", -1)
        assert outcome(await (await produce(kafka, leader, acks=7))) == ("INVALID_REQUIRED_ACKS", -1)


async def test_acks_all_waits_for_a_follower_with_a_slow_disk_and_acks_1_does_not() -> None:
    async with trio() as kafka:
        leader, slow, quick = state(kafka).replicas
        await kafka.broker(slow).slow_disk(0.5)
        patient = await produce(kafka, leader)
        assert outcome(await (await produce(kafka, leader, acks=1))) == ("NONE", 1)
        await kafka.clock.advance(0.5)
        assert (outcome(await patient), copies(kafka)) == (("NONE", 0), {leader: 2, slow: 1, quick: 2})
        await kafka.clock.advance(0.5)
        assert (copies(kafka)[slow], len(await kafka.records("orders"))) == (2, 2)


async def test_a_follower_that_keeps_up_on_its_slow_disk_stays_in_sync() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).slow_disk(12)
        for _ in range(10):
            await produce(kafka, leader, acks=1)
            await kafka.clock.advance(9)
        assert copies(kafka)[slow] < end(kafka)
        kafka.trace.of(IsrChanged, topic="orders").none()


async def test_a_follower_that_does_not_keep_up_on_its_slow_disk_falls_out_and_comes_back() -> None:
    """Each of its appends is shorter than the time that is given, and two of them are not."""
    async with trio() as kafka:
        leader, slow, quick = state(kafka).replicas
        await kafka.broker(slow).slow_disk(25)
        for _ in range(8):
            await produce(kafka, leader, acks=1)
            await kafka.clock.advance(9)
        assert set(state(kafka).isr) == {leader, quick}
        assert outcome(await (await produce(kafka, leader))) == ("NONE", 8)
        await kafka.broker(slow).slow_disk(0)
        await kafka.clock.advance(25)
        assert (set(state(kafka).isr), copies(kafka)[slow]) == ({1, 2, 3}, 9)
        await kafka.clock.advance(2 * LAG_S)
        assert not [each for each in kafka.core.deadlines() if each.key.kind == "replica lag"]


async def test_a_follower_whose_single_append_takes_longer_than_the_lag_falls_out() -> None:
    async with trio() as kafka:
        leader, slow, quick = state(kafka).replicas
        await kafka.broker(slow).slow_disk(LAG_S + 1)
        written = await produce(kafka, leader, timeout_ms=60_000)
        await kafka.clock.advance(LAG_S)
        assert (outcome(await written), set(state(kafka).isr)) == (("NONE", 0), {leader, quick})
        await kafka.clock.advance(1)
        assert set(state(kafka).isr) == {1, 2, 3}


async def test_a_slow_follower_that_stops_copying_has_the_whole_lag_from_then_on() -> None:
    async with trio() as kafka:
        leader, slow, quick = state(kafka).replicas
        await kafka.broker(slow).slow_disk(0.1)
        await kafka.clock.advance(LAG_S - 1)
        await kafka.broker(slow).pause_replication()
        await produce(kafka, leader, acks=1)
        await kafka.clock.advance(LAG_S - 1)
        assert set(state(kafka).isr) == {1, 2, 3}
        await kafka.clock.advance(LAG_S / 2)
        assert set(state(kafka).isr) == {leader, quick}
        await kafka.broker(slow).resume_replication()
        await kafka.clock.advance(0.1)
        assert set(state(kafka).isr) == {1, 2, 3}


def commit(kafka: gc.Cluster, broker: int, offset: int) -> "asyncio.Task[Any]":
    """A commit of a consumer without a group; the task is done when that is answered."""
    return asyncio.ensure_future(kafka.ask_broker(broker, support.commit(offset), version=9))


def committed(answer: Any) -> str:
    return ErrorCode(answer.topics[0].partitions[0].error_code).name


async def test_a_commit_is_answered_when_the_disk_of_the_coordinator_has_it() -> None:
    async with one() as kafka:
        await kafka.broker(1).slow_disk(0.5)
        asked = commit(kafka, 1, 5)
        await kafka.settle()
        assert any(line.endswith("is under way to a slow disk") for line in wait_reasons(kafka._engine))
        await kafka.clock.advance(0.499)
        assert not asked.done()
        await kafka.clock.advance(0.001)
        assert (committed(await asked), await kafka.group("app").committed("orders", 0)) == ("NONE", 5)


async def test_an_append_that_a_rule_holds_is_stored_when_it_is_released_and_those_behind_it_then() -> None:
    async with one() as kafka:
        await kafka.broker(1).slow_disk(0.5)
        hold = kafka.hold_append(group="app")
        held, behind = commit(kafka, 1, 5), commit(kafka, 1, 6)
        await kafka.clock.advance(0.5)
        assert (held.done(), behind.done()) == (False, False)
        hold.release()
        assert [committed(await each) for each in (held, behind)] == ["NONE", "NONE"]


async def test_what_a_coordinator_was_writing_is_lost_when_it_moves() -> None:
    async with trio() as kafka:
        partition = kafka.core.coordinator.shard_of("app").partition
        slow = kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition]
        await kafka.broker(slow).slow_disk(0.5)
        lost = commit(kafka, slow, 5)
        await kafka.settle()
        await kafka.group("app").move_coordinator(to=slow % 3 + 1)
        assert committed(await lost) == "NOT_COORDINATOR"
        await kafka.clock.advance(0.5)
        assert await kafka.group("app").committed("orders", 0) is None


async def transaction(kafka: gc.Cluster) -> "asyncio.Future[Any]":
    """The end of a transaction with a record in orders-0 is on its way."""
    producer = kafka.manual_producer("billing")
    while (await producer.init()).error_code:
        await kafka.clock.advance(0.1)
    while (await producer.produce("orders", b"one", partition=0)).error_code:
        await kafka.clock.advance(0.1)
    await kafka.broker(state(kafka).leader).slow_disk(0.5)
    ending = asyncio.ensure_future(producer.end())
    await kafka.settle()
    return ending


async def test_the_marker_of_a_transaction_takes_the_time_of_the_disk() -> None:
    async with one() as kafka:
        ending = await transaction(kafka)
        await kafka.clock.advance(0.5)
        await ending  # that it will be committed is stored
        assert (end(kafka), await kafka.transaction("billing").state()) == (1, "PrepareCommit")
        await kafka.clock.advance(0.5)
        assert end(kafka) == 2
        await kafka.clock.advance(0.5)
        assert await kafka.transaction("billing").state() == "CompleteCommit"


async def test_the_marker_of_a_transaction_that_a_broker_was_writing_when_it_died_comes_to_the_next_leader() -> None:
    config = {
        "default.replication.factor": 3,
        "transaction.state.log.num.partitions": 3,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 1,
    }
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=config) as kafka:
        producer = kafka.manual_producer("billing")
        while (await producer.init()).error_code:
            await kafka.clock.advance(0.1)
        leader = state(kafka).leader
        await kafka.transaction("billing").move_coordinator(to=leader % 3 + 1)
        while (await producer.produce("orders", b"one", partition=0)).error_code:
            await kafka.clock.advance(0.1)
        await kafka.broker(leader).slow_disk(5)
        ending = asyncio.ensure_future(producer.end())
        await kafka.clock.advance(1)
        await kafka.broker(leader).kill()
        await kafka.clock.advance(SESSION_S + 15)
        assert (await kafka.transaction("billing").state(), end(kafka)) == ("CompleteCommit", 2)
        assert state(kafka).leader != leader
        await asyncio.wait([ending], timeout=60)


async def test_what_a_broker_was_writing_when_it_died_is_in_no_log() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).slow_disk(2)
        await produce(kafka, leader, acks=1)
        await kafka.broker(slow).kill()
        await kafka.broker(leader).slow_disk(2)
        lost = await produce(kafka, leader, acks=1)
        await kafka.clock.advance(1)
        await kafka.broker(leader).kill()
        with pytest.raises(ConnectionResetError):
            await lost
        await kafka.clock.advance(SESSION_S)
        await kafka.broker(leader).start()
        await kafka.broker(slow).start()
        await kafka.clock.advance(SESSION_S)
        assert set(copies(kafka).values()) == {1}
        assert set(state(kafka).isr) == {1, 2, 3}


async def test_what_a_paused_broker_was_writing_is_written_when_it_goes_on() -> None:
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        for each in (leader, follower):
            await kafka.broker(each).slow_disk(2)
        written = await produce(kafka, leader, acks=1)
        await kafka.broker(leader).pause()
        await kafka.clock.advance(3)
        assert (written.done(), end(kafka)) == (False, 0)
        await kafka.broker(leader).resume()
        await kafka.clock.advance(2)
        assert outcome(await written) == ("NONE", 0)
        await kafka.broker(follower).pause()
        await kafka.clock.advance(3)
        assert copies(kafka)[follower] == 0
        await kafka.broker(follower).resume()
        await kafka.clock.advance(2)
        assert copies(kafka)[follower] == 1


async def test_a_leader_that_is_cut_off_from_the_controller_writes_slowly_on() -> None:
    async with trio() as kafka:
        zombie = state(kafka).leader
        await kafka.broker(zombie).slow_disk(1)
        await kafka.broker(zombie).cut_off("controller")
        await kafka.clock.advance(SESSION_S)
        written = await produce(kafka, zombie, acks=1)
        await kafka.clock.advance(1)
        assert outcome(await written) == ("NONE", 0)
        await kafka.broker(zombie).reconnect("controller")
        assert kafka.trace.of(LogTruncated).one().lost == 1


async def test_what_a_follower_was_writing_is_not_what_it_has_as_a_leader() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).slow_disk(20)
        await produce(kafka, leader, acks=1)
        await kafka.broker(leader).stop()
        assert state(kafka).leader == slow
        await kafka.clock.advance(20)
        assert copies(kafka)[slow] == 0
        await kafka.broker(slow).slow_disk(0)
        await kafka.broker(leader).start()
        assert set(copies(kafka).values()) == {0}


async def test_a_topic_that_is_deleted_while_a_follower_writes() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).slow_disk(1)
        await produce(kafka, leader, acks=1)
        await kafka.delete_topic("orders")
        await kafka.clock.advance(1)
        assert kafka.server_errors == []


async def test_a_follower_that_cannot_keep_what_it_wrote_slowly_copies_with_the_next_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).slow_disk(1)

        def fails(*_: Any) -> None:
            raise BatchError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(kafka.core.broker.topics["orders"].copies[0][slow], "append_as_follower", fails)
            await produce(kafka, leader, acks=1)
            await kafka.clock.advance(1)
        assert copies(kafka)[slow] == 0
        await produce(kafka, leader, acks=1)
        await kafka.clock.advance(1)
        assert copies(kafka)[slow] == 2


async def test_what_needs_no_disk_is_answered_at_once() -> None:
    """Deviation (scope-of-a-stand-in)."""
    async with trio() as kafka:
        await kafka.broker(2).slow_disk(60)
        assert len((await kafka.ask_broker(2, MetadataRequest())).brokers) == 3


async def test_a_follower_fetches_no_more_than_a_megabyte_at_a_time_and_is_behind_until_it_has_all() -> None:
    config = {"default.replication.factor": 3, "replica.fetch.max.bytes": 1}
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=config) as kafka:
        leader, slow, quick = state(kafka).replicas
        await kafka.broker(slow).slow_disk(12)
        for _ in range(4):
            await produce(kafka, leader, acks=1)
        await kafka.clock.advance(LAG_S)
        assert (copies(kafka)[slow], set(state(kafka).isr)) == (2, {leader, quick})
        await kafka.clock.advance(18)
        assert (copies(kafka)[slow], set(state(kafka).isr)) == (4, {1, 2, 3})


@pytest.mark.parametrize("seconds", [-1, 0.0001, float("nan"), float("inf"), 86_401, True, "1"])
async def test_what_is_no_time_for_an_append_is_said(seconds: float) -> None:
    async with one() as kafka:
        with pytest.raises(ValueError, match=r"an append takes 0\.001 to 86400 seconds on a slow disk; 0 is as quick"):
            await kafka.broker(1).slow_disk(seconds)


async def test_a_lone_broker_can_be_nothing_else_than_slow() -> None:
    async with one() as kafka:
        with pytest.raises(ValueError, match="a lone broker has no others that go on without it"):
            await kafka.broker(1).pause_replication()
        await kafka.broker(1).slow_disk(0)
        assert outcome(await (await produce(kafka, 1))) == ("NONE", 0)
