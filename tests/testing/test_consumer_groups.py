"""Consumer groups of KIP-848 as a test sees them: views, waits, actions, what is pending, and faults."""

import asyncio

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, ManualConsumer, RemoteCluster, WaitTimeoutError, forced_actions_on_core

pytestmark = pytest.mark.asyncio
ALL = frozenset(("orders", number) for number in range(4))


async def two_members(kafka: Cluster) -> tuple[ManualConsumer, ManualConsumer]:
    """Two members that have two partitions each, at epoch 3."""
    a, b = (kafka.manual_consumer("app", "orders", client_id=name) for name in "ab")
    for member in (a, b, a, b):
        await member.reconcile()
    return a, b


async def test_a_group_on_its_way_to_the_target() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, b = (kafka.manual_consumer("app", "orders", client_id=name) for name in "ab")
        await a.join()
        await b.join()
        await a.heartbeat()
        view = await kafka.group("app").wait_rebalancing()
        assert view.text() == (
            "app Reconciling epoch=3, 2 members: a at 2 UNREVOKED_PARTITIONS, b at 3 UNRELEASED_PARTITIONS"
        )
        assert (view.type, view.epoch, view.assignment_epoch, view.protocol) == ("consumer", 3, 3, "uniform")
        seen = view.member("a")
        assert (seen.type, seen.epoch, seen.state, seen.session_timeout_ms) == (
            "consumer",
            2,
            "UNREVOKED_PARTITIONS",
            45_000,
        )
        assert seen.assigned == seen.target == a.assigned
        assert seen.revoking == ALL - a.assigned == view.member("b").target
        assert not seen.is_reconciled
        assert view.assignment == {a.member_id: a.assigned, b.member_id: frozenset()}


async def test_waiting_for_epochs_and_for_members_to_be_reconciled() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        group = kafka.group("app")
        at_three, stable = (
            asyncio.ensure_future(group.wait_epoch(3)),
            asyncio.ensure_future(group.wait_stable(2, epoch=3)),
        )
        of_b, of_all = (
            asyncio.ensure_future(group.wait_reconciled("b")),
            asyncio.ensure_future(group.wait_reconciled(epoch=3)),
        )
        a, b = await two_members(kafka)
        assert (await at_three).state == "Reconciling"
        assert (await stable).text() == "app Stable epoch=3, 2 members: a at 3, b at 3"
        assert (await of_b).member("b").assigned == b.assigned
        assert (await of_all).member("a").assigned == a.assigned
        with pytest.raises(WaitTimeoutError, match=r"group app should be reconciled to epoch 4: not within 0\.01 s"):
            await group.wait_reconciled(epoch=4, timeout=0.01)
        with pytest.raises(WaitTimeoutError, match="group app should have c, a reconciled: not within"):
            await group.wait_reconciled("c", "a", timeout=0.01)
        with pytest.raises(WaitTimeoutError, match="group app should be stable at epoch 9"):
            await group.wait_stable(epoch=9, timeout=0.01)
        with pytest.raises(WaitTimeoutError, match="group app should be at epoch 9"):
            await group.wait_epoch(9, timeout=0.01)


async def test_nobody_is_reconciled_in_a_group_without_members() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        await a.reconcile()
        await a.leave()
        assert (await kafka.group("app").wait_empty()).text() == "app Empty epoch=3, 0 members"
        with pytest.raises(WaitTimeoutError, match="should be reconciled: not within"):
            await kafka.group("app").wait_reconciled(timeout=0.01)


async def test_members_of_both_protocols() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, old = (
            kafka.manual_consumer("app", "orders", client_id="a"),
            kafka.manual_member("app", "orders", client_id="old"),
        )
        await a.reconcile()
        joining = old.join()
        await kafka.settle()
        await joining
        assert "member-sync" in [each.kind for each in kafka.clock.deadlines()]
        view = await kafka.group("app").describe()
        assert {member.client_id: member.type for member in view.members} == {"a": "consumer", "old": "classic"}
        with pytest.raises(ValueError, match="has no static member 'old'; its static members: none"):
            await kafka.group("app").fence_member("old")


async def test_a_session_ends_at_once() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, b = await two_members(kafka)
        await kafka.group("app").expire_member("b")
        assert (await b.heartbeat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await kafka.clock.advance(1)
        await a.reconcile()
        assert a.assigned == ALL
        assert kafka.trace.why("app").startswith("epoch 4: an administrator ended the membership of b at 0.0 s: ")


async def test_only_members_have_sessions_that_end() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, _ = await two_members(kafka)
        with pytest.raises(ValueError, match=f"group 'app' has no member 'x'; its members: '{a.member_id}', "):
            forced_actions_on_core.expire(kafka.core, "app", "x", kafka.clock.now_ms())


async def test_an_administrator_removes_a_member() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        _, b = await two_members(kafka)
        await kafka.group("app").remove_member("b")
        assert (await b.heartbeat()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert kafka.trace.why("app", epoch=4).startswith("epoch 4: member b was removed at 0.0 s by cluster")


async def test_a_static_member_is_fenced() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders", instance_id="one")
        await a.reconcile()
        await kafka.group("app").fence_member("one")
        assert (await a.heartbeat()).error_code == ErrorCode.FENCED_INSTANCE_ID
        seen = (await kafka.group("app").describe()).member("one")
        assert seen.member_id != a.member_id
        assert seen.assigned == ALL
        await kafka.clock.advance(45)
        assert await kafka.group("app").state() == "Empty"


async def test_no_rebalance_can_be_forced() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        await two_members(kafka)
        with pytest.raises(
            ValueError, match="'app' is a consumer group: its coordinator assigns, and its members never"
        ):
            await kafka.group("app").force_rebalance()


async def test_what_is_pending_in_words() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("app", "orders")
        await a.join()
        await b.join()
        await a.heartbeat()
        (rebalance,) = [each for each in kafka.clock.deadlines(group="app") if each.kind == "rebalance"]
        assert (rebalance.group, rebalance.member, rebalance.in_seconds) == ("app", a.member_id, 60)
        assert rebalance.reason == f"{a.member_id} in group app is removed unless it has given back what it has to"
        await kafka.clock.advance_to_next(group="app")  # the sessions
        assert (await b.join()).error_code == 0


async def test_expressions_that_are_to_be_resolved_are_pending() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", regex="ord.*")
        joining = a.join()
        seen = [each.reason for each in kafka.clock.deadlines() if each.kind == "regex"]
        assert seen == ["the regular expressions of group app are resolved"]
        await joining


async def test_faults_by_member_group_and_topic() -> None:
    async with Cluster(topics={"orders": 2, "payments": 1}, clock="manual") as kafka:
        a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("other", ["orders", "payments"])
        await a.reconcile()
        await b.reconcile()
        kafka.faults.when("ConsumerGroupHeartbeat", member=a.member_id).refuse("FENCED_MEMBER_EPOCH")
        assert (await b.heartbeat()).error_code == 0
        assert (await a.heartbeat()).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        kafka.faults.when("ConsumerGroupHeartbeat", group="other").delay(5_000)
        beating = b.heartbeat()
        assert (await a.heartbeat()).error_code == 0
        assert not beating.done()
        await kafka.clock.advance(5)
        assert (await beating).error_code == 0
        kafka.faults.when("ConsumerGroupHeartbeat", topic="payments").refuse_answer("COORDINATOR_NOT_AVAILABLE")
        assert (await a.acknowledge()).error_code == 0
        assert (await b.acknowledge()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # by the id of the topic
        kafka.faults.when("ConsumerGroupHeartbeat", member="one").disconnect()
        with pytest.raises(ConnectionResetError):
            await kafka.manual_consumer("app", "orders", instance_id="one").join()


async def test_heartbeats_that_are_lost_cost_the_session() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        await a.reconcile()
        with kafka.faults.when("ConsumerGroupHeartbeat", member=a.member_id).drop().always():
            lost = a.heartbeat()
            await kafka.clock.advance(45)
        lost.cancel()
        assert await kafka.group("app").state() == "Empty"


async def test_a_group_becomes_a_consumer_group_while_its_members_live() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        old, new = kafka.manual_member("app", "orders"), kafka.manual_consumer("app", "orders")
        await old.rejoin()
        assert (await kafka.group("app").describe()).type == "classic"
        await new.join()
        view = await kafka.group("app").wait_epoch(2)
        assert (view.type, view.epoch, view.generation) == ("consumer", 2, -1)
        assert kafka.trace.why("app").startswith(
            "epoch 2: the group became a consumer group at 0.0 s, because app-2 joined by the consumer protocol, and member "
            "app-2 came at 0.0 s; uniform computed the target assignment"
        )
        await new.leave()
        assert (await kafka.group("app").describe()).type == "classic"


async def test_clients_elsewhere_are_kept_in_the_group_while_the_test_moves_the_clock() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a, b = (remote.manual_consumer("app", "orders", client_id=name) for name in "ab")
        await a.reconcile()
        await kafka.clock.advance(100)
        await b.join()
        await kafka.clock.advance(50)  # a has news to hear, and b waits for a: they hear it by their own heartbeats
        assert (await a.heartbeat()).assignment is not None
        await a.acknowledge()
        assert (await b.heartbeat()).assignment is not None
        assert len(a.assigned) == len(b.assigned) == 2
        await b.leave()
        await kafka.settle()
        kafka._engine.heartbeat_for("app", b.member_id)  # it is gone
        await kafka.clock.advance(100, heartbeats=False)
        assert await kafka.group("app").state() == "Empty"


async def test_clients_that_left_for_now_are_not_kept() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a = remote.manual_consumer("app", "orders", instance_id="one")
        await a.reconcile()
        await a.leave_for_now()
        await kafka.clock.advance(45)
        assert await kafka.group("app").state() == "Empty"


async def test_clients_whose_heartbeats_are_lost_are_not_kept_even_if_there_is_news() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        a, b = (remote.manual_consumer("app", "orders", client_id=name) for name in "ab")
        await a.reconcile()
        kafka.faults.when("ConsumerGroupHeartbeat", member=a.member_id).drop().always().optional()
        await b.join()
        await kafka.clock.advance(46)
        assert [member.client_id for member in (await kafka.group("app").describe()).members] == ["b"]


async def test_clients_of_the_classic_protocol_are_kept_in_a_consumer_group_too() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka, RemoteCluster(kafka.address) as remote:
        new, old = remote.manual_consumer("app", "orders"), remote.manual_member("app", "orders", client_id="old")
        await new.reconcile()
        await old.join()
        await old.sync()
        await new.reconcile()
        await kafka.clock.advance(50)
        assert (await kafka.group("app").describe()).member("old").type == "classic"
