"""Unnecessary rebalances, and members that are affected by those of others."""

import pytest

from groupcoord.client.member.member_events import RejoinWanted
from groupcoord.coordinator.events import MemberRejoined, RebalanceStarted
from groupcoord.testing import Cluster, RemoteCluster
from groupcoord.testing.trace import RequestReceived, ResponseSent
from tests.scenarios.steps import gather

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_who_is_closing_does_not_join_again(kafka: Cluster) -> None:
    """tulios/kafkajs#1571 "Don't re-join when consumption has stopped"

    During a deployment a consumer that is shutting down, and waits for its handlers, learns of a rebalance. It joins, is
    assigned partitions, and leaves: one more rebalance for all members, and each closing one causes the next.

    Right: a closing consumer sends no JoinGroup any more: it finishes its records, commits, and sends LeaveGroup.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    mine, leaving = min(b.assigned), b.member_id
    b.be_busy()
    b.consumed[mine] = 5
    await kafka.group("app").force_rebalance("the first of the deployment has left")
    await kafka.clock.advance(4)
    kafka.trace.of(RejoinWanted, member=leaving, reason="group is already rebalancing").one()  # it knows
    b.leave()
    await kafka.clock.advance(10)
    kafka.trace.of(MemberRejoined, member=leaving).none()
    assert kafka.trace.of(RequestReceived, client_id=b.client_id).last.api == "LeaveGroup"
    assert await kafka.group("app").committed(*mine) == 5
    assert (len(a.assigned), a.generation) == (4, 2)


async def test_heartbeats_go_on_while_the_user_finishes(kafka: Cluster) -> None:
    """IBM/sarama#1608 "Rebalancing issues with slow consumers"
    IBM/sarama#2110 "fix: ensure heartbeats only stop after cleanup"

    When a rebalance starts the client stops its heartbeats at once and waits for handlers that take minutes. The
    coordinator removes it after the session timeout, although the rebalance timeout would have let it finish. Its last
    commits are refused, and another member processes its records again.

    Right: the client sends heartbeats until it sends JoinGroup. Their response is REBALANCE_IN_PROGRESS, but they keep the
    session alive. The group waits until the rebalance timeout.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")  # session 45 s, max.poll.interval 300 s
    mine = a.member_id
    a.be_busy()
    b = kafka.manual_member("app", "orders")
    joining = b.join()
    await kafka.clock.advance(120)
    assert mine in await kafka.group("app").assignment()
    assert not joining.done()
    told = kafka.trace.of(ResponseSent, api="Heartbeat", member=mine, error="REBALANCE_IN_PROGRESS")
    assert len(told) == 120 / 3
    a.consumed[P0] = 9
    a.poll()
    await kafka.settle()
    await gather(joining)
    await gather(b.sync())
    assert await kafka.group("app").committed("orders", 0) == 9  # its last commit came in time
    assert a.member_id == mine
    assert len(a.assigned) == len(b.assigned) == 1


async def test_a_quick_restart_is_one_rebalance_and_a_slow_one_is_two(kafka: Cluster) -> None:
    """confluentinc/librdkafka#568 "KafkaConsumer: consumer leaving an re-joining quickly pauses all consumers"

    One consumer of many restarts, and all others stop for half a minute, twice. Why are all members affected?

    Right: leaving and joining again are two changes of the group. If a dynamic member joins again before the others have
    joined, both are part of one rebalance; the group waits only until the member with the longest heartbeat interval has
    joined.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders")
    before = a.generation
    b.leave()
    (c,) = await kafka.consumers(1, group="app", topics="orders")  # at once
    assert a.generation == c.generation == before + 1
    c.leave()
    await kafka.clock.advance(10)
    (d,) = await kafka.consumers(1, group="app", topics="orders")
    assert a.generation == d.generation == before + 3
    rebalances = kafka.trace.of(RebalanceStarted, group="app")
    assert kafka.clock.now_ms() - rebalances.last.at_ms <= 3_000  # one heartbeat


@pytest.mark.slow
async def test_a_dynamic_member_that_restarts_costs_two(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#568 "KafkaConsumer: consumer leaving an re-joining quickly pauses all consumers"

    The cost of a slow restart, on any broker.

    Right: there is one generation without the member and one with it, and in both each partition has an owner.
    """
    await cluster.create_topic(orders, 4)
    a, b = await cluster.consumers(2, group=app, topics=orders)
    before = a.generation
    b.leave()
    await cluster.wait_until(lambda: len(a.assigned) == 4, "who stays should have everything")
    assert a.generation == before + 1
    (c,) = await cluster.consumers(1, group=app, topics=orders)
    await cluster.wait_until(lambda: len(a.assigned) == len(c.assigned) == 2, "both should have a half")
    assert a.generation == c.generation == before + 2
    assert a.assigned.isdisjoint(c.assigned)
