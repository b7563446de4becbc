"""Brokers of a test's cluster that stop, die, pause, fall behind and come back: what clients, groups and records see of it."""

import asyncio
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.alter_configs import ResourceType
from groupcoord.broker.events import IsrChanged, LeaderChanged, LogTruncated
from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from groupcoord.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from groupcoord.protocol.apis.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from groupcoord.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from groupcoord.protocol.batches.record_batch import build_batch
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import (
    DescribeClusterRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from tests.testing import producing
from tests.testing.producing import outcome

pytestmark = pytest.mark.asyncio
SESSION_S = 9.0
LAG_S = 30.0


def trio(lag_ms: int = 30_000, **topics: gc.Topic | int) -> gc.Cluster:
    config = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3, "replica.lag.time.max.ms": lag_ms}
    return gc.Cluster(brokers=3, clock="manual", topics=topics or {"orders": 3}, config=config)


def leader_of(kafka: gc.Cluster, topic: str, partition: int = 0) -> int:
    found = kafka.core.broker.topics.get(topic)
    assert found is not None
    return found.metadata.leaders[partition]


def followers_of(kafka: gc.Cluster, topic: str, partition: int = 0) -> list[int]:
    return [broker_id for broker_id in kafka.brokers if broker_id != leader_of(kafka, topic, partition)]


def state_of(kafka: gc.Cluster, topic: str, partition: int = 0) -> PartitionState:
    found = kafka.core.broker.topics.get(topic)
    assert found is not None
    return found.metadata.partitions[partition]


def log_of(kafka: gc.Cluster, topic: str, partition: int = 0) -> Any:
    return kafka.core.broker.log(topic, partition)


async def produce(kafka: gc.Cluster, acks: int = -1, timeout_ms: int = 2000) -> "asyncio.Task[Any]":
    """Write a record to orders-0 at its leader; the task is done when that is answered."""
    return await producing.produce(kafka, leader_of(kafka, "orders"), acks, timeout_ms)


async def test_a_group_goes_on_where_its_coordinator_stopped() -> None:
    async with trio() as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        a.commit({("orders", 0): 5})
        await kafka.settle()
        group = kafka.group("app")
        coordinator = leader_of(kafka, "__consumer_offsets", kafka.core.coordinator.shard_of("app").partition)
        await kafka.broker(coordinator).stop()
        await kafka.clock.advance(10)
        assert (await group.committed("orders", 0), a.is_stable, b.is_stable) == (5, True, True)
        assert leader_of(kafka, "orders", 0) != coordinator
        assert coordinator not in {
            one.node_id for one in (await kafka.ask_broker(_other(coordinator), MetadataRequest())).brokers
        }


def _other(broker_id: int) -> int:
    return broker_id % 3 + 1


async def test_a_killed_coordinator_is_named_until_its_session_ends() -> None:
    async with trio() as kafka:
        coordinator = leader_of(kafka, "__consumer_offsets", kafka.core.coordinator.shard_of("app").partition)
        broker = kafka.broker(coordinator)
        await broker.kill()
        asks = FindCoordinatorRequest(coordinator_keys=("app",))
        (found,) = (await kafka.ask_broker(_other(coordinator), asks)).coordinators
        assert (found.node_id, broker.state, broker.is_fenced) == (coordinator, "stopped", False)
        with pytest.raises(ConnectionResetError):
            await kafka.ask_broker(coordinator, asks)
        await kafka.clock.advance(SESSION_S)
        (found,) = (await kafka.ask_broker(_other(coordinator), asks)).coordinators
        assert found.node_id not in (coordinator, -1)
        assert broker.is_fenced
        assert repr(broker) == f"<ClusterBroker {coordinator}: stopped, fenced>"
        assert list(kafka.brokers) == [1, 2, 3]


async def test_a_paused_broker_answers_when_it_goes_on() -> None:
    async with trio() as kafka:
        broker = kafka.broker(2)
        await broker.pause()
        asked = asyncio.ensure_future(kafka.ask_broker(2, MetadataRequest()))
        await kafka.settle()
        assert not asked.done()
        await broker.resume()
        assert len((await asked).brokers) == 3
        assert broker.state == "running"


async def test_what_a_paused_broker_would_have_said_comes_when_it_goes_on() -> None:
    async with trio(orders=1) as kafka:
        leader = leader_of(kafka, "orders")
        topics = (
            FetchTopic(
                topic="orders", partitions=(FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100),)
            ),
        )
        fetch = FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=100, topics=topics)
        asked = asyncio.ensure_future(kafka.ask_broker(leader, fetch, version=11))
        await kafka.settle()
        await kafka.broker(leader).pause()
        await kafka.clock.advance(2)
        assert not asked.done()
        await kafka.broker(leader).resume()
        assert (await asked).error_code == 0


async def test_who_waits_at_a_broker_that_is_killed_is_cut_off() -> None:
    async with trio() as kafka:
        await kafka.broker(2).pause()
        asked = asyncio.ensure_future(kafka.ask_broker(2, MetadataRequest()))
        await kafka.settle()
        await kafka.broker(2).kill()
        with pytest.raises(ConnectionResetError):
            await asked
        await kafka.broker(2).start()
        assert kafka.broker(2).state == "starting"
        await kafka.clock.advance(SESSION_S)
        await kafka.broker(2).wait_running()
        assert len((await kafka.ask_broker(2, MetadataRequest())).brokers) == 3


async def test_a_starting_broker_can_be_killed_again() -> None:
    async with trio() as kafka:
        await kafka.broker(3).kill()
        await kafka.broker(3).start()
        await kafka.broker(3).kill()
        await kafka.clock.advance(SESSION_S)
        assert (kafka.broker(3).state, kafka.broker(3).is_fenced) == ("stopped", True)


async def test_acks_all_waits_for_a_follower_that_is_behind_until_it_is_out_of_the_isr() -> None:
    async with trio(orders=1) as kafka:
        slow = followers_of(kafka, "orders")[0]
        await kafka.broker(slow).pause_replication()
        asked = await produce(kafka, timeout_ms=60_000)
        assert (asked.done(), log_of(kafka, "orders").high_watermark, await kafka.records("orders")) == (False, 0, [])
        await kafka.clock.advance(LAG_S)
        assert outcome(await asked) == ("NONE", 0)
        assert len(await kafka.records("orders")) == 1
        assert slow not in kafka.trace.of(IsrChanged, topic="orders").last.isr
        await kafka.broker(slow).resume_replication()
        assert slow in kafka.trace.of(IsrChanged, topic="orders").last.isr


async def test_a_follower_that_has_everything_stays_in_sync_however_long_it_copies_nothing() -> None:
    async with trio(orders=1) as kafka:
        slow = followers_of(kafka, "orders")[0]
        await kafka.broker(slow).pause_replication()
        await kafka.clock.advance(2 * LAG_S)
        kafka.trace.of(IsrChanged).none()
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.clock.advance(LAG_S / 2)
        assert outcome(await asked) == ("NONE", 0)


async def test_acks_all_times_out_and_acks_1_does_not_wait() -> None:
    async with trio(orders=1) as kafka:
        await kafka.broker(followers_of(kafka, "orders")[0]).pause_replication()
        asked = await produce(kafka, timeout_ms=2000)
        assert outcome(await (await produce(kafka, acks=1))) == ("NONE", 1)
        await kafka.clock.advance(2)
        assert outcome(await asked) == ("REQUEST_TIMED_OUT", 0)
        await kafka.broker(followers_of(kafka, "orders")[0]).resume_replication()
        assert len(await kafka.records("orders")) == 2


async def test_a_follower_that_catches_up_completes_what_waits_for_it() -> None:
    async with trio(orders=1) as kafka:
        slow = kafka.broker(followers_of(kafka, "orders")[0])
        await slow.pause_replication()
        first, second = await produce(kafka), await produce(kafka)
        await slow.resume_replication()
        assert [outcome(await each) for each in (first, second)] == [("NONE", 0), ("NONE", 1)]


async def test_an_answer_that_nobody_waits_for_any_more_keeps_no_other_back() -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, problem: problems.append(problem))
    async with trio(orders=1) as kafka:
        slow = kafka.broker(followers_of(kafka, "orders")[0])
        await slow.pause_replication()
        first, second = await produce(kafka), await produce(kafka)
        first.cancel()
        await slow.resume_replication()
        await kafka.settle()
        assert (problems, second.done()) == ([], True)


async def test_what_only_the_leader_has_is_lost_with_it() -> None:
    async with trio(orders=1) as kafka:
        leader = leader_of(kafka, "orders")
        assert outcome(await (await produce(kafka))) == ("NONE", 0)
        followers = followers_of(kafka, "orders")
        for follower in followers:
            await kafka.broker(follower).pause_replication()
        unanswered = await produce(kafka, timeout_ms=60_000)
        assert outcome(await (await produce(kafka, acks=1))) == ("NONE", 2)
        await kafka.broker(leader).kill()
        await kafka.clock.advance(SESSION_S)
        with pytest.raises(ConnectionResetError):
            await unanswered
        assert [record.offset for record in await kafka.records("orders")] == [0]
        await kafka.broker(leader).start()
        lost = kafka.trace.of(LogTruncated).one()
        assert (lost.broker, lost.offset, lost.lost) == (leader, 1, 2)
        assert f"broker {leader} gives up 2 offsets of orders-0 from 1 on" in lost.text()
        for follower in followers:
            await kafka.broker(follower).resume_replication()
        assert outcome(await (await produce(kafka))) == ("NONE", 1)
        assert [record.offset for record in await kafka.records("orders")] == [0, 1]


async def test_a_produce_to_several_partitions_is_answered_when_all_are_done() -> None:
    async with trio(orders=3) as kafka:
        topic = kafka.core.broker.topics["orders"]
        leader = leader_of(kafka, "orders")
        for partition in (1, 2):
            await kafka.move_leader("orders", partition, to=leader)
        slow, slower = map(kafka.broker, followers_of(kafka, "orders"))
        records = bytes(build_batch([Record(0, kafka.clock.now_ms(), None, b"value")]))
        parts = tuple(PartitionProduceData(index=index, records=records) for index in (0, 1))
        data = (TopicProduceData(name="orders", partition_data=parts),)
        await slow.pause_replication()
        asked = asyncio.ensure_future(
            kafka.ask_broker(leader, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=data), version=9)
        )
        await kafka.settle()
        assert not asked.done()
        await slow.resume_replication()
        (answer,) = (await asked).responses
        assert [each.error_code for each in answer.partition_responses] == [0, 0]
        assert (len(topic.partitions), slower.state) == (3, "running")


@pytest.mark.slow
async def test_markers_wait_for_a_partition_that_nobody_leads() -> None:
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}) as kafka:
        producer = kafka.manual_producer("payments", version=1)
        await producer.init()
        await producer.add_partitions(("orders", 0))
        await producer.produce("orders", b"value")
        leader = leader_of(kafka, "orders")
        if kafka.transaction("payments").coordinator == leader:
            await kafka.transaction("payments").move_coordinator(to=_other(leader))
        await kafka.broker(leader).stop()
        await producer.end()
        await kafka.clock.advance(1)
        assert await kafka.transaction("payments").state() == "PrepareCommit"
        await kafka.broker(leader).start()
        await kafka.clock.advance(1)
        assert await kafka.transaction("payments").state() == "CompleteCommit"
        assert len(await kafka.records("orders")) == 1


async def test_with_too_few_replicas_in_sync_acks_all_is_refused_and_commits_are() -> None:
    async with trio(orders=gc.Topic(1, {"min.insync.replicas": 3})) as kafka:
        gone = followers_of(kafka, "orders")[0]
        await kafka.broker(gone).stop()
        assert outcome(await (await produce(kafka))) == ("NOT_ENOUGH_REPLICAS", -1)
        assert outcome(await (await produce(kafka, acks=1))) == ("NONE", 0)


async def test_what_is_written_with_too_few_in_sync_is_read_and_acknowledged_when_enough_are() -> None:
    async with trio(orders=gc.Topic(1, {"min.insync.replicas": 3})) as kafka:
        gone, other = map(kafka.broker, followers_of(kafka, "orders"))
        await gone.kill()
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.clock.advance(SESSION_S)
        assert outcome(await (await produce(kafka, acks=1))) == ("NONE", 1)
        await other.stop()
        assert not asked.done()
        assert not await kafka.records("orders")
        await gone.start()
        assert not asked.done()
        await other.start()
        assert outcome(await asked) == ("NONE", 0)
        assert len(await kafka.records("orders")) == 2


async def test_fewer_replicas_are_enough_as_soon_as_the_topic_is_configured_so() -> None:
    async with trio(orders=gc.Topic(1, {"min.insync.replicas": 3})) as kafka:
        gone = followers_of(kafka, "orders")[0]
        await kafka.broker(gone).kill()
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.clock.advance(SESSION_S)
        assert state_of(kafka, "orders").elr == (gone,)
        enough = AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
        topic = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name="orders", configs=(enough,))
        await kafka.ask_broker(leader_of(kafka, "orders"), IncrementalAlterConfigsRequest(resources=(topic,)))
        assert outcome(await asked) == ("NONE", 0)
        assert state_of(kafka, "orders").elr == ()


async def test_a_fenced_broker_is_described_as_one_and_gets_no_new_partition_alone() -> None:
    async with trio() as kafka:
        await kafka.broker(2).stop()
        described = await kafka.ask_broker(1, DescribeClusterRequest(include_fenced_brokers=True))
        assert {one.broker_id: one.is_fenced for one in described.brokers} == {1: False, 2: True, 3: False}
        described = await kafka.ask_broker(1, DescribeClusterRequest())
        assert [one.broker_id for one in described.brokers] == [1, 3]
        placed = (CreatableReplicaAssignment(partition_index=0, broker_ids=(2,)),)
        alone = CreatableTopic(name="alone", num_partitions=-1, replication_factor=-1, assignments=placed, configs=())
        (refused,) = (await kafka.ask_broker(1, CreateTopicsRequest(topics=(alone,), timeout_ms=1000))).topics
        assert (ErrorCode(refused.error_code).name, refused.error_message) == (
            "INVALID_REPLICA_ASSIGNMENT",
            "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown.",
        )


async def test_what_waits_with_too_few_in_sync_times_out() -> None:
    async with trio(orders=gc.Topic(1, {"min.insync.replicas": 3})) as kafka:
        await kafka.broker(followers_of(kafka, "orders")[0]).kill()
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.clock.advance(60)
        assert outcome(await asked) == ("REQUEST_TIMED_OUT", 0)


async def test_a_produce_that_waits_is_told_when_another_broker_is_made_leader_or_the_topic_goes() -> None:
    async with trio(orders=1) as kafka:
        slow, other = followers_of(kafka, "orders")
        await kafka.broker(slow).pause_replication()
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.move_leader("orders", 0, to=other)
        assert outcome(await asked)[0] == "NOT_LEADER_OR_FOLLOWER"
        asked = await produce(kafka, timeout_ms=60_000)
        await kafka.delete_topic("orders")
        assert outcome(await asked)[0] == "UNKNOWN_TOPIC_OR_PARTITION"


async def test_a_commit_waits_for_the_replicas_of_the_offsets_topic_and_times_out() -> None:
    async with trio() as kafka:
        partition = kafka.core.coordinator.shard_of("app").partition
        slow = kafka.broker(followers_of(kafka, "__consumer_offsets", partition)[0])
        await slow.pause_replication()
        committing = asyncio.ensure_future(kafka.group("app").commit({("orders", 0): 5}))
        await kafka.settle()
        assert not committing.done()
        await slow.resume_replication()
        await committing
        assert await kafka.group("app").committed("orders", 0) == 5


async def test_a_commit_that_waits_is_told_when_the_offsets_topic_is_deleted() -> None:
    async with trio() as kafka:
        partition = kafka.core.coordinator.shard_of("app").partition
        await kafka.broker(followers_of(kafka, "__consumer_offsets", partition)[0]).pause_replication()
        committing = asyncio.ensure_future(kafka.group("app").commit({("orders", 0): 5}))
        await kafka.settle()
        await kafka.delete_topic("__consumer_offsets")
        with pytest.raises(ValueError, match="COORDINATOR_NOT_AVAILABLE"):
            await committing


async def test_a_commit_is_lost_with_a_coordinator_that_alone_had_it() -> None:
    async with trio() as kafka:
        admin = kafka.group("app")
        await admin.commit({("orders", 0): 5})
        partition = kafka.core.coordinator.shard_of("app").partition
        for follower in followers_of(kafka, "__consumer_offsets", partition):
            await kafka.broker(follower).pause_replication()
        committing = asyncio.ensure_future(admin.commit({("orders", 0): 9}))
        await kafka.settle()
        leader = leader_of(kafka, "__consumer_offsets", partition)
        await kafka.broker(leader).kill()
        with pytest.raises(ConnectionResetError):
            await committing
        await kafka.clock.advance(SESSION_S)
        assert await admin.committed("orders", 0) == 5


async def test_of_several_that_wait_those_go_on_whose_records_all_have() -> None:
    async with trio(orders=1) as kafka:
        slow, slower = map(kafka.broker, followers_of(kafka, "orders"))
        await slower.pause_replication()
        first = await produce(kafka)
        await slow.pause_replication()
        second = await produce(kafka)
        await slower.resume_replication()
        assert (outcome(await first), second.done()) == (("NONE", 0), False)
        await slow.resume_replication()
        assert outcome(await second) == ("NONE", 1)


@pytest.mark.slow
async def test_a_transactional_id_is_refused_when_too_few_replicas_are_left() -> None:
    async with trio(lag_ms=1000) as kafka:
        producer = kafka.manual_producer("payments")
        await producer.init()
        partition = kafka.core.transactions.runtime.shard_of("payments").partition
        for follower in followers_of(kafka, "__transaction_state", partition):
            await kafka.broker(follower).pause_replication()
        asked = producer.init()
        await kafka.settle()
        assert not asked.done()
        await kafka.clock.advance(60)
        assert ErrorCode((await asked).error_code).name == "COORDINATOR_NOT_AVAILABLE"


async def test_a_new_topic_is_led_by_brokers_that_are_there() -> None:
    async with trio() as kafka:
        await kafka.broker(1).stop()
        await kafka.create_topic("later", 6)
        topic = kafka.core.broker.topics.get("later")
        assert topic is not None
        assert all(state.leader != 1 and 1 not in state.isr for state in topic.metadata.partitions)
        await kafka.broker(2).kill()
        await kafka.create_topic("much-later", 3)
        assert log_of(kafka, "much-later").high_watermark == 0
        await kafka.broker(3).stop()
        await kafka.clock.advance(SESSION_S)
        with pytest.raises(ValueError, match="All brokers are currently fenced"):
            await kafka.create_topic("never")


async def test_what_cannot_be_done_to_a_broker_is_said() -> None:
    async with trio(orders=1) as kafka:
        with pytest.raises(ValueError, match="there is no broker 7: the ids are 1, 2, 3"):
            kafka.broker(7)
        with pytest.raises(ValueError, match="there is no broker 9"):
            kafka.core.controller.resume_replication(None, 9)  # type: ignore[arg-type]
        slow, other = followers_of(kafka, "orders")
        await kafka.broker(other).stop()
        with pytest.raises(ValueError, match=f"broker {other} does not run: it cannot lead orders-0"):
            await kafka.move_leader("orders", 0, to=other)
        await kafka.broker(slow).pause_replication()
        await produce(kafka, acks=1)
        await kafka.clock.advance(LAG_S)
        with pytest.raises(ValueError, match=f"broker {slow} cannot lead orders-0, it is behind"):
            await kafka.move_leader("orders", 0, to=slow)
    async with gc.Cluster() as lone:
        with pytest.raises(ValueError, match="a lone broker has no others"):
            await lone.broker(1).kill()


async def test_a_wait_for_a_broker_says_what_the_broker_does() -> None:
    async with trio() as kafka:
        with pytest.raises(gc.WaitTimeoutError, match="It is running"):
            await kafka.broker(2).wait_fenced(timeout=0.01)


async def test_a_broker_leaves_its_port_and_takes_it_again() -> None:
    async with trio() as kafka:
        host, _, port = kafka.brokers[2].address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        first_host, _, first_port = kafka.brokers[1].address.rpartition(":")
        other_reader, other = await asyncio.open_connection(first_host, int(first_port))
        await kafka.broker(2).kill()
        assert await reader.read() == b""
        assert not other_reader.at_eof(), "of another broker"
        other.close()
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
        await kafka.restart()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
        await kafka.broker(2).start()
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        await kafka.stop()
        await kafka.broker(2).kill()
        await kafka.restart()


async def test_every_change_has_its_cause() -> None:
    async with trio(orders=1) as kafka:
        await kafka.broker(leader_of(kafka, "orders")).kill()
        await kafka.clock.advance(SESSION_S)
        changed = kafka.trace.of(LeaderChanged, topic="orders").one()
        assert "broker session timer of broker" in str(changed.cause)
        assert "leads orders-0 in epoch 1 (in sync: " in changed.text()
        assert not kafka.trace.of(IsrChanged, topic="orders")


async def test_a_partition_that_nobody_can_lead_says_so() -> None:
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}) as kafka:
        leader = leader_of(kafka, "orders")
        await kafka.broker(leader).stop()
        assert (
            "nobody leads orders-0 in epoch 1 (in sync: none)"
            in kafka.trace.of(LeaderChanged, topic="orders").one().text()
        )
        with pytest.raises((ConnectionResetError, ValueError)):
            await kafka.produce("orders", b"value")
        await kafka.broker(leader).start()
        await kafka.produce("orders", b"value")


async def test_a_new_coordinator_reads_what_is_behind_the_high_watermark_too() -> None:
    """As ``CoordinatorLoaderImpl`` reads to the end of the log: a follower in sync that is behind has held the commit back."""
    async with trio(lag_ms=600_000) as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders")
        partition = kafka.core.coordinator.shard_of("app").partition
        coordinator = leader_of(kafka, "__consumer_offsets", partition)
        slow = state_of(kafka, "__consumer_offsets", partition).replicas[2]
        await kafka.broker(slow).pause_replication()
        member.commit({("orders", 0): 5})
        await kafka.settle()
        await kafka.broker(coordinator).kill()
        await kafka.clock.advance(SESSION_S)
        log = log_of(kafka, "__consumer_offsets", partition)
        assert log.high_watermark < log.log_end_offset
        assert await kafka.group("app").committed("orders", 0) == 5


async def test_the_coordinator_of_a_group_is_a_broker_that_can_be_killed() -> None:
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}) as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders")
        group = kafka.group("app")
        before = group.coordinator
        await kafka.broker(before).kill()
        await kafka.clock.advance_until(lambda: group.coordinator != before)
        await kafka.clock.advance(5)
        assert (member.is_stable, member.generation) == (True, 1)


async def test_the_leaders_of_a_topic_are_brokers_that_can_be_killed() -> None:
    async with gc.Cluster(brokers=3, clock="manual", topics={"orders": 3}) as kafka:
        before = await kafka.leaders("orders")
        lost = before[0]
        assert lost is not None
        await kafka.broker(lost).kill()
        await kafka.clock.advance(15)
        gone = {number: None if leader == lost else leader for number, leader in before.items()}
        assert await kafka.leaders("orders") == gone  # each partition has one replica
        with pytest.raises(ValueError, match="orders-0 has no leader at present: nothing can be written there"):
            await kafka.produce("orders", b"x")
        with pytest.raises(ValueError, match="there is no topic 'order'; did you mean 'orders'"):
            await kafka.leaders("order")
