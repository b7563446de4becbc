"""Commits during a rebalance: which ones the coordinator accepts, and how clients react to the others."""

from typing import Any

import pytest

from groupcoord.coordinator.events import RebalanceStarted
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from groupcoord.testing.trace import RequestReceived
from tests.scenarios.steps import gather

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_commit_that_races_a_rebalance(cluster: RemoteCluster, app: str, orders: str) -> None:
    """robinhood/faust#104 "CommitFailedError when a new generation may have formed"
    dpkp/kafka-python#544 "Problems committing offsets during the rebalance"

    A worker commits while another one joins. It gets REBALANCE_IN_PROGRESS, the library raises a CommitFailedError, and the
    worker ends, although it is still a member. Its records are read again.

    Right: the coordinator accepts commits of the old generation during the join phase. Between the response to JoinGroup
    and the leader's SyncGroup it returns REBALANCE_IN_PROGRESS, and to members that missed the rebalance
    ILLEGAL_GENERATION. A client completes the rebalance and then commits again for the partitions that it still has.
    """
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    p0 = (orders, 0)
    await a.rejoin()
    joining = b.join()
    await cluster.group(app).wait_until(lambda view: view.state == "PreparingRebalance", "wait for a")
    assert await a.commit({p0: 5}) == {p0: E.NONE}
    old = a.generation
    await gather(a.join(), joining)
    assert await a.commit({p0: 6}) == {p0: E.REBALANCE_IN_PROGRESS}
    new, a.generation = a.generation, old
    assert await a.commit({p0: 6}) == {p0: E.ILLEGAL_GENERATION}
    assert await cluster.group(app).committed(orders, 0) == 5
    a.generation = new
    await gather(a.sync(), b.sync())
    (mine,) = a.assigned
    assert await a.commit({mine: 6}) == {mine: E.NONE}


async def test_an_overtaken_commit_costs_nothing(kafka: Cluster) -> None:
    """confluentinc/librdkafka#4059 "Consumers should not be able to commit during a rebalance"
    confluentinc/librdkafka#4908 "Fix assignment lost, on illegal generation, during a commit"

    Under the cooperative protocol a member continues to read and commit while it joins. A commit that was sent in the old
    generation arrives in the new one and gets ILLEGAL_GENERATION. The client concluded that it was removed: it reported all
    its partitions as lost, and joined as a new member.

    Right: the client compares the generation in which it sent the commit with its present one. If it has a later generation
    by now, it ignores the error and keeps its partitions.
    """
    await kafka.create_topic("orders", 4)
    how: dict[str, Any] = {"group": "app", "topics": "orders", "assignors": "cooperative-sticky"}
    (a,) = await kafka.consumers(1, **how)
    late = kafka.faults.when("OffsetCommit", client_id=a.client_id).hold()
    codes: list[dict[tuple[str, int], E]] = []
    a.commit({P0: 7}, codes.append)
    await late.wait()
    a.consumed.clear()  # there is nothing else to commit
    (b,) = await kafka.consumers(1, **how)
    await kafka.clock.advance(10)
    assert (len(a.assigned), len(b.assigned)) == (2, 2)
    rebalances = len(kafka.trace.of(RebalanceStarted, group="app"))
    late.release()
    await kafka.clock.advance(10)
    assert codes == [{P0: E.ILLEGAL_GENERATION}]
    assert "lost" not in [what for what, _ in a.rebalance_callbacks]
    assert (a.is_stable, len(a.assigned)) == (True, 2)
    assert len(kafka.trace.of(RebalanceStarted, group="app")) == rebalances


async def test_a_refused_commit_is_followed_by_a_rejoin(kafka: Cluster) -> None:
    """confluentinc/librdkafka#2933 "Consumer stalled after commit failure during rebalance"
    confluentinc/librdkafka#1605 "Consumer stops consuming if commit occurs during broker rebalancing"

    A commit is refused with REBALANCE_IN_PROGRESS, and the client sends it again and again. While a commit was in flight it
    did not start to fetch its new assignment, and in the end a consumer had partitions that it never read.

    Right: REBALANCE_IN_PROGRESS ends this commit, which the application may repeat, and makes the client join again. The
    client commits the offsets of consumed records before it gives up the partitions, and continues after the rebalance.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    kafka.faults.when("OffsetCommit").refuse("REBALANCE_IN_PROGRESS")
    codes: list[dict[tuple[str, int], E]] = []
    a.commit({P0: 7}, codes.append)
    await kafka.clock.advance(10)
    assert codes == [{P0: E.REBALANCE_IN_PROGRESS}]
    assert (a.generation, a.is_stable) == (2, True)
    assert a.assigned == {P0, P1}
    assert a.errors == []
    assert await kafka.group("app").committed("orders", 0) == 7
    assert (
        len(kafka.trace.of(RequestReceived, api="OffsetCommit")) == 2
    )  # the refused one, and one before it joined again


@pytest.mark.slow
async def test_the_next_owner_begins_where_the_last_one_ended(cluster: RemoteCluster, app: str, orders: str) -> None:
    """tulios/kafkajs#28 "Commit resolved offsets on group rebalance"
    robinhood/faust#15 "RebalanceInProgressError"
    IBM/sarama#1543 "duplicated message during group rebalance"

    When a rebalance started the client dropped the records that it had processed but not committed, and the next owner read
    them again. In a large group that rebalances often, that is most of the work.

    Right: commit before JoinGroup. Until then the old generation is valid, and the coordinator accepts the commit.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await cluster.consumers(1, group=app, topics=orders)
    a.consumed |= {(orders, 0): 5, (orders, 1): 8}
    (b,) = await cluster.consumers(1, group=app, topics=orders)
    assert await cluster.group(app).offsets() == {(orders, 0): 5, (orders, 1): 8}
    assert b.generation == 2  # there was only the one rebalance in which a gave something up
    assert len(b.assigned) == 1


async def test_a_late_commit_disturbs_nobody(kafka: Cluster) -> None:
    """aio-libs/aiokafka#848 "Document how to handle long message processing with max_poll_interval_ms"

    A record takes seven minutes. After five the client leaves, as its poll interval is over, and another member gets the
    record. The first one finishes and commits: it is unknown, and joins again at once. That starts a rebalance in which the
    commit of the second one fails. The two went on like that for ever.

    Right: the late commit is refused and has no effect on the other members. The client joins again only when its
    application polls.
    """
    await kafka.create_topic("orders", 2)
    a, b = await kafka.consumers(2, group="app", topics="orders", max_poll_interval_ms=10_000)
    a.be_busy()
    await kafka.clock.advance(20)
    assert b.assigned == {P0, P1}
    generation = b.generation
    codes: list[dict[tuple[str, int], E]] = []
    a.commit({P0: 9}, codes.append)
    await kafka.clock.advance(20)
    assert codes == [{P0: E.UNKNOWN_MEMBER_ID}]
    assert await kafka.group("app").committed("orders", 0) is None
    assert b.generation == generation
    assert b.assigned == {P0, P1}
    a.poll()
    await kafka.clock.advance(10)
    assert len(a.assigned) == len(b.assigned) == 1


async def test_the_last_commit_that_arrives_wins(kafka: Cluster) -> None:
    """twmb/franz-go#689 "reverted offset commit in kafka"

    A commit times out, and later ones succeed; but then the first one arrives, and sets the offset back. After a restart
    the records in between are read again. Does the protocol not prevent that?

    Right: it does not prevent that. The coordinator compares generations, not offsets. A client must have only one commit
    in flight, or close the connection of a commit that timed out.
    """
    await kafka.create_topic("orders", 1)
    a = kafka.manual_member("app", "orders")
    await a.rejoin()
    late = kafka.faults.when("OffsetCommit").hold()
    first = a.commit({P0: 1})
    await late.wait()
    assert await a.commit({P0: 2}) == {P0: E.NONE}
    assert await kafka.group("app").committed("orders", 0) == 2
    late.release()
    assert await first == {P0: E.NONE}
    assert await kafka.group("app").committed("orders", 0) == 1
