"""Consumer groups of KIP-848: members that join, leave, and return under an instance id."""

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

    The response to the first heartbeat is lost, and the client joins again. The coordinator generated an id for each join:
    a member without a client has half of the partitions until its session times out.

    Right: clients generate their own member ids, so a client that joins twice is one member. With version 0 of the API it
    is two.
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

    A consumer is closed before it gets the response to its first heartbeat. It does not know its id, so its last heartbeat
    has none, and the group waits for the session timeout.

    Right: a heartbeat that leaves without a member id is refused. A client that generates its own id can always leave, and
    the group is empty at once.
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

    A consumer leaves while one of its heartbeats is in flight. The client ignores the response to it, and sends the last
    commit with an old epoch.

    Right: a heartbeat that leaves the group is accepted with any epoch, but only once. A later heartbeat gets
    UNKNOWN_MEMBER_ID, and so does a commit while the group has other members.
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

    A static member left temporarily without its instance id, and the client ignored the response. When it was back with
    another member id, its instance id was in use.

    Right: leaving temporarily (epoch -2) without the instance id is refused. With it, the next process gets the place, the
    partitions and the epoch at once, and the other members are not affected.
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

    Two processes have the same instance id. In classic groups the newer one takes over, and the older one is fenced.

    Right: here the older process keeps the instance id. The newer one gets UNRELEASED_INSTANCE_ID until the older one has
    left or its session has timed out.
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

    A static member is removed by an administrator, and another one joins with its instance id. The client did not handle
    the resulting error, and ended only by luck.

    Right: FENCED_INSTANCE_ID is a fatal error: joining again does not help while another member has the instance id.
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

    A group has its maximum size. A static member is restarted, and joins with a new member id and its instance id: it gets
    GROUP_MAX_SIZE_REACHED.

    Right: up to Kafka 4.3 this is the actual behaviour, because the group size is checked before the instance id. With its
    old member id the member can return, and with a new one when its old session has timed out.
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

    ``^topic*`` matched ``topic-1`` while clients evaluated patterns themselves, with C's regular expressions, anywhere in
    the name. With the new protocol it matches nothing, and there is no error.

    Right: the coordinator evaluates the pattern with RE2, and it must match the whole name: use ``^topic.*``.
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

    The pattern is compiled by the broker, long after the application has set it. The error has to reach the application.

    Right: the error INVALID_REGULAR_EXPRESSION contains the pattern and the reason. The group does not change, and none is
    created.
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

    ``group.remote.assignor`` is the name of an assignor of the broker, not of an assignor of the client.

    Right: the error UNSUPPORTED_ASSIGNOR lists the assignors of the broker. The member does not join.
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

    Consumers read normally, but a user interface shows their group as Dead, without members.

    Right: DescribeGroups supports only classic groups, and returns Dead for others. ListGroups returns the type of each
    group, and ConsumerGroupDescribe describes consumer groups.
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
