"""Member ids: assigned, dropped, forgotten and unknown."""

import pytest

from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import Cluster, RemoteCluster
from groupcoord.testing.trace import RequestReceived
from tests.scenarios.steps import enters, gather, together

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_newcomer_comes_back_with_its_id(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#6058 "KAFKA-7824: Require member.id for initial join group request"

    A client whose first JoinGroup times out tries again, and becomes one more member each time. Groups grew without limit,
    and each of the unused members delayed every rebalance until its session timed out.

    Right: JoinGroup without a member id gets MEMBER_ID_REQUIRED and a member id, and does not change the group; JoinGroup
    with that id adds the member (KIP-394). A static member needs no second step, since its instance id identifies it.
    """
    await cluster.create_topic(orders, 1)
    a = cluster.manual_member(app, orders)
    assert (await a.join(come_back=False)).error_code == E.MEMBER_ID_REQUIRED
    # Kafka answers before the record of the new group is in the log, and until then describes it as Dead.
    view = await cluster.group(app).wait_until(lambda view: view.state == "Empty", "be made")
    assert view.members == ()
    assert await a.heartbeat() == E.UNKNOWN_MEMBER_ID  # an id is no membership
    given = a.member_id
    await a.rejoin()
    assert (a.member_id, a.generation) == (given, 1)
    static = cluster.manual_member(f"{app}-static", orders, instance_id="w-1")
    assert (await static.join(come_back=False)).error_code == E.NONE


async def test_before_there_were_ids_a_second_try_was_a_second_member(
    cluster: RemoteCluster, app: str, orders: str
) -> None:
    """apache/kafka#6058 "KAFKA-7824: Require member.id for initial join group request"

    The same, with an older client: JoinGroup in version 3.

    Right: for such clients the coordinator still adds a member for each JoinGroup without an id. The extra member of a
    retry stays until it leaves or its session times out.
    """
    await cluster.create_topic(orders, 1)
    ghost, second_try = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    assert (await ghost.join(version=3, come_back=False)).error_code == E.NONE
    trying = second_try.join(version=3, come_back=False)
    await cluster.group(app).wait_until(lambda view: len(view.members) == 2, "have two members for one client")
    assert not trying.done()  # it waits for the other one, which is itself
    await cluster.group(app).remove_member(ghost.member_id)
    assert (await trying).generation_id == 2


async def test_an_abandoned_id_holds_the_group_up(kafka: Cluster) -> None:
    """confluentinc/librdkafka#5569 "Classic consumer abandons the member id assigned by the broker (KIP-394),
    stalling the group for session.timeout.ms"

    After a metadata change the client sent a second JoinGroup without an id, milliseconds after the first, and forgot the
    id in the response to the first one. The coordinator waits for that id: the whole group is blocked for exactly 45
    seconds.

    Right: a client joins with the member id that it got, even if the response belongs to an older request. The coordinator
    drops an unused id after the session timeout of its request, not earlier, and completes the rebalance at that moment.
    """
    await kafka.create_topic("orders", 2)
    a = kafka.manual_member("app", "orders", session_timeout_ms=300_000, rebalance_timeout_ms=300_000)
    b = kafka.manual_member("app", "orders", rebalance_timeout_ms=300_000)
    await a.rejoin()
    await b.join(come_back=False)
    abandoned, b.member_id = b.member_id, ""
    joining, leading = b.join(), a.join()
    await kafka.clock.advance(44)
    assert await kafka.group("app").state() == "PreparingRebalance"
    assert abandoned in [each.member for each in kafka.clock.deadlines(group="app")]
    await kafka.clock.advance(1)
    await gather(joining, leading)
    kafka.trace.of(MemberRemoved, member=abandoned, how=Departure.NEVER_CAME_BACK).one()
    assert b.member_id != abandoned


async def test_a_promised_member_that_leaves_ends_the_waiting(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#6251 "KAFKA-7909: Ensure timely rebalance completion after pending members rejoin or fail"

    The first version of KIP-394 did not handle members that have an id but have not joined with it: such a consumer could
    not leave, and a rebalance did not complete when the last of them joined, left, or timed out.

    Right: LeaveGroup with an id that has not joined yet returns NONE. If no other member is missing, all waiting members
    get their responses.
    """
    await cluster.create_topic(orders, 1)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await a.rejoin()
    await b.join(come_back=False)
    leading = a.join()
    await cluster.group(app).wait_until(lambda view: view.state == "PreparingRebalance", "wait for b")
    assert not leading.done()
    assert await b.leave("changed its mind") == E.NONE
    assert (await leading).generation_id == 2
    await gather(a.sync())
    view = await cluster.group(app).wait_stable()
    assert [member.member_id for member in view.members] == [a.member_id]


async def test_a_newcomer_waits_five_minutes_at_most(kafka: Cluster) -> None:
    """apache/kafka#5962 "KAFKA-7610: Proactively timeout new group members if rebalance is delayed"
    apache/kafka#8339 "KAFKA-9752: New member timeout can leave group rebalance stuck"

    A member with a huge rebalance timeout does not join again. Each new member gives up after its request timeout and tries
    again, as one more member. The first fix forgot a timer, and then a rebalance did not complete at all.

    Right: the first JoinGroup of a member gets UNKNOWN_MEMBER_ID, without an id, after it has waited for 300 seconds; the
    client starts again. The rebalance continues without it.
    """
    await kafka.create_topic("orders", 1)
    slow = kafka.manual_member("app", "orders", session_timeout_ms=1_800_000, rebalance_timeout_ms=900_000)
    new = kafka.manual_member("app", "orders")
    await slow.rejoin()
    joining = new.join()
    await kafka.clock.advance(299)
    assert not joining.done()
    await kafka.clock.advance(2)
    answer = await joining
    assert (answer.error_code, answer.member_id) == (E.UNKNOWN_MEMBER_ID, "")
    kafka.trace.of(MemberRemoved, how=Departure.FIRST_JOIN_OVER).one()
    assert (await slow.join()).generation_id == 2  # nobody is missing any more


async def test_a_dead_id_stays_dead_and_a_new_one_is_had(cluster: RemoteCluster, app: str, orders: str) -> None:
    """aio-libs/aiokafka#575 "UnknownMemberIdError causes consumer to lock up"
    aio-libs/aiokafka#727 "UnknownMemberIdError causes consumer to lock up"
    dpkp/kafka-python#569 "constantly getting UnknownMemberIdError"

    A member is removed in the middle of a rebalance. After a commit with UNKNOWN_MEMBER_ID the client forgets its id and
    generation while a JoinGroup is in flight; then it sends SyncGroup with generation -1, or heartbeats with the removed id
    for ever.

    Right: every API returns UNKNOWN_MEMBER_ID for the id of a removed member. The client drops its requests in flight and
    joins once, without an id. A generation that does not exist yet is an illegal one.
    """
    await cluster.create_topic(orders, 2)
    a, b = cluster.manual_member(app, orders), cluster.manual_member(app, orders)
    await together(cluster, a, b)
    dead, p0 = b.member_id, (orders, 0)
    await cluster.group(app).remove_member(dead)
    assert await b.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert await b.commit({p0: 1}) == {p0: E.UNKNOWN_MEMBER_ID}
    assert (await b.sync()).error_code == E.UNKNOWN_MEMBER_ID
    assert (await b.join()).error_code == E.UNKNOWN_MEMBER_ID
    assert await b.leave() == E.UNKNOWN_MEMBER_ID
    b.member_id, b.generation, b.assigned = "", -1, frozenset()
    await enters(cluster, b, a)
    assert b.member_id not in ("", dead)
    assert len(b.assigned) == 1
    b.generation = -1
    assert (await b.sync()).error_code == E.ILLEGAL_GENERATION


async def test_unknown_at_sync_means_join_as_a_newcomer(kafka: Cluster) -> None:
    """tulios/kafkajs#624 "Unexpected breakdown of Kafka after every few days."
    tulios/kafkajs#1568 "The coordinator is not aware of this member: The coordinator is not aware of this member"

    SyncGroup gets UNKNOWN_MEMBER_ID. The client repeats the same request some times, and then the consumer ends.

    Right: join again as a new member. If the coordinator still has the old id, it delays the group by one session timeout
    at most.
    """
    await kafka.create_topic("orders", 2)
    kafka.faults.when("SyncGroup").refuse("UNKNOWN_MEMBER_ID")
    begin_ms = kafka.clock.now_ms()
    (a,) = await kafka.consumers(1, group="app", topics="orders")  # lets time pass until it is in
    ghost = kafka.trace.of(MemberRemoved, group="app").one().member
    assert a.errors == []
    assert a.assigned == {P0, P1}
    assert a.member_id != ghost
    assert list(await kafka.group("app").assignment()) == [a.member_id]
    assert kafka.clock.now_ms() - begin_ms <= a.membership.settings.session_timeout_ms + 3_000  # and a heartbeat


async def test_an_illegal_generation_keeps_the_id(kafka: Cluster) -> None:
    """tulios/kafkajs#1474 "Consider ILLEGAL_GENERATION error as rebalancing error"
    apache/kafka#11451 "KAFKA-13419: Only reset generation ID when ILLEGAL_GENERATION error"

    A member that missed a rebalance gets ILLEGAL_GENERATION. One client ended because of that; another one forgot its id as
    well and joined as a new member, and the coordinator waited for the old id until its session timed out.

    Right: the partitions are lost, the member id is still valid. If the client joins with it, no unused member is left
    behind.
    """
    await kafka.create_topic("orders", 2)
    (a,) = await kafka.consumers(1, group="app", topics="orders")
    me = a.member_id
    kafka.faults.when("Heartbeat").refuse("ILLEGAL_GENERATION")
    await kafka.clock.advance(10)
    assert ("lost", (P0, P1)) in a.rebalance_callbacks
    assert (a.member_id, a.generation) == (me, 2)
    assert a.assigned == {P0, P1}
    assert [asked.member for asked in kafka.trace.of(RequestReceived, api="JoinGroup")] == ["", me, me]
    kafka.trace.of(MemberRemoved, group="app").none()
