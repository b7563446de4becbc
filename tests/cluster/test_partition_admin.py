"""Elections and reassignments: as three real brokers did it, and where their story does not go."""

from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import ReplicasReassigned
from groupcoord.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from groupcoord.protocol.apis.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from groupcoord.protocol.apis.delete_topics import DeleteTopicState
from groupcoord.protocol.apis.elect_leaders import PREFERRED, ElectLeadersRequest, TopicPartitions
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import DeleteTopicsRequest, ListPartitionReassignmentsRequest
from tests.conformance.partitions_administered import STORIES, recorded
from tests.conformance.trios import check_own_trio

CHECK_S = 300.0


def trio(**config: Any) -> gc.Cluster:
    return gc.Cluster(
        brokers=3, clock="manual", config={name.replace("_", "."): value for name, value in config.items()}
    )


async def create(kafka: gc.Cluster, name: str, *replicas: int) -> None:
    placed = (CreatableReplicaAssignment(partition_index=0, broker_ids=replicas),)
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=placed, configs=())
    await kafka.ask_broker(1, CreateTopicsRequest(topics=(topic,), timeout_ms=1_000), version=7)


async def move(kafka: gc.Cluster, name: str, to: tuple[int, ...] | None, asked: int = 1) -> str:
    partition = ReassignablePartition(partition_index=0, replicas=to)
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=name, partitions=(partition,)),))
    answer = await kafka.ask_broker(asked, request, version=1)
    return ErrorCode(answer.responses[0].partitions[0].error_code).name


async def elect(kafka: gc.Cluster, name: str, asked: int = 1) -> str:
    topics = (TopicPartitions(topic=name, partitions=(0,)),)
    request = ElectLeadersRequest(topic_partitions=topics, election_type=PREFERRED)
    answer = await kafka.ask_broker(asked, request, version=2)
    return ErrorCode(answer.replica_election_results[0].partition_result[0].error_code).name


async def reassigning(kafka: gc.Cluster, asked: int = 1) -> list[str]:
    answer = await kafka.ask_broker(asked, ListPartitionReassignmentsRequest(topics=None), version=0)
    return [topic.name for topic in answer.topics]


def state(kafka: gc.Cluster, name: str) -> Any:
    return kafka.core.broker.topics[name].metadata.partitions[0]


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES)
def test_as_three_real_brokers(story: str) -> None:
    check_own_trio(*STORIES[story], recorded()[story])


@pytest.mark.asyncio
async def test_a_reassignment_waits_for_a_paused_broker() -> None:
    async with trio() as kafka:
        await create(kafka, "orders", 1)
        await kafka.broker(3).pause()
        assert await move(kafka, "orders", (3,)) == "NONE"
        assert await reassigning(kafka) == ["orders"]
        assert kafka.trace.of(ReplicasReassigned).last.text() == "replicas of orders-0: 3, 1 (adding: 3, removing: 1)"
        await kafka.broker(3).resume()
        assert await reassigning(kafka) == []
        assert (state(kafka, "orders").replicas, state(kafka, "orders").leader) == ((3,), 3)
        assert (
            kafka.trace.of(ReplicasReassigned).last.text() == "replicas of orders-0: 3 (adding: none, removing: none)"
        )


@pytest.mark.asyncio
async def test_a_topic_that_is_deleted_is_not_reassigned_any_more() -> None:
    async with trio() as kafka:
        await create(kafka, "orders", 1)
        await kafka.broker(3).pause_replication()
        await move(kafka, "orders", (3,))
        await kafka.ask_broker(
            1, DeleteTopicsRequest(topics=(DeleteTopicState(name="orders"),), timeout_ms=1), version=6
        )
        assert await reassigning(kafka) == []


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.asyncio
async def test_a_reassignment_whose_old_replicas_are_not_in_sync_is_cancelled_only_uncleanly(unclean: bool) -> None:
    async with trio(unclean_leader_election_enable=unclean) as kafka:
        await create(kafka, "orders", 1)
        await kafka.broker(3).pause_replication()
        await move(kafka, "orders", (2, 3))
        await kafka.broker(1).stop()
        assert (state(kafka, "orders").isr, state(kafka, "orders").leader) == ((2,), 2)
        outcome = await move(kafka, "orders", None, asked=2)
        assert outcome == ("NONE" if unclean else "INVALID_REPLICA_ASSIGNMENT")
        assert state(kafka, "orders").replicas == ((1,) if unclean else (2, 3, 1))


@pytest.mark.asyncio
async def test_a_new_replica_that_has_copied_nothing_and_leads_has_lost_all() -> None:
    async with trio(unclean_leader_election_enable=True) as kafka:
        await create(kafka, "orders", 1)
        await kafka.produce("orders", b"espresso")
        await kafka.broker(2).pause_replication()
        await move(kafka, "orders", (2,))
        await kafka.broker(1).stop()
        assert state(kafka, "orders").leader == 2
        assert await kafka.records("orders") == []


@pytest.mark.asyncio
async def test_a_group_goes_on_while_its_coordinator_is_reassigned() -> None:
    async with trio(offsets_topic_num_partitions=1) as kafka:
        await create(kafka, "orders", 1)
        await kafka.consumers(1, group="app", topics="orders")
        replicas = state(kafka, "__consumer_offsets").replicas
        target = tuple(one for one in (1, 2, 3) if one != replicas[0])
        assert await move(kafka, "__consumer_offsets", target) == "NONE"
        assert state(kafka, "__consumer_offsets").leader in target
        await kafka.consumers(1, group="app", topics="orders")
        assert await kafka.group("app").state() == "Stable"


@pytest.mark.asyncio
async def test_a_preferred_leader_that_nobody_misses_yet_is_elected() -> None:
    async with trio() as kafka:
        await create(kafka, "orders", 1, 2)
        await move(kafka, "orders", (2, 1))
        await kafka.broker(2).kill()
        assert await elect(kafka, "orders") == "NONE"
        assert state(kafka, "orders").leader == 2
        await kafka.clock.advance(9)
        assert state(kafka, "orders").leader == 1


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.asyncio
async def test_preferred_leaders_lead_again_at_the_next_check_unless_that_is_not_wanted(enabled: bool) -> None:
    async with trio(auto_leader_rebalance_enable=enabled) as kafka:
        await create(kafka, "orders", 2, 1)
        await kafka.broker(2).stop()
        await create(kafka, "payments", 2, 1)
        await create(kafka, "gone", 2, 1)
        await kafka.clock.advance(CHECK_S)
        assert state(kafka, "orders").leader == 1, "the preferred leader does not run"
        await kafka.broker(2).start()
        await kafka.ask_broker(1, DeleteTopicsRequest(topics=(DeleteTopicState(name="gone"),), timeout_ms=1), version=6)
        await kafka.clock.advance(CHECK_S - 1)
        assert state(kafka, "orders").leader == 1
        await kafka.clock.advance(1)
        expected = 2 if enabled else 1
        assert [state(kafka, name).leader for name in ("orders", "payments")] == [expected, expected]


@pytest.mark.asyncio
async def test_where_move_leader_has_moved_a_leader_it_stays() -> None:
    async with trio() as kafka:
        await create(kafka, "orders", 2, 1)
        await kafka.move_leader("orders", 0, to=1)
        await kafka.broker(3).stop()
        await kafka.clock.advance(CHECK_S)
        assert state(kafka, "orders").leader == 1
