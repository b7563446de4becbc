"""Between JoinGroup and SyncGroup: members that never send the request that the others wait for."""

from typing import Any

import pytest

from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from tests.scenarios.steps import gather, joined, together

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_leader_that_never_assigns_is_let_go(kafka: Cluster) -> None:
    """apache/kafka#10863 "KAFKA-12890; Consumer group stuck in `CompletingRebalance`"

    Since Kafka allows heartbeats while a rebalance completes, a leader that had joined and never sent SyncGroup blocked its
    group for ever: its heartbeats kept it alive, and all others waited for its assignment.

    Right: after the join phase each member must send SyncGroup within the longest rebalance timeout of the group. Members
    that do not are removed, waiting members get REBALANCE_IN_PROGRESS, and another member becomes the leader.
    """
    await kafka.create_topic("orders", 2)
    a, b = (kafka.manual_member("app", "orders", session_timeout_ms=300_000) for _ in range(2))
    await a.rejoin()
    await gather(b.join(), a.join())
    syncing = b.sync()
    await kafka.clock.advance(59)
    assert await a.heartbeat() == E.NONE  # alive, and of no use
    assert not syncing.done()
    await kafka.clock.advance(2)
    assert (await syncing).error_code == E.REBALANCE_IN_PROGRESS
    assert await a.heartbeat() == E.UNKNOWN_MEMBER_ID
    kafka.trace.of(MemberRemoved, member=a.member_id, how=Departure.NOT_SYNCED, timeout_ms=60_000).one()
    await b.rejoin()
    assert b.is_leader
    assert b.assigned == {P0, P1}


async def test_a_follower_that_never_fetches_its_assignment_is_let_go(kafka: Cluster) -> None:
    """apache/kafka#10895 "KAFKA-12890; Consumer group stuck in `CompletingRebalance` (2.8)"

    The other half of the same fix. The leader has sent the assignment and the group is Stable, but one member never sends
    SyncGroup: no consumer reads its partitions, although it sends heartbeats.

    Right: the time limit for SyncGroup still applies when the group is Stable. A member that exceeds it is removed, and its
    partitions go to the others.
    """
    await kafka.create_topic("orders", 2)
    a, b = (kafka.manual_member("app", "orders", session_timeout_ms=300_000) for _ in range(2))
    await a.rejoin()
    await gather(b.join(), a.join())
    await gather(a.sync())
    assert await kafka.group("app").state() == "Stable"
    assert a.assigned == {P0} or a.assigned == {P1}
    await kafka.clock.advance(59)
    assert await b.heartbeat() == E.NONE
    await kafka.clock.advance(2)
    assert await b.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert await a.heartbeat() == E.REBALANCE_IN_PROGRESS
    await a.rejoin()
    assert a.assigned == {P0, P1}


async def test_the_leader_leaves_before_it_has_assigned(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#4312 "assignor_state is NULL initially and it's only set after assignment but its value isn't
    checked before calling"

    Several short-lived consumers: the elected leader leaves before it has sent an assignment. The next leader crashed,
    because its assignor had never been notified of an assignment.

    Right: members that wait in SyncGroup get REBALANCE_IN_PROGRESS at once, and another member becomes the leader, without
    a previous assignment.
    """
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await joined(cluster, a, b)
    syncing = b.sync()
    assert await a.leave() == E.NONE
    assert (await syncing).error_code == E.REBALANCE_IN_PROGRESS
    await b.rejoin()
    assert b.is_leader
    assert b.assigned == {(orders, 0), (orders, 1)}


async def test_living_members_do_without_a_leader_whose_assignment_is_lost(kafka: Cluster) -> None:
    """confluentinc/librdkafka#4312 "assignor_state is NULL initially and it's only set after assignment but its value isn't
    checked before calling"

    The same from the side of the members: the leader's SyncGroup never arrives. The follower has waited in vain, and
    becomes the leader of a group in which it never had an assignment.

    Right: when the leader's time limit is over, it is removed. The follower joins again by itself, becomes the leader, and
    takes all partitions. The old leader learns that it is no longer a member, reports all its partitions as lost to its
    application, and joins again.
    """
    await kafka.create_topic("orders", 4)
    how: dict[str, Any] = {"group": "app", "topics": "orders", "assignors": "cooperative-sticky"}
    (a,) = await kafka.consumers(1, max_poll_interval_ms=20_000, **how)
    unheard, owned = a.member_id, tuple(sorted(a.assigned))
    kafka.faults.when("SyncGroup", member=unheard).drop()
    (b,) = await kafka.consumers(1, max_poll_interval_ms=20_000, **how)
    kafka.trace.of(MemberRemoved, member=unheard, how=Departure.NOT_SYNCED, timeout_ms=20_000).one()
    assert len(b.assigned) == 4
    await kafka.clock.advance(60)
    assert ("lost", owned) in a.rebalance_callbacks
    assert len(a.assigned) == len(b.assigned) == 2
    assert a.assigned.isdisjoint(b.assigned)
    assert a.errors == b.errors == []


async def test_a_goodbye_ends_the_own_join(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#7460 "KAFKA-8104: Consumer cannot rejoin to the group after rebalancing"

    The heartbeat thread finds that the application has not polled for too long and leaves, while the application's thread
    waits in JoinGroup. The response to the join arrived nevertheless, after the generation had been cleared, and the
    consumer was a member without knowing it.

    Right: after LeaveGroup the coordinator responds to the waiting JoinGroup of that member with UNKNOWN_MEMBER_ID and an
    empty member id, and the group continues without the member.
    """
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await together(cluster, a, b)
    b.assigned = frozenset()  # it gave up everything, and says so: a rejoin with other metadata
    waiting = b.join()
    await cluster.group(app).wait_rebalancing()
    assert await b.leave() == E.NONE
    answer = await waiting
    assert (answer.error_code, answer.member_id, answer.generation_id) == (E.UNKNOWN_MEMBER_ID, "", -1)
    await a.rejoin()
    assert a.generation == 3
    assert a.assigned == {(orders, 0), (orders, 1)}


async def test_who_leaves_while_it_syncs_is_no_member_afterwards(kafka: Cluster) -> None:
    """apache/kafka#7460 "KAFKA-8104: Consumer cannot rejoin to the group after rebalancing"

    The client's half. Its SyncGroup is in flight when the poll interval is over, and the client leaves.

    Right: the client ignores the response to a SyncGroup that it sent before it left. With the next poll it joins as a new
    member, and at the end it owns the partitions that the coordinator has assigned to it.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders", max_poll_interval_ms=60_000)
    left = b.member_id
    hold = kafka.faults.when("SyncGroup", client_id=b.client_id).hold_answer()
    await kafka.group("app").force_rebalance()
    await kafka.clock.advance(5)
    assert len(hold.waiting) == 1  # it was given a partition, and does not know yet
    b.be_busy()
    await kafka.clock.advance(65)
    assert a.assigned == {P0, P1}
    hold.release()
    await kafka.settle()
    assert b.assigned == frozenset()
    b.poll()
    await kafka.clock.advance(10)
    view = await kafka.group("app").describe()
    assert left not in view.assignment
    assert view.assignment == {a.member_id: a.assigned, b.member_id: b.assigned}
    assert len(a.assigned) == len(b.assigned) == 1
