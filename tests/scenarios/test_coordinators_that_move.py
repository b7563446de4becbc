"""Coordinators that move: the old one responds NOT_COORDINATOR, and the group does not change."""

import pytest

from groupcoord.client.member.member_events import (
    CoordinatorFound,
    CoordinatorLost,
    JoinSent,
)
from groupcoord.coordinator.events import RebalanceStarted
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster
from groupcoord.testing.trace import RequestReceived
from tests.scenarios.steps import gather, together

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_the_coordinator_moves_in_the_middle_of_a_commit(kafka: Cluster) -> None:
    """confluentinc/librdkafka#2630 "Consumer continues to consume but cannot commit to wrong group coordinator"
    confluentinc/librdkafka#1195 "RD_KAFKA_RESP_ERR_NOT_COORDINATOR_FOR_GROUP on commit"

    The coordinator moves while commits are in flight. One response comes too late, and from then on every commit goes to
    the old broker and gets NOT_COORDINATOR, until a restart of the process. Records are read all the time; hours later they
    are all read again.

    Right: a commit that waits for replication gets NOT_COORDINATOR when the partition moves; whether it was stored is
    unknown. The client looks up the coordinator and commits again, in the same generation.
    """
    await kafka.create_topic("orders", 1)
    a = kafka.manual_member("app", "orders")
    await a.rejoin()
    held = kafka.hold_append(group="app")
    committing = a.commit({P0: 5})
    await held.wait()
    assert not committing.done()
    await kafka.group("app").unload_coordinator()
    assert await committing == {P0: E.NOT_COORDINATOR}
    assert await a.commit({P0: 5}) == {P0: E.NOT_COORDINATOR}
    await kafka.group("app").load_coordinator()
    assert await kafka.group("app").committed("orders", 0) is None  # the replica that leads now did not have it
    assert await a.commit({P0: 5}) == {P0: E.NONE}
    assert await kafka.group("app").committed("orders", 0) == 5
    assert (await a.heartbeat(), (await kafka.group("app").describe()).generation) == (E.NONE, 1)


@pytest.mark.kafka(topics={"orders": 4}, brokers=3)
async def test_a_move_is_no_rebalance(kafka: Cluster) -> None:
    """tulios/kafkajs#1069 "Unnecessary rebalance on NOT_COORDINATOR_FOR_GROUP error"
    IBM/sarama#1231 "Retry ErrNotCoordinatorForConsumer in ConsumerGroup.newSession"

    On NOT_COORDINATOR the client joined again, or created a new consumer: each time a broker was restarted, all groups that
    it coordinated rebalanced. The error only means that another broker is the coordinator.

    Right: look up the coordinator and repeat the request. The generation is unchanged, and no member has to join again.
    """
    a, b = await kafka.consumers(2, group="app", topics="orders")
    for broker_id in (1, 2, 3):
        await kafka.group("app").move_coordinator(to=broker_id)
        await kafka.clock.advance(10)
        a.commit({min(a.assigned): broker_id})
        await kafka.settle()
        assert await kafka.group("app").committed(*min(a.assigned)) == broker_id
    assert len(kafka.trace.of(RebalanceStarted, group="app")) == 1
    assert len(kafka.trace.of(CoordinatorLost, member=a.member_id)) == 3
    assert a.is_stable
    assert b.is_stable
    assert a.errors == b.errors == []


@pytest.mark.kafka(topics={"orders": 4}, brokers=3)
async def test_a_coordinator_that_moves_while_members_join(kafka: Cluster) -> None:
    """kafkaex/kafka_ex#600 "Manager gives up rejoining after 25 s, so a coordinator move takes the whole group down"
    IBM/sarama#1231 "Retry ErrNotCoordinatorForConsumer in ConsumerGroup.newSession"

    The coordinator moves while a new member waits in JoinGroup. Its client retries a few times and gives up, and so do all
    other members, which are in the same position.

    Right: waiting members get NOT_COORDINATOR, find the new coordinator and join there; at the end each has its share of
    the partitions.
    """
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    b = kafka.manual_member("app", "orders")
    joining = b.join()
    await kafka.group("app").wait_rebalancing()
    present = kafka.core.coordinator.shard_of("app").partition  # of __consumer_offsets
    leaders = kafka.core.broker.topics.get("__consumer_offsets")
    assert leaders is not None
    await kafka.group("app").move_coordinator(to=leaders.metadata.leaders[present] % 3 + 1)
    assert (await joining).error_code == E.NOT_COORDINATOR
    b.member_id = ""  # what the new coordinator knows of it: nothing
    joining = b.join()
    await kafka.clock.advance(10)
    await gather(joining)
    await gather(b.sync())
    assert len(a.assigned) == len(b.assigned) == 2
    assert a.generation == 2
    assert a.errors == []


async def test_a_join_phase_does_not_survive_its_coordinator(kafka: Cluster) -> None:
    """apache/kafka#4788 "MINOR: Fix partition loading checks in GroupCoordinator"

    The coordinator moves in the middle of a rebalance. The JoinGroup requests so far were not stored, so the waiting ones
    need a response, or they wait for ever.

    Right: waiting JoinGroup requests get NOT_COORDINATOR. The new coordinator loads the previous generation, which was
    stored as Stable; the members join again from there.
    """
    await kafka.create_topic("orders", 2)
    a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
    await a.rejoin()
    joining = b.join()
    await kafka.group("app").wait_rebalancing()
    await kafka.group("app").unload_coordinator()
    assert (await joining).error_code == E.NOT_COORDINATOR
    await kafka.group("app").load_coordinator()
    view = await kafka.group("app").describe()
    assert (view.state, view.generation, set(view.assignment)) == ("Stable", 1, {a.member_id})
    assert await a.heartbeat() == E.NONE
    assert (await b.join()).error_code == E.UNKNOWN_MEMBER_ID  # its id went with the old coordinator
    b.member_id = ""
    await gather(b.join(), a.join())
    await gather(b.sync(), a.sync())
    assert (await kafka.group("app").describe()).generation == 2


async def test_a_sync_phase_does_not_survive_its_coordinator(kafka: Cluster) -> None:
    """apache/kafka#4788 "MINOR: Fix partition loading checks in GroupCoordinator"

    One step later: all have joined, one waits for its assignment, and the leader's SyncGroup does not reach the coordinator
    that now has the group.

    Right: a waiting SyncGroup gets NOT_COORDINATOR. The generation without an assignment was not stored; the members of the
    previous one are still members, and requests with the lost generation get ILLEGAL_GENERATION.
    """
    await kafka.create_topic("orders", 2)
    a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
    await together(kafka, a, b)
    joining = a.join()
    await kafka.group("app").wait_rebalancing()
    await gather(joining, b.join())
    syncing = b.sync()
    await kafka.settle()
    assert (a.generation, syncing.done()) == (3, False)
    await kafka.group("app").unload_coordinator()
    assert (await syncing).error_code == E.NOT_COORDINATOR
    await kafka.group("app").load_coordinator()
    assert (await kafka.group("app").describe()).generation == 2
    assert (await a.sync()).error_code == E.ILLEGAL_GENERATION
    assert await b.heartbeat() == E.ILLEGAL_GENERATION
    joining = a.join()
    await kafka.group("app").wait_rebalancing()
    await gather(joining, b.join())
    await gather(b.sync(), a.sync())
    assert (a.generation, len(a.assigned), len(b.assigned)) == (3, 1, 1)


async def test_a_wrong_pointer_is_followed_patiently(kafka: Cluster) -> None:
    """confluentinc/librdkafka#2944 "Kafka consumer (v1.4.2) gets stuck (NOT_COORDINATOR) whilst rejoining a group after a
    broker rolling update"
    confluentinc/librdkafka#3396 "some consumer of a group get stuck after the broker experienced leader re-election"
    confluentinc/librdkafka#3082 "Consumer stuck after coordinator goes down"

    FindCoordinator returns broker 2, broker 2 returns NOT_COORDINATOR, and so on: after a rolling update the client used a
    connection to another process, or the metadata was old. Some clients repeated this without a pause, some never
    recovered.

    Right: the client repeats FindCoordinator with a backoff until it reaches the coordinator. If that happens within the
    session timeout, there is no rebalance.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    with kafka.faults.when("Heartbeat").refuse("NOT_COORDINATOR"):
        await kafka.clock.advance(20)
    rounds = len(kafka.trace.of(CoordinatorLost, member=a.member_id))
    await kafka.clock.advance(10)
    assert 15 <= rounds <= 40  # 20 s, and at the end a second between two rounds
    assert len(kafka.trace.of(CoordinatorFound, member=a.member_id)) == rounds
    assert len(kafka.trace.of(RequestReceived, api="Heartbeat")) <= rounds + 4
    kafka.trace.of(JoinSent, generation=1).none()
    assert a.is_stable
    assert a.generation == 1
