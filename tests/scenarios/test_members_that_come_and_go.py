"""Consumer groups of KIP-848: members that come, go, and come back under a name."""

import pytest

from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from groupcoord.protocol.apis.list_groups import ListGroupsRequest
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import DescribeGroupsRequest
from groupcoord.testing import Cluster, RemoteCluster
from tests.scenarios.consumer_member import ConsumerMember, assigns_at_once, described, joined, settled

pytestmark = pytest.mark.asyncio

V0 = 0
"""Up to this version of ConsumerGroupHeartbeat the coordinator makes member ids."""


async def test_a_member_is_one_member_however_often_it_joins(cluster: RemoteCluster, app: str, orders: str) -> None:
    """thomhurst/Dekaf#834 "feat(consumer): implement KIP-1082 client-generated member IDs"

    The answer to the first heartbeat is lost, and the client joins again. The coordinator made an id for each: a member that
    nobody is has half of the partitions until its session is over.

    Right: clients make their ids, and who joins twice is one member. With the old version of the API it is two.
    """
    await cluster.create_topic(orders, 2)
    await assigns_at_once(cluster, app)
    a = ConsumerMember(cluster, app, [orders], "a")
    await a.join(lost=True)
    await a.join()
    assert a.numbers == [0, 1]
    assert [member.member_id for member in (await described(cluster, app)).members] == ["a"]

    other = f"{app}-other"
    await assigns_at_once(cluster, other)
    nobody = ConsumerMember(cluster, other, [orders], "")
    await nobody.join(lost=True, version=V0)
    await nobody.join(version=V0)
    assert len((await described(cluster, other)).members) == 2
    assert nobody.numbers == []


async def test_who_is_closed_before_it_was_answered_can_leave(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#16649 "KAFKA-17116: New consumer may not send effective leave group if member ID received after close"
    apache/kafka#17549 "KAFKA-17116: New consumer may not send effective leave group if member ID received after close"

    A consumer is closed before the answer to its first heartbeat is there. It does not know its id, its goodbye names nobody,
    and the group waits for its session to end.

    Right: a goodbye without an id is refused. Who makes its own id can always say it, and the group is empty at once.
    """
    await cluster.create_topic(orders, 2)
    await assigns_at_once(cluster, app)
    a = ConsumerMember(cluster, app, [orders], "")
    await a.join(lost=True, version=V0)
    assert await a.leave() == E.INVALID_REQUEST
    assert (await described(cluster, app)).group_state == "Stable"

    other = f"{app}-other"
    await assigns_at_once(cluster, other)
    b = ConsumerMember(cluster, other, [orders], "b")
    await b.join(lost=True)
    assert await b.leave() == E.NONE
    assert (await described(cluster, other)).group_state == "Empty"


async def test_a_goodbye_while_a_heartbeat_is_under_way(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#4672 "[KIP-848] Fixes related to Offset Commit previous error and ConsumerGroupHeartbeat not
    updating member epoch in a case"
    confluentinc/librdkafka#5514 "[KIP-932] Align ShareGroupHeartbeat error handling with ConsumerGroupHeartbeat"

    A consumer leaves while a heartbeat of it is under way. What that is answered does not count any more for the client, and
    the last commit goes out with an epoch that is over.

    Right: the goodbye needs no epoch, and is good once. A heartbeat that comes after it finds no member, and while others
    are there a commit does neither.
    """
    await cluster.create_topic(orders, 2)
    a, b = await joined(cluster, app, orders, "a", "b")
    assert await a.leave() == E.NONE
    assert await a.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert await a.leave() == E.UNKNOWN_MEMBER_ID
    assert await a.commit({(orders, 0): 5}) == {(orders, 0): E.UNKNOWN_MEMBER_ID}
    await settled(b)
    assert b.numbers == [0, 1]


async def test_a_static_member_says_its_name_when_it_goes(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#15419 "KAFKA-16152: Fix PlaintextConsumerTest.testStaticConsumerDetectsNewPartitionCreatedAfterRestart"

    A static member left for now without saying its instance id, and nobody looked at the answer. When it was back under
    another member id, its name was taken.

    Right: the goodbye for now is refused without the name. With it, the next process has the place, the partitions and the
    epoch at once, and the others notice nothing.
    """
    await cluster.create_topic(orders, 2)
    (b,) = await joined(cluster, app, orders, "b")
    a = ConsumerMember(cluster, app, [orders], "a-1", instance_id="w")
    await a.join()
    await settled(a, b)
    mine, epoch = a.numbers, a.epoch
    nameless = await a.ask(member_epoch=-2, instance_id=None, lost=True)
    assert (nameless.error_code, nameless.error_message) == (E.INVALID_REQUEST, "InstanceId can't be null.")
    again = ConsumerMember(cluster, app, [orders], "a-2", instance_id="w")
    assert (await again.join()).error_code == E.UNRELEASED_INSTANCE_ID
    assert await a.leave(-2) == E.NONE
    await again.join()
    assert (again.numbers, again.epoch) == (mine, epoch)
    assert await b.heartbeat() == E.NONE
    assert b.epoch == epoch


async def test_a_name_that_is_taken_is_not_taken_over(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#14432 "KAFKA-14516: [1/N] Static Member leave, join, re-join request using ConsumerGroupHeartbeats"

    Two processes have the same instance id. In classic groups the younger one takes the place, and the elder is fenced.

    Right: here the elder keeps it, and the younger is told UNRELEASED_INSTANCE_ID until the elder has left or its session
    is over.
    """
    await cluster.create_topic(orders, 1)
    await assigns_at_once(cluster, app)
    a = ConsumerMember(cluster, app, [orders], "elder", instance_id="w")
    b = ConsumerMember(cluster, app, [orders], "younger", instance_id="w")
    await a.join()
    assert (await b.join()).error_code == E.UNRELEASED_INSTANCE_ID
    assert await a.heartbeat() == E.NONE
    assert a.numbers == [0]
    assert await a.leave() == E.NONE
    await b.join()
    assert b.numbers == [0]


async def test_who_lost_its_name_is_fenced(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#16047 "KAFKA-16815: Handle FencedInstanceId in HB response"

    A static member is removed by an administrator, and another one joins under its instance id. The client had not thought
    of the code that it is told, and ended all the same, by luck.

    Right: FENCED_INSTANCE_ID, and that is final: joining again does not help while the name is another one's.
    """
    await cluster.create_topic(orders, 1)
    await assigns_at_once(cluster, app)
    a = ConsumerMember(cluster, app, [orders], "a", instance_id="w")
    b = ConsumerMember(cluster, app, [orders], "b", instance_id="w")
    await a.join()
    gone = MemberIdentity(member_id="", group_instance_id="w")
    answer = await cluster.ask_coordinator(app, LeaveGroupRequest(group_id=app, members=(gone,)))
    assert answer.members[0].error_code == E.NONE
    await b.join()
    assert await a.heartbeat() == E.FENCED_INSTANCE_ID
    assert (await a.join()).error_code == E.UNRELEASED_INSTANCE_ID
    assert await b.heartbeat() == E.NONE


@pytest.mark.kafka(topics={"orders": 2}, config={"group.consumer.max.size": 2})
async def test_a_full_group_has_no_room_for_who_was_there(kafka: Cluster) -> None:
    """apache/kafka#22356 "KAFKA-20601: Allow static member rejoin when consumer group is full."

    A group is as large as it may be. A static member is restarted, and comes back under a new member id into its own place:
    it is told that there is no room.

    Right: up to Kafka 4.3 it is so, for the size is looked at before the name. Under its old member id it may come back, and
    so it may when its session is over.
    """
    async with RemoteCluster(kafka.address) as cluster:
        await assigns_at_once(cluster, "app")
        a = ConsumerMember(cluster, "app", ["orders"], "a-1", instance_id="w")
        b = ConsumerMember(cluster, "app", ["orders"], "b")
        await a.join()
        await b.join()
        await settled(a, b)
        mine = a.numbers
        assert await a.leave(-2) == E.NONE
        again = ConsumerMember(cluster, "app", ["orders"], "a-2", instance_id="w")
        assert (await again.join()).error_code == E.GROUP_MAX_SIZE_REACHED
        await a.join()
        assert a.numbers == mine
        assert await a.leave(-2) == E.NONE
        for _ in range(6):
            await kafka.clock.advance(10)
            assert await b.report() == E.NONE
        await again.join()
        await settled(again, b)
        assert len(again.numbers) == 1


async def test_an_asterisk_is_not_a_wildcard(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#5251 "Update contract changes for KIP-848 regex subscription"

    ``^topic*`` found ``topic-1`` as long as clients looked for themselves, with the regular expressions of C, anywhere in the
    name. With the new protocol it finds nothing, and no error says so.

    Right: the coordinator looks, with RE2, and the whole name has to match: ``^topic.*`` it is.
    """
    await cluster.create_topic(f"{orders}-topic-1", 2)
    await assigns_at_once(cluster, app)
    a = ConsumerMember(cluster, app, None, "a")
    await a.join(subscribed_topic_regex=f"^{orders}-topic*")
    for _ in range(20):
        assert await a.report() == E.NONE
    assert a.numbers == []
    await a.ask(subscribed_topic_regex=f"^{orders}-topic.*")
    await settled(a)
    while not a.assigned:
        assert await a.report() == E.NONE
    assert a.numbers == [0, 1]


async def test_a_pattern_that_is_none(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#17257 "KAFKA-17592: Support for SubscribedTopicsRegex in ConsumerGroupHeartbeat RPC"
    apache/kafka#17951 "KAFKA-15561 [3/N]: Client support for SubscriptionPattern in HB"

    The pattern is compiled by the broker, long after the user has written it. What was wrong with it has to come back.

    Right: INVALID_REGULAR_EXPRESSION, with the pattern and the reason. The group does not change, and there is none if there
    was none.
    """
    await cluster.create_topic(orders, 1)
    a = ConsumerMember(cluster, app, None, "a")
    answer = await a.join(subscribed_topic_regex="orders-(")
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert "`orders-(`" in str(answer.error_message)
    assert "missing closing )" in str(answer.error_message)
    assert (await described(cluster, app)).error_code == E.GROUP_ID_NOT_FOUND


async def test_an_assignor_that_the_broker_has_not(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#14878 "KAFKA-15280: Implement client support for KIP-848 server-side assignors"
    confluentinc/librdkafka#4634 "[KIP-848] HB Error Code, Partial ack flow, OffsetCommit Request, Response and various fixes"

    ``group.remote.assignor`` is the name of an assignor of the broker. Names of the client's assignors are no such names.

    Right: UNSUPPORTED_ASSIGNOR, and the message says which there are. Nothing is joined.
    """
    await cluster.create_topic(orders, 1)
    a = ConsumerMember(cluster, app, [orders], "a")
    answer = await a.join(server_assignor="cooperative-sticky")
    assert answer.error_code == E.UNSUPPORTED_ASSIGNOR
    assert "uniform" in str(answer.error_message)
    assert "range" in str(answer.error_message)
    assert (await described(cluster, app)).error_code == E.GROUP_ID_NOT_FOUND


async def test_an_old_tool_says_that_the_group_is_dead(cluster: RemoteCluster, app: str, orders: str) -> None:
    """tchiotludo/akhq#2720 "Consumer groups using KIP-848 protocol (Kafka 4.x) incorrectly shown as DEAD state"
    tchiotludo/akhq#2780 "fix: use GroupState API for KIP-848 consumer protocol groups (#2720)"
    redpanda-data/console#1815 "Add Support for KIP-848 - The Next Generation of the Consumer Rebalance Protocol"

    Consumers read happily, and a user interface shows their group as dead, with no members.

    Right: DescribeGroups knows classic groups only, and calls others Dead. ListGroups says of which type a group is, and
    ConsumerGroupDescribe describes it.
    """
    await cluster.create_topic(orders, 1)
    (a,) = await joined(cluster, app, orders, "a")
    old = await cluster.ask_coordinator(app, DescribeGroupsRequest(groups=(app,)))
    assert (old.groups[0].group_state, old.groups[0].members) == ("Dead", ())
    listed = await cluster.ask_coordinator(app, ListGroupsRequest())
    assert [(each.group_type, each.group_state) for each in listed.groups if each.group_id == app] == [
        ("consumer", "Stable")
    ]
    seen = await described(cluster, app)
    assert (seen.group_state, [member.member_id for member in seen.members]) == ("Stable", [a.member_id])
