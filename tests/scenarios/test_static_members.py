"""Static members: restarts under the same instance id, and instance ids that are used twice."""

from typing import Any

import pytest

from groupcoord.coordinator.events import Departure, MemberRemoved, RebalanceStarted, StaticMemberReplaced
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.testing import AutoMember, Cluster, RemoteCluster
from groupcoord.testing.trace import RequestReceived
from tests.scenarios.steps import gather, joined, together

pytestmark = pytest.mark.asyncio

P0, P1 = ("orders", 0), ("orders", 1)


async def test_a_rolling_restart_is_no_rebalance(kafka: Cluster) -> None:
    """apache/kafka#6177 "KAFKA-7862 & KIP-345 part-one: Add static membership logic to JoinGroup protocol"
    robinhood/aiokafka#26 "Don't send leave request when running in KIP-345"

    The pods of a deployment restart one after the other: with dynamic members each restart is two rebalances. One client
    sent LeaveGroup nevertheless when it was closed, which made static membership useless.

    Right: a static member closes without LeaveGroup. If it is back within its session timeout, it gets its partitions
    again, in the same generation, and the other members are not affected.
    """
    await kafka.create_topic("orders", 6)
    names = ["w-0", "w-1", "w-2"]
    crew = await kafka.consumers(3, group="app", topics="orders", instance_ids=names)
    rebalances = len(kafka.trace.of(RebalanceStarted, group="app"))
    for number, name in enumerate(names):
        before, generation = crew[number].assigned, crew[number].generation
        crew[number].leave("a new version")
        await kafka.settle()
        assert crew[number].has_left
        await kafka.clock.advance(40)  # the session is 45 s
        (crew[number],) = await kafka.consumers(1, group="app", topics="orders", instance_ids=[name])
        assert (crew[number].assigned, crew[number].generation) == (before, generation)
        kafka.trace.of(StaticMemberReplaced, instance_id=name, rebalances=False).one()
    kafka.trace.of(RequestReceived, api="LeaveGroup").none()
    assert len(kafka.trace.of(RebalanceStarted, group="app")) == rebalances


async def test_a_restart_that_takes_too_long_is_two_rebalances(kafka: Cluster) -> None:
    """confluentinc/librdkafka#2525 "Kip 345: Static group membership"

    The drawback: until its session times out, no other member reads the partitions of a static member that does not come
    back.

    Right: after the session timeout, and not before, the others get its partitions; when it is back, it gets partitions
    again in a second rebalance.
    """
    await kafka.create_topic("orders", 4)
    a, b = await kafka.consumers(2, group="app", topics="orders", instance_ids=["w-0", "w-1"])
    before = a.generation
    b.leave()
    gone_ms = kafka.clock.now_ms()
    await kafka.clock.advance(40)
    assert len(a.assigned) == 2
    await kafka.clock.advance(10)
    assert len(a.assigned) == 4
    out = kafka.trace.of(MemberRemoved, group="app", how=Departure.SESSION_OVER).one()
    assert 40_000 <= out.at_ms - gone_ms <= 45_000
    (back,) = await kafka.consumers(1, group="app", topics="orders", instance_ids=["w-1"])
    assert (len(a.assigned), len(back.assigned), a.generation) == (2, 2, before + 2)


async def test_a_static_member_is_missing_and_given_its_share(kafka: Cluster) -> None:
    """apache/kafka#6666 "KAFKA-8220 & KIP-345 part-3: Avoid kicking out members through rebalance timeout"

    A member joins while a static member restarts. At the rebalance timeout the static one was removed like a dynamic one,
    and its return was one more rebalance.

    Right: at the rebalance timeout a static member stays in the group and is assigned partitions. It is removed only when
    its session times out.
    """
    await kafka.create_topic("orders", 2)
    times: dict[str, Any] = {"session_timeout_ms": 300_000, "rebalance_timeout_ms": 20_000}
    a = kafka.manual_member("app", "orders", **times)
    away = kafka.manual_member("app", "orders", instance_id="w", **times)
    await together(kafka, a, away)
    leading = a.join()
    await kafka.clock.advance(19)
    assert not leading.done()
    await kafka.clock.advance(1)
    await gather(leading)
    await gather(a.sync())
    assert len(a.assigned) == 1  # the other one is kept for w
    back = kafka.manual_member("app", "orders", instance_id="w", **times)
    await back.rejoin()
    assert back.generation == a.generation
    assert a.assigned | back.assigned == {P0, P1}
    assert await a.heartbeat() == E.NONE


async def test_a_static_member_is_back_with_another_timeout(kafka: Cluster) -> None:
    """apache/kafka#12308 "KAFKA-14009: Rebalance timeout should be updated when static member rejoins"

    A user gave his static members a smaller timeout because a rebalance took five minutes. He restarted them one by one,
    which causes no rebalance, and the coordinator kept the old timeout.

    Right: the new timeouts of a static member that is back apply from the next rebalance on.
    """
    await kafka.create_topic("orders", 2)
    a = kafka.manual_member("app", "orders", session_timeout_ms=900_000, rebalance_timeout_ms=10_000)
    old = kafka.manual_member(
        "app", "orders", instance_id="w", session_timeout_ms=900_000, rebalance_timeout_ms=300_000
    )
    await together(kafka, a, old)
    back = kafka.manual_member(
        "app", "orders", instance_id="w", session_timeout_ms=900_000, rebalance_timeout_ms=10_000
    )
    assert (await back.join()).generation_id == 2  # no rebalance
    leading = a.join()
    await kafka.clock.advance(9)
    assert not leading.done()
    await kafka.clock.advance(1)
    assert (await leading).generation_id == 3
    assert len((await kafka.group("app").describe()).members) == 2


async def test_a_replacement_survives_the_coordinator(kafka: Cluster) -> None:
    """apache/kafka#9270 "KAFKA-10284: Group membership update due to static member rejoin should be persisted"
    confluentinc/confluent-kafka-go#494 "Consumer with static membership is not able to Rejoin after broker restart in k8s
    environment"

    A static member was replaced while the group was Stable, and the change was kept in memory only. When the coordinator
    moved, the old member id was valid again, and the running member was fenced.

    Right: the coordinator stores the group before it responds to the new member's JoinGroup, so the next coordinator has
    the current member id.
    """
    await kafka.create_topic("orders", 1)
    elder, younger = (kafka.manual_member("app", "orders", instance_id="w") for _ in range(2))
    await elder.rejoin()
    held = kafka.hold_append(group="app")
    joining = younger.join()
    await held.wait()
    assert not joining.done()
    held.release()
    await gather(joining)
    await gather(younger.sync())
    await kafka.group("app").unload_coordinator()
    await kafka.group("app").load_coordinator()
    assert await younger.heartbeat() == E.NONE
    assert await elder.heartbeat() == E.FENCED_INSTANCE_ID


async def test_a_late_join_without_an_id_fences_its_own_sender(kafka: Cluster) -> None:
    """apache/kafka#23266 "KAFKA-20985: Keep static member id when LeaveGroup is suppressed"
    apache/kafka#23542 "Fix static members being fenced by their own instance id"

    A lone static consumer unsubscribes. It sends no LeaveGroup, as it should, but it forgets its member id. Its next
    JoinGroup is delayed in the network, a retry succeeds, and then the first one arrives: that looks like another process
    with the same instance id, and the running member is fenced, which is fatal.

    Right: the coordinator cannot tell the difference. A client that did not send LeaveGroup keeps its member id, so a late
    JoinGroup with that id comes from the same member.
    """
    await kafka.create_topic("orders", 1)
    a = kafka.manual_member("app", "orders", instance_id="w")
    await a.rejoin()
    mine = a.member_id

    late = kafka.faults.when("JoinGroup").hold()
    lost = a.join()
    await late.wait()
    await a.rejoin()
    late.release()
    await gather(lost)
    assert (a.member_id, await a.heartbeat()) == (mine, E.NONE)  # one generation more, and no harm done
    await a.rejoin()

    a.member_id = ""
    late = kafka.faults.when("JoinGroup").hold()
    lost = a.join()
    await late.wait()
    await gather(a.join())
    mine = a.member_id
    assert await a.heartbeat() == E.NONE
    late.release()
    await lost
    a.member_id = mine
    assert await a.heartbeat() == E.FENCED_INSTANCE_ID


async def test_the_younger_of_two_with_one_name_stays(cluster: RemoteCluster, app: str, orders: str) -> None:
    """twmb/franz-go#931 "static membership and InstanceID"
    confluentinc/librdkafka#2635 "Static consumer fencing and fatal consumer errors"

    The same `group.instance.id` is configured twice: in a replica set, or in two threads. The older member is fenced. If
    its client does not treat that as fatal and joins with an empty member id, the two fence each other for ever.

    Right: the newer member takes over, in the same generation and with the same partitions. Each request of the older one
    gets FENCED_INSTANCE_ID; its client raises that error and stops.
    """
    await cluster.create_topic(orders, 2)
    elder, younger = (cluster.manual_member(app, orders, instance_id="w-1") for _ in range(2))
    await elder.rejoin()
    await gather(younger.join())
    await gather(younger.sync())
    assert (younger.generation, younger.assigned) == (elder.generation, elder.assigned)
    assert await elder.heartbeat() == E.FENCED_INSTANCE_ID
    assert await elder.commit({(orders, 0): 1}) == {(orders, 0): E.FENCED_INSTANCE_ID}
    assert (await elder.sync()).error_code == E.FENCED_INSTANCE_ID
    assert (await elder.join()).error_code == E.FENCED_INSTANCE_ID
    assert await elder.leave() == E.FENCED_INSTANCE_ID
    assert await younger.heartbeat() == E.NONE
    assert await younger.commit({(orders, 0): 2}) == {(orders, 0): E.NONE}


@pytest.mark.slow
async def test_a_waiting_member_is_fenced(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#6899 "KAFKA-8500: static member rejoin should always update member.id"

    Member ids were replaced only while a group was Stable. Of two members that joined with one instance id during a
    rebalance both got a response, and both read the same partitions.

    Right: the member that waits in JoinGroup gets FENCED_INSTANCE_ID at once, and the new one takes its place.
    """
    await cluster.create_topic(orders, 3)
    a, elder, c = (cluster.manual_member(app, orders, instance_id=name) for name in (None, "w", None))
    await together(cluster, a, elder, c)
    leading = a.join()
    await cluster.group(app).wait_rebalancing()
    waiting = elder.join()
    assert await elder.heartbeat() == E.REBALANCE_IN_PROGRESS
    younger = cluster.manual_member(app, orders, instance_id="w")
    replacing = younger.join()
    assert (await waiting).error_code == E.FENCED_INSTANCE_ID
    assert not leading.done()  # c is missing
    await gather(leading, c.join(), replacing)
    await gather(*[each.sync() for each in (c, younger, a)])
    assert len(a.assigned | c.assigned | younger.assigned) == 3
    assert len(younger.assigned) == 1


async def test_a_replacement_while_the_leader_assigns(cluster: RemoteCluster, app: str, orders: str) -> None:
    """apache/kafka#8405 "KAFKA-9801: Still trigger rebalance when static member joins in CompletingRebalance phase"

    The leader's assignment contained the member id that had been replaced meanwhile. The new member, with another id, got
    no partitions.

    Right: a replacement during the sync phase restarts the rebalance. The SyncGroup of the replaced member gets
    FENCED_INSTANCE_ID, that of the leader REBALANCE_IN_PROGRESS.
    """
    await cluster.create_topic(orders, 2)
    a, elder = cluster.manual_member(app, orders), cluster.manual_member(app, orders, instance_id="w")
    await joined(cluster, a, elder)
    syncing = elder.sync()
    younger = cluster.manual_member(app, orders, instance_id="w")
    replacing = younger.join()
    assert (await syncing).error_code == E.FENCED_INSTANCE_ID
    assert (await a.sync()).error_code == E.REBALANCE_IN_PROGRESS
    await gather(a.join(), replacing)
    await gather(younger.sync(), a.sync())
    assert len(younger.assigned) == 1


async def test_nobody_notices_who_is_back_at_once(cluster: RemoteCluster, app: str, orders: str) -> None:
    """confluentinc/librdkafka#2525 "Kip 345: Static group membership"
    robinhood/aiokafka#26 "Don't send leave request when running in KIP-345"

    The rolling restart again, on any broker: members with the same instance ids restart one after the other, the leader
    among them.

    Right: all members have the same partitions as before, in the same generation.
    """
    await cluster.create_topic(orders, 4)
    names = ["w-0", "w-1"]
    crew = await cluster.consumers(2, group=app, topics=orders, instance_ids=names)
    before = [(member.generation, member.assigned) for member in crew]
    back: list[AutoMember] = []
    for name in names:
        crew[len(back)].leave("a new version")
        await cluster.wait_until(
            lambda: all(each.has_left for each in crew[: len(back) + 1]), f"{name} should have closed"
        )
        back.extend(await cluster.consumers(1, group=app, topics=orders, instance_ids=[name]))
    assert [(member.generation, member.assigned) for member in back] == before
