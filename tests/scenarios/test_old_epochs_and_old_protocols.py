"""Consumer groups of KIP-848: commits with an old epoch, and members of the classic protocol in the same group."""

import pytest

from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import RemoteCluster
from tests.scenarios.consumer_member import ConsumerMember, assigns_at_once, described, joined, settled

pytestmark = pytest.mark.asyncio


async def test_a_commit_of_the_epoch_before(cluster: RemoteCluster, app: str, orders: str) -> None:
    """Blizzard/node-rdkafka#1146 "Release with librdkafka >= 2.15.0 — KIP-848 (group.protocol=consumer) consumer fixes needed"
    apache/kafka#21692 "KAFKA-20066: Implement KIP-1251: Assignment epochs for consumer groups [3/N]"

    A member commits while its group changes. Its epoch has increased meanwhile, and the commit is refused as stale,
    hundreds of times a day, although the partition was the member's all the time.

    Right: since Kafka 4.3 the coordinator stores for each partition the epoch at which the member got it, and accepts
    commits with this or a later epoch. If one partition of a commit was assigned later, the whole commit is refused.
    """
    await cluster.create_topic(orders, 3)
    a, b = await joined(cluster, app, orders, "a", "b")
    old, kept = a.epoch, a.numbers
    await b.leave()
    await settled(a)
    before, since = (orders, kept[0]), (orders, next(number for number in a.numbers if number not in kept))
    assert a.epoch > old
    assert await a.commit({before: 5}, epoch=old) == {before: E.NONE}
    assert await a.commit({before: 6, since: 6}, epoch=old) == {
        before: E.STALE_MEMBER_EPOCH,
        since: E.STALE_MEMBER_EPOCH,
    }
    assert await a.commit({before: 7}, epoch=a.epoch + 1) == {before: E.STALE_MEMBER_EPOCH}
    assert await a.committed(before) == (E.NONE, 5)


async def test_a_stale_epoch_is_not_no_offset(cluster: RemoteCluster, app: str, orders: str) -> None:
    """platformatic/kafka#267 "STALE_MEMBER_EPOCH during OffsetFetch causes consumer to skip committed offsets"
    apache/kafka#22747 "KAFKA-20765: Fix OffsetFetch stale-epoch retry spinning in dedup loop"

    A member fetches its offsets while the group changes, and gets STALE_MEMBER_EPOCH. The client treats that as no offset,
    and starts at the end of the log. Another client repeats the request with the same epoch, without a pause.

    Right: this error says nothing about offsets. The client sends a heartbeat, and repeats the request with the epoch in
    the response.
    """
    await cluster.create_topic(orders, 2)
    (a,) = await joined(cluster, app, orders, "a")
    for number in (0, 1):
        assert await a.commit({(orders, number): 40}) == {(orders, number): E.NONE}
    old = a.epoch
    b = ConsumerMember(cluster, app, [orders], "b")
    await b.join()
    await settled(a, b)
    mine = (orders, a.numbers[0])
    assert await a.committed(mine, epoch=old) == (E.STALE_MEMBER_EPOCH, None)
    assert await a.committed(mine) == (E.NONE, 40)


async def test_members_of_the_new_protocol_commit_in_its_version(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#16145 "MINOR: Adjust validateOffsetCommit/Fetch in ConsumerGroup to ensure compatibility with classic
    protocol members"
    apache/kafka#14046 "KAFKA-14499: [1/N] Introduce OffsetCommit API version 9 and add new StaleMemberEpochException error"

    The field of the generation now also has the member epoch, and the reaction to errors depends on which one the client
    sent.

    Right: a member of the consumer protocol commits with version 9 or later. With an earlier version it gets
    UNSUPPORTED_VERSION, and stays a member.
    """
    await cluster.create_topic(orders, 1)
    (a,) = await joined(cluster, app, orders, "a")
    p0 = (orders, 0)
    assert await a.commit({p0: 1}, version=8) == {p0: E.UNSUPPORTED_VERSION}
    assert await a.commit({p0: 2}, version=9) == {p0: E.NONE}
    assert await a.committed(p0) == (E.NONE, 2)


async def test_a_classic_group_becomes_a_consumer_group(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#15662 "KAFKA-16436: Online upgrade triggering and group type conversion"
    apache/kafka#15988 "KAFKA-16793: Heartbeat API for upgrading ConsumerGroup"
    confluentinc/librdkafka#5210 "[KIP-848] Added migration guide and removed preview warning"

    Members are restarted one by one with ``group.protocol=consumer``, and both kinds are in the group meanwhile.

    Right: the first member of the new protocol turns the group into a consumer group. The coordinator computes the
    assignment for all members, and makes the classic ones join again with REBALANCE_IN_PROGRESS. No partition has two
    owners at any time.
    """
    await cluster.create_topic(orders, 4)
    await assigns_at_once(cluster, app)
    old = cluster.manual_member(app, orders)
    await old.rejoin()
    assert len(old.assigned) == 4
    new = ConsumerMember(cluster, app, [orders], "new")
    await new.join()
    assert new.numbers == []
    assert (await described(cluster, app)).group_state == "Reconciling"
    assert await old.heartbeat() == E.REBALANCE_IN_PROGRESS
    await old.rejoin()
    assert len(old.assigned) == 2  # it says what it owns with its next JoinGroup
    assert await old.heartbeat() == E.REBALANCE_IN_PROGRESS
    await old.rejoin()
    assert await old.heartbeat() == E.NONE
    await settled(new)
    assert len(new.numbers) == 2
    assert sorted([number for _, number in old.assigned] + new.numbers) == [0, 1, 2, 3]


async def test_a_consumer_group_becomes_a_classic_group_again(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#23514 "KAFKA-21117: Allow consumer group replay across classic downgrade"
    apache/kafka#15442 "KAFKA-16313: offline group protocol migration"

    An upgrade is rolled back: the members of the new protocol leave, those of the classic one stay. The log then has
    records of both kinds of groups.

    Right: when the last member of the new protocol leaves, the group becomes a classic one, whose members rebalance as
    usual. Its offsets are kept.
    """
    await cluster.create_topic(orders, 2)
    await assigns_at_once(cluster, app)
    old, new = cluster.manual_member(app, orders), ConsumerMember(cluster, app, [orders], "new")
    await old.rejoin()
    assert await old.commit({(orders, 0): 3}) == {(orders, 0): E.NONE}
    await new.join()
    assert await new.leave() == E.NONE
    assert (await described(cluster, app)).error_code == E.GROUP_ID_NOT_FOUND
    assert await new.heartbeat() == E.GROUP_ID_NOT_FOUND
    assert await old.heartbeat() == E.ILLEGAL_GENERATION  # it had not even joined the consumer group yet
    await old.rejoin()
    assert old.is_leader
    assert len(old.assigned) == 2
    assert await cluster.group(app).state() == "Stable"
    assert await cluster.group(app).committed(orders, 0) == 3


async def test_an_old_static_member_is_replaced_by_a_new_one(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#16800 "KAFKA-17228: Static member using new protocol should always replace the one using the old protocol"

    A static member of the classic protocol sends no LeaveGroup when it is restarted. After a restart with the new protocol
    its instance id was still in use, and it had to wait for its own old session to time out.

    Right: a static member of the classic protocol is replaced at once, by a member of either protocol, and the new member
    gets its partitions.
    """
    await cluster.create_topic(orders, 2)
    await assigns_at_once(cluster, app)
    old = cluster.manual_member(app, orders, instance_id="w")
    await old.rejoin()
    new = ConsumerMember(cluster, app, [orders], "new", instance_id="w")
    assert (await new.join()).error_code == E.NONE
    assert new.numbers == [0, 1]
    assert await old.heartbeat() == E.FENCED_INSTANCE_ID
