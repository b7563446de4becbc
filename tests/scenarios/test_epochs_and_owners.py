"""Consumer groups of KIP-848: epochs, and partitions that move between members."""

import pytest

from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from tests.scenarios.consumer_member import ConsumerMember, assigns_at_once, described, joined, settled

pytestmark = pytest.mark.asyncio


async def test_a_partition_that_comes_back_before_it_was_given_back(
    cluster: RemoteCluster, app: str, orders: str
) -> None:
    """apache/kafka#15212 "KAFKA-16147; Partition is assigned to two members at the same time"
    apache/kafka#20781 "KAFKA-19449: Don't consider partitions unreleased when pending revocation by the current member"

    A member has to revoke partitions. Before it has, the target assignment changes, and they are assigned to it again. The
    coordinator lost track of their owner, and assigned them to the next new member: two members read them.

    Right: the member stays their owner throughout. Another member gets them only when this one has confirmed that it has
    revoked them.
    """
    await cluster.create_topic(orders, 4)
    (a,) = await joined(cluster, app, orders, "a")
    b, c = (ConsumerMember(cluster, app, [orders], name) for name in "bc")
    await b.join()
    assert b.numbers == []
    await a.heartbeat()
    assert len(a.numbers) == 2  # it has to give back the others
    await b.leave()
    assert await a.report() == E.NONE
    assert a.numbers == [0, 1, 2, 3]
    await c.join()
    assert c.numbers == []
    await a.heartbeat()
    assert len(a.numbers) == 2
    await c.heartbeat()
    assert c.numbers == []  # a has not said yet that it gave anything back
    assert await a.report() == E.NONE
    await c.heartbeat()
    assert sorted(a.numbers + c.numbers) == [0, 1, 2, 3]


async def test_who_waits_has_time(kafka: Cluster) -> None:
    """apache/kafka#15364 "KAFKA-16249; Improve reconciliation state machine"

    The rebalance timeout applied to every member that was not Stable, including members that only waited for partitions of
    others.

    Right: it applies only to members that have partitions to revoke. When it is over, such a member is removed even though
    it sends heartbeats, and the others get its partitions.
    """
    await kafka.create_topic("orders", 2)
    async with RemoteCluster(kafka.address) as cluster:
        await assigns_at_once(cluster, "app")
        a = ConsumerMember(cluster, "app", ["orders"], "a", rebalance_timeout_ms=60_000)
        b = ConsumerMember(cluster, "app", ["orders"], "b", rebalance_timeout_ms=5_000)
        await a.join()
        await b.join()
        for _ in range(5):
            assert await a.heartbeat() == E.NONE  # it never gives anything back
            assert await b.heartbeat() == E.NONE
            await kafka.clock.advance(10)
        assert b.numbers == []
        for _ in range(2):
            await b.heartbeat()
            await kafka.clock.advance(10)
        assert await a.heartbeat() == E.UNKNOWN_MEMBER_ID
        assert await b.report() == E.NONE
        assert b.numbers == [0, 1]


async def test_a_lost_answer_is_no_reason_to_be_fenced(cluster: RemoteCluster, app: str, orders: str) -> None:
    """twmb/franz-go#889 "v1.19.0 release status"
    apache/kafka#13639 "KAFKA-14462; [12/N] Add GroupMetadataManager and ConsumerGroup"

    On a poor network heartbeats are repeated, and the broker fenced members much too often: the response with the new epoch
    was lost, so the member sent the previous one.

    Right: the coordinator remembers the previous epoch. It accepts a heartbeat with that epoch if the member reports its
    owned partitions and all of them are assigned to it. Without the owned partitions the member is fenced and must join
    again.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await joined(cluster, app, orders, "a")
    b = ConsumerMember(cluster, app, [orders], "b")
    await b.join()
    await a.heartbeat()
    before = a.epoch
    assert await a.report(lost=True) == E.NONE
    assert await a.heartbeat(lost=True) == E.FENCED_MEMBER_EPOCH
    assert await a.report() == E.NONE
    assert a.epoch == before + 1
    await settled(a, b)
    assert len(a.numbers) == len(b.numbers) == 1


async def test_who_is_fenced_begins_anew_under_its_own_name(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#21305 "KAFKA-19233: Allow fenced members to rejoin consumer group with epoch 0"

    A fenced member joined with epoch 0, as it should, and was fenced for that, too: for ever.

    Right: epoch 0 is always accepted. The member keeps its partitions, and the group does not change.
    """
    await cluster.create_topic(orders, 2)
    a, b = await joined(cluster, app, orders, "a", "b")
    epoch, mine = a.epoch, a.numbers
    a.epoch, a.assigned = epoch - 1, {}
    assert await a.heartbeat() == E.FENCED_MEMBER_EPOCH
    await a.join()
    assert (a.epoch, a.numbers) == (epoch, mine)
    assert await b.heartbeat() == E.NONE
    assert b.epoch == epoch


async def test_who_says_everything_is_told_everything(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#15533 "KAFKA-16367; Full ConsumerGroupHeartbeat response must be sent when full request is received"

    Whether a response contained the assignment depended only on the owned partitions in the request. These are also there
    when a member has revoked some; and a member that sent all fields, because it was not sure of its state, did not get the
    assignment.

    Right: a response contains the assignment if it has changed, or if the request contains the rebalance timeout, the
    subscription and the owned partitions. Otherwise the assignment is null, which means that it is unchanged.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await joined(cluster, app, orders, "a")
    assert (await a.ask()).assignment is None
    assert (await a.ask(topic_partitions=a.owns())).assignment is None
    answer = await a.ask(
        rebalance_timeout_ms=60_000, subscribed_topic_names=(orders,), topic_partitions=a.owns(), lost=True
    )
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions == a.owns()


async def test_nothing_to_have_is_an_assignment(cluster: RemoteCluster, app: str, orders: str) -> None:
    """platformatic/kafka#404 "KIP-848: initially idle consumers retain `assignments === null` after an explicit empty
    assignment"

    Two partitions, three members: the third one gets none. Its client found no change, and reported that it still waits for
    an assignment. A deployment waited for it to be ready.

    Right: the coordinator returns an empty assignment, which is not null. The member is Stable, and gets a partition when
    another member leaves.
    """
    await cluster.create_topic(orders, 2)
    a, b = await joined(cluster, app, orders, "a", "b")
    c = ConsumerMember(cluster, app, [orders], "c")
    answer = await c.join()
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions == ()
    await settled(a, b, c)
    assert (await c.ask()).assignment is None
    await a.leave()
    await settled(b, c)
    assert len(c.numbers) == 1


async def test_what_is_balanced_stays(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#19677 "KAFKA-18688: Fix uniform homogeneous assignor stability"

    With more members than partitions, those that come first in the assignor's order had to have one more than others. A
    joining member could take a partition from another one, although the assignment was balanced.

    Right: any member may have one partition more than others. A member that owns a partition keeps it.
    """
    await cluster.create_topic(orders, 1)
    (owner,) = await joined(cluster, app, orders, "m1")
    others = [ConsumerMember(cluster, app, [orders], name) for name in ("m2", "m0", "m3")]
    for other in others:
        await other.join()
        await settled(owner, *others[: others.index(other) + 1])
        assert owner.numbers == [0]


async def test_a_topic_made_anew_is_another_topic(cluster: RemoteCluster, app: str, orders: str) -> None:
    """twmb/franz-go#1426 "kgo: make the topic recreation hard failure hold everywhere"
    apache/kafka#10952 "KAFKA-12257: Consumer mishandles topics deleted and recreated with the same name"

    A topic is deleted and created again with the same name. Clients that use the name continue at their position in the old
    topic, and commit that.

    Right: an assignment contains topic ids. The member has to revoke the partitions of the old id and then gets those of
    the new one. The offsets committed for the old topic are deleted.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await joined(cluster, app, orders, "a")
    (old,) = a.assigned
    assert await a.commit({(orders, 0): 7}) == {(orders, 0): E.NONE}
    await cluster.delete_topic(orders)
    await settled(a)
    await cluster.create_topic(orders, 2)
    while old in a.assigned or not a.assigned:
        assert await a.report() == E.NONE
    assert a.numbers == [0, 1]
    assert await a.committed((orders, 0)) == (E.NONE, -1)


async def test_an_empty_group_is_behind_itself(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#22045 "KAFKA-20442: Update consumer group assignment epoch when last member leaves"

    When the last member leaves, the group epoch increases, but the assignment epoch does not, because no assignment is
    computed without members. Tools that compare the two epochs show a group that is never complete.

    Right: up to Kafka 4.3 this is the actual behaviour. The group is Empty, whatever its epochs are, and the next member
    joins at the next epoch.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await joined(cluster, app, orders, "a")
    epoch = a.epoch
    await a.leave()
    seen = await described(cluster, app)
    assert (seen.group_state, seen.group_epoch, seen.assignment_epoch) == ("Empty", epoch + 1, epoch)
    b = ConsumerMember(cluster, app, [orders], "b")
    await b.join()
    await settled(b)
    assert (b.epoch, b.numbers) == (epoch + 2, [0, 1])


async def test_a_coordinator_reads_its_log_in_the_middle_of_a_change(kafka: Cluster) -> None:
    """apache/kafka#20907 "KAFKA-19862: Group coordinator loading may fail when there is concurrent compaction"
    apache/kafka#16898 "KAFKA-17306; Soften the validation when replaying tombstones"

    A new coordinator of a group could not load its log: a partition was assigned to a member before the record that removed
    it from its former owner. The partition of the log stayed without a coordinator.

    Right: the state after the last record counts. A member that has partitions to revoke still has to revoke them, and no
    other member gets them before.
    """
    await kafka.create_topic("orders", 4)
    async with RemoteCluster(kafka.address) as cluster:
        (a,) = await joined(cluster, "app", "orders", "a")
        b = ConsumerMember(cluster, "app", ["orders"], "b")
        await b.join()
        await a.heartbeat()
        before = await described(cluster, "app")
        await kafka.group("app").unload_coordinator()
        await kafka.group("app").load_coordinator()
        assert await described(cluster, "app") == before
        assert await b.heartbeat() == E.NONE
        assert b.numbers == []
        assert await a.report() == E.NONE
        await settled(a, b)
        assert sorted(a.numbers + b.numbers) == [0, 1, 2, 3]
