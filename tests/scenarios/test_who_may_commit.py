"""Who may commit: members, consumers outside of the group, and former members."""

import pytest

from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from groupcoord.testing.trace import RequestReceived
from tests.scenarios.steps import gather, together

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_commit_after_the_goodbye_is_not_taken(cluster: RemoteCluster, app: str, orders: str) -> None:
    """tulios/kafkajs#751 "Trying to commit offsets on rebalance"

    A consumer is closed while it processes a batch. It sends LeaveGroup at once and the commit of the batch afterwards,
    which gets UNKNOWN_MEMBER_ID: "the coordinator is not aware of this member". Records are read again at each deployment.

    Right: a member that has left is unknown to the coordinator. A client that is closed stops fetching, commits, and
    leaves, in this order.
    """
    await cluster.create_topic(orders, 2)
    p0 = (orders, 0)
    a = cluster.manual_member(app, orders)
    await a.rejoin()
    assert await a.commit({p0: 3}) == {p0: E.NONE}
    assert await a.leave() == E.NONE
    assert await a.commit({p0: 4}) == {p0: E.UNKNOWN_MEMBER_ID}
    assert await cluster.group(app).committed(*p0) == 3

    other = f"{app}-other"
    (b,) = await cluster.consumers(1, group=other, topics=orders)
    b.consumed[p0] = 9
    b.leave()
    await cluster.wait_until(lambda: b.has_left, "b should have left")
    assert await cluster.group(other).committed(*p0) == 9
    assert await cluster.group(other).state() == "Empty"


async def test_who_is_out_is_told_and_begins_anew(cluster: RemoteCluster, app: str, orders: str) -> None:
    """IBM/sarama#2118 "Unable to commit offset during rebalancing but messages are consumed and processed"

    The member was removed from its group, and each of its commits fails with UNKNOWN_MEMBER_ID. But its handler still gets
    records that were fetched before. For a long time two consumers process the same records.

    Right: whichever request gets UNKNOWN_MEMBER_ID, the client stops reading, reports the partitions as lost, and joins as
    a new member. Nothing of the commit is stored.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await cluster.consumers(1, group=app, topics=orders)
    (b,) = await cluster.consumers(1, group=app, topics=orders, heartbeat_interval_ms=30_000)  # a commit tells it first
    gone, (mine,) = b.member_id, b.assigned
    await cluster.group(app).remove_member(gone)
    codes: list[dict[tuple[str, int], E]] = []
    b.commit({mine: 9}, codes.append)
    await cluster.wait_until(lambda: codes, "the commit should be answered")
    assert codes == [{mine: E.UNKNOWN_MEMBER_ID}]
    assert await cluster.group(app).committed(*mine) is None
    await cluster.wait_until(lambda: b.is_stable and len(a.assigned) == len(b.assigned) == 1, "b should be in again")
    assert ("lost", (mine,)) in b.rebalance_callbacks
    assert b.member_id not in ("", gone)
    assert b.errors == []


async def test_the_coordinator_does_not_ask_who_owns_a_partition(cluster: RemoteCluster, app: str, orders: str) -> None:
    """faust-streaming/faust#94 "IllegalStateError causes consumer crash when commit is pending and a rebalance happens"

    There is a rebalance between the decision to commit and the commit. One of the partitions has another owner now, the
    client finds that it is not assigned, raises IllegalStateError, and the worker ends.

    Right: when it sends a commit, a client leaves out the partitions that it no longer has, without an error. The client
    has to check that: the coordinator accepts a commit of any member of the generation for any partition.
    """
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await together(cluster, a, b)
    (foreign,) = b.assigned
    assert foreign not in a.assigned
    assert await b.commit({foreign: 10}) == {foreign: E.NONE}
    assert await a.commit({foreign: 4}) == {foreign: E.NONE}
    assert await cluster.group(app).committed(*foreign) == 4


async def test_the_coordinator_compares_no_offsets(cluster: RemoteCluster, app: str, orders: str) -> None:
    """twmb/franz-go#689 "reverted offset commit in kafka"

    A commit that timed out at the client arrives over the old connection, after newer commits over a new connection.

    Right: the coordinator accepts it. It checks only the member id and the generation.
    """
    await cluster.create_topic(orders, 1)
    p0 = (orders, 0)
    a, old_connection = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await a.rejoin()
    old_connection.member_id, old_connection.generation = a.member_id, a.generation
    assert await a.commit({p0: 2}) == {p0: E.NONE}
    assert await old_connection.commit({p0: 1}) == {p0: E.NONE}
    assert await cluster.group(app).committed(*p0) == 1


async def test_nothing_is_committed_for_a_lost_assignment(kafka: Cluster) -> None:
    """confluentinc/librdkafka#5585 "fix: Don't commit offsets of a lost assignment"

    The client itself notices that its session is over, forgets its member id, and revokes its partitions. It still sends
    the commit of a revocation, without a member id. A dynamic member gets UNKNOWN_MEMBER_ID; a static one is fenced, which
    ends it.

    Right: lost partitions are reported as lost, without a commit for them. The member joins again and continues.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders", instance_ids=["w-1"])
    a.consumed[P0] = 7
    a.pause()
    await kafka.clock.advance(120)
    kafka.trace.of(MemberRemoved, group="app", how=Departure.SESSION_OVER).one()
    a.resume()
    await kafka.clock.advance(10)
    assert ("lost", (P0, P1)) in a.rebalance_callbacks
    assert a.errors == []
    assert a.is_stable
    assert a.assigned == {P0, P1}
    kafka.trace.of(RequestReceived, api="OffsetCommit", group="app").none()


async def test_a_static_member_that_forgets_its_id_is_fenced(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#5585 "fix: Don't commit offsets of a lost assignment"

    The coordinator's side of it: why a commit without a member id is fatal for a static member.

    Right: a request with an instance id and another member id than that instance has is refused with FENCED_INSTANCE_ID.
    This includes an empty member id.
    """
    await cluster.create_topic(orders, 1)
    p0 = (orders, 0)
    a = cluster.manual_member(app, orders, instance_id="w-1")
    await a.rejoin()
    known, a.member_id = a.member_id, ""
    assert await a.commit({p0: 5}) == {p0: E.FENCED_INSTANCE_ID}
    assert await a.heartbeat() == E.FENCED_INSTANCE_ID
    a.member_id = known
    assert await a.commit({p0: 5}) == {p0: E.NONE}


async def test_a_stranger_commits_only_while_nobody_is_there(cluster: RemoteCluster, app: str, orders: str) -> None:
    """dpkp/kafka-python#1112 "KafkaConsumer using group_id with manually assigned partitions can raise unexpected
    IllegalStateError"
    confluentinc/confluent-kafka-python#628 "Periodic UNKNOWN_MEMBER_ID error when resetting offsets"

    A consumer with manually assigned partitions commits with the id of a group that has members. It gets UNKNOWN_MEMBER_ID,
    reacts like a member, and ends with an IllegalStateError that explains nothing.

    Right: while a group has no members, any client may commit offsets to it; otherwise only its members may. A consumer
    that is not a member raises an error for the failed commit, and does not try to join.
    """
    await cluster.create_topic(orders, 1)
    p0 = (orders, 0)
    stranger, member = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    assert await stranger.commit({p0: 1}) == {p0: E.NONE}  # as generation -1, without an id
    await member.rejoin()
    assert await stranger.commit({p0: 2}) == {p0: E.UNKNOWN_MEMBER_ID}
    assert await cluster.group(app).committed(*p0) == 1
    await member.leave()
    assert await stranger.commit({p0: 3}) == {p0: E.NONE}
    assert await cluster.group(app).committed(*p0) == 3


async def test_a_topic_that_is_gone_spoils_only_its_own_commit(cluster: RemoteCluster, app: str, orders: str) -> None:
    """aio-libs/aiokafka#1095 "UnknownTopicOrPartitionError cause infinite loop inside … commit_offsets function"
    apache/kafka#23213 "KAFKA-20959: Skip deleted-topic auto-commit retries before rebalance"

    A subscribed topic is deleted. Commits for it get UNKNOWN_TOPIC_OR_PARTITION, which counts as a retriable error, and the
    client repeats them for ever; in Java before each JoinGroup, so that the rebalance that would drop the topic never
    starts.

    Right: the error is returned per partition, and offsets of other topics are stored. A client repeats the commit for a
    limited time and then drops the topic; a failed commit does not keep it from joining.
    """
    gone = f"{orders}-gone"
    await cluster.create_topic(orders, 1)
    await cluster.create_topic(gone, 1)
    p0, lost = (orders, 0), (gone, 0)
    a = cluster.manual_member(app, [orders, gone])
    await a.rejoin()
    assert a.assigned == {p0, lost}
    await cluster.delete_topic(gone)
    assert await a.commit({p0: 4, lost: 1}) == {p0: E.NONE, lost: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert await cluster.group(app).offsets() == {p0: 4}
    await gather(a.join())
    await gather(a.sync())
    assert a.generation == 2
    assert a.assigned == {p0}
