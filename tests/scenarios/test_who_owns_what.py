"""Owners of partitions: each partition has exactly one."""

from typing import Any

import pytest

from groupcoord.assignors import TopicPartition
from groupcoord.client.member.member_events import PartitionsTold
from groupcoord.coordinator.events import RebalanceStarted
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, ManualMember, RemoteCluster
from tests.scenarios.steps import again, gather, joined

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

COOPERATIVE: dict[str, Any] = {"group": "app", "topics": "orders", "assignors": "cooperative-sticky"}


def had_by_two(kafka: Cluster) -> set[TopicPartition]:
    """The partitions that two applications had at the same time, according to their callbacks."""
    owners: dict[TopicPartition, str] = {}
    twice = set()
    for told in kafka.trace.of(PartitionsTold):
        for partition in told.partitions:
            if told.news != "assigned":
                owners.pop(partition, None)
            elif owners.setdefault(partition, told.member) != told.member:
                twice.add(partition)
    return twice


async def keep_up(kafka: Cluster, member: ManualMember) -> None:
    """Join and sync until there is no rebalance any more; the others hear of one when they heartbeat, every 3 s.

    A member that is not assigned all its owned partitions revokes the others and joins again.
    """
    for _ in range(5):
        owned = member.assigned
        joining = member.join()
        await kafka.clock.advance(3)
        await gather(joining)
        await member.sync()  # may be refused: somebody who gave up partitions joins again at once
        await kafka.settle()
        if await member.heartbeat() == E.NONE and owned <= member.assigned:
            return
    raise AssertionError(f"the rebalance does not end: {kafka.trace.why('app')}")


async def test_a_refused_sync_leaves_one_owner_for_each_partition(kafka: Cluster) -> None:
    """apache/kafka#12140 "KAFKA-13891: reset generation when syncgroup failed with REBALANCE_IN_PROGRESS"
    apache/kafka#11451 "KAFKA-13419: Only reset generation ID when ILLEGAL_GENERATION error"
    apache/kafka#12348 "KAFKA-14016: Revoke more partitions than expected in Cooperative rebalance"

    A cooperative member joins generation 3, is late with its SyncGroup and gets REBALANCE_IN_PROGRESS. It joins again and
    reports the partitions of generation 2 as owned, although some of them have another owner by now: the leader found two
    owners. The first fix, to forget the generation, made all members revoke everything, and was reverted.

    Right: at the end each partition has one owner, none had two at the same time, and no member lost a partition that did
    not move.
    """
    await kafka.create_topic("orders", 6)
    a, b = await kafka.consumers(2, **COOPERATIVE)
    before = a.assigned, b.assigned
    kafka.faults.when("SyncGroup", client_id=b.client_id).refuse("REBALANCE_IN_PROGRESS").times(2)
    (c,) = await kafka.consumers(1, **COOPERATIVE)
    await kafka.clock.advance(30)
    owned = [each.assigned for each in (a, b, c)]
    assert [len(each) for each in owned] == [2, 2, 2]
    assert len(frozenset().union(*owned)) == 6
    assert a.assigned < before[0]
    assert b.assigned < before[1]
    taken = [partition for what, some in b.rebalance_callbacks if what == "revoked" for partition in some]
    assert len(taken) == 1
    assert "lost" not in [what for each in (a, b, c) for what, _ in each.rebalance_callbacks]
    assert had_by_two(kafka) == set()


async def test_the_claim_of_the_later_generation_wins(kafka: Cluster) -> None:
    """apache/kafka#10985 "KAFKA-12984: make AbstractStickyAssignor resilient to invalid input, utilize generation in
    cooperative, and fix assignment bug"

    A zombie returns and reports partitions as owned that have another owner by now. The leader's assignor found a partition
    with two owners and threw an exception, again and again; or it believed both, and took partitions from the rightful
    owner.

    Right: the coordinator passes the owned partitions to the leader unchanged, and the leader's assignor uses those of the
    latest generation. The rightful owner is not affected.
    """
    await kafka.create_topic("orders", 4)
    (a,) = await kafka.consumers(1, **COOPERATIVE)
    zombie = kafka.manual_member("app", "orders", assignors="cooperative-sticky")
    await keep_up(kafka, zombie)
    assert len(zombie.assigned) == len(a.assigned) == 2
    rightly, told = a.assigned, len(a.rebalance_callbacks)

    zombie.assigned = rightly  # so it says in its subscription, and that it was one generation ago
    zombie.generation -= 1
    await keep_up(kafka, zombie)
    assert a.assigned == rightly
    assert [what for what, some in a.rebalance_callbacks[told:] if some] == []
    assert zombie.assigned.isdisjoint(rightly)
    assert len(zombie.assigned) == 2


async def test_two_equal_claims_are_believed_of_nobody(kafka: Cluster) -> None:
    """apache/kafka#10985 "KAFKA-12984: make AbstractStickyAssignor resilient to invalid input, utilize generation in
    cooperative, and fix assignment bug"
    apache/kafka#13550 "KAFKA-14639: A single partition may be revoked and assign during a single round of rebalance"

    Two members report, with the same generation, that they own the same partition. Believing either may be wrong, and an
    assignor that throws an exception leaves the whole group without an assignment.

    Right: the assignor treats the partition as free. At the end each partition has one owner, and no member gets a
    partition before the previous owner has revoked it.
    """
    await kafka.create_topic("orders", 4)
    (a,) = await kafka.consumers(1, **COOPERATIVE)
    b = kafka.manual_member("app", "orders", assignors="cooperative-sticky")
    await keep_up(kafka, b)
    b.assigned |= {min(a.assigned)}
    await keep_up(kafka, b)
    assert a.errors == []
    assert a.assigned.isdisjoint(b.assigned)
    assert len(a.assigned) == len(b.assigned) == 2


async def test_new_partitions_find_an_owner(kafka: Cluster) -> None:
    """IBM/sarama#1462 "Add a new partition during the consumer group running，but the cousumer group not rebalance。"
    tulios/kafkajs#133 "Trigger rebalance if partitions change after metadata update"

    A topic gets more partitions. Producers write to them at once; the group does not notice until a member joins, which may
    be weeks later, and with `latest` the records written until then are never read.

    Right: under the classic protocol the coordinator does not react to new partitions. The leader notices them within
    `metadata.max.age.ms` and joins again; after that each partition has an owner.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders", metadata_max_age_ms=60_000)
    before = a.generation
    await kafka.add_partitions("orders", 2)
    await kafka.clock.advance(55)
    assert a.generation == before
    await kafka.clock.advance(15)
    assert a.generation == b.generation == before + 1
    assert len(a.assigned) == len(b.assigned) == 2
    assert a.assigned.isdisjoint(b.assigned)


async def test_partitions_that_come_while_the_leader_assigns(kafka: Cluster) -> None:
    """dpkp/kafka-python#701 "KAFKA-3117: handle metadata updates during consumer rebalance"
    apache/kafka#1247 "KAFKA-3117: handle metadata updates during consumer rebalance"

    The topic grows while the group rebalances: the leader computes the assignment from the metadata that it had when it
    joined, and later assumes that it was computed from the new metadata.

    Right: the leader compares new metadata with the metadata that it used for the assignment, and joins again.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    hold = kafka.faults.when("SyncGroup").hold()
    await kafka.group("app").force_rebalance()
    await kafka.clock.advance(3)
    assert len(hold.waiting) == 1  # it has assigned two partitions
    await kafka.add_partitions("orders", 2)
    a.refresh_metadata()
    await kafka.settle()
    hold.release()
    await kafka.clock.advance(3)
    assert len(a.assigned) == 4
    assert a.generation == 3
    assert len(kafka.trace.of(RebalanceStarted, group="app")) == 3


async def test_a_leader_that_knew_too_little_assigns_again(cluster: RemoteCluster, app: str, orders: str) -> None:
    """aio-libs/aiokafka#118 "Another racing in Coordinator"
    aio-libs/aiokafka#108 "Metadata change can trigger 2 rebalances in a rare case"

    The subscription changes, and a rebalance starts before the client has the new metadata: the leader knows no partitions
    of the new topic and assigns none. Nothing ever corrects that.

    Right: after the assignment the leader checks the metadata again, and joins again if it has changed. A JoinGroup of the
    leader starts a rebalance of a Stable group even if it contains no change.
    """
    payments = f"{orders}-payments"
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, payments)
    await joined(cluster, a, b)
    said = a.assigned
    await gather(b.sync(), a.sync())  # there is no such topic as far as a knows
    assert b.assigned == frozenset()
    await cluster.create_topic(payments, 2)
    a.assigned, a.generation = said, 1  # what it said of itself when it joined last: it says nothing new
    await again(cluster, a, b)
    assert b.assigned == {(payments, 0), (payments, 1)}
    assert b.generation == 3


async def test_living_members_see_a_topic_that_comes_later(cluster: RemoteCluster, app: str, orders: str) -> None:
    """IBM/sarama#1462 "Add a new partition during the consumer group running，but the cousumer group not rebalance。"
    aio-libs/aiokafka#118 "Another racing in Coordinator"

    The same without a test that makes the leader refresh its metadata: a topic is created after the group has formed, and
    grows.

    Right: the current leader refreshes its metadata by itself, and at the end each partition has one owner.
    """
    payments = f"{orders}-payments"
    await cluster.create_topic(orders, 2)
    a, b = await cluster.consumers(2, group=app, topics=[orders, payments], metadata_max_age_ms=200)
    assert a.assigned | b.assigned == {(orders, 0), (orders, 1)}
    await cluster.create_topic(payments, 1)
    await cluster.wait_until(lambda: len(a.assigned | b.assigned) == 3, "the new topic should have an owner")
    await cluster.add_partitions(payments, 1)
    await cluster.wait_until(lambda: len(a.assigned | b.assigned) == 4, "its new partition should have an owner")
    await cluster.wait_until(lambda: len(a.assigned) == len(b.assigned) == 2, "each should have as much as the other")
    assert a.assigned.isdisjoint(b.assigned)
