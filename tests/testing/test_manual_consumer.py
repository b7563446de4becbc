"""A member of a consumer group of which the test sends every heartbeat."""

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import Cluster, WaitTimeoutError

pytestmark = pytest.mark.asyncio
ORDERS = frozenset(("orders", number) for number in range(4))


async def test_partitions_move_heartbeat_by_heartbeat() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("app", "orders")
        assert repr(a).startswith("<ManualConsumer app-1 ")
        assert repr(a).endswith(" epoch=0>")
        joined = await a.join()
        assert (joined.error_code, joined.member_id, a.epoch) == (0, a.member_id, 2)
        assert a.assigned == ORDERS
        await b.join()
        assert (b.epoch, b.assigned) == (3, frozenset())
        await a.heartbeat()
        assert (a.epoch, len(a.assigned)) == (2, 2)
        assert (await b.heartbeat()).assignment is None
        await a.acknowledge()
        assert a.epoch == 3
        await b.heartbeat()
        assert a.assigned | b.assigned == ORDERS


async def test_it_reconciles_as_far_as_it_can_alone() -> None:
    async with Cluster(topics={"orders": 4}, clock="manual") as kafka:
        a, b = kafka.manual_consumer("app", ["orders"]), kafka.manual_consumer("app", "orders")
        await a.reconcile()
        await b.reconcile()
        assert (len(a.assigned), len(b.assigned)) == (4, 0)
        await a.reconcile()
        await b.reconcile()
        assert (len(a.assigned), len(b.assigned)) == (2, 2)
        a.epoch = 9
        with pytest.raises(AssertionError, match="FENCED_MEMBER_EPOCH: The consumer group member has a greater member"):
            await a.reconcile()


async def test_what_it_says_of_itself() -> None:
    async with Cluster(topics={"orders": 1, "ordinals": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer(
            "app",
            regex="ord.*",
            assignor="range",
            instance_id="i",
            rack_id="r",
            rebalance_timeout_ms=5_000,
            client_id="c",
        )
        await a.join()
        await kafka.clock.advance(1)
        await a.heartbeat()
        assert a.assigned == {("orders", 0), ("ordinals", 0)}
        group = kafka.core.coordinator.shard_of("app").machine.groups["app"]
        (member,) = group.members.values()  # type: ignore[attr-defined]
        told = (
            member.topic_regex,
            member.server_assignor,
            member.instance_id,
            member.rack_id,
            member.rebalance_timeout_ms,
        )
        assert told == ("ord.*", "range", "i", "r", 5_000)
        assert (a.client_id, member.client_id) == ("c", "c")
        await a.subscribe("orders")
        assert (a.topics, a.regex) == (("orders",), "")
        await kafka.clock.advance(1)
        await a.acknowledge()
        assert a.assigned == {("orders", 0)}


async def test_a_subscription_by_names_says_nothing_of_expressions() -> None:
    async with Cluster(topics={"orders": 1, "payments": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        await a.reconcile()
        await kafka.clock.advance(1)
        await a.subscribe("payments")
        assert a.regex is None
        await a.acknowledge()
        assert a.assigned == {("payments", 0)}


async def test_it_leaves_for_good_or_for_now() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a, b = kafka.manual_consumer("app", "orders"), kafka.manual_consumer("app", "orders", instance_id="one")
        await a.reconcile()
        assert (await a.leave()).member_epoch == a.epoch == -1
        await b.reconcile()
        assert (await b.leave_for_now()).member_epoch == b.epoch == -2
        again = kafka.manual_consumer("app", "orders", instance_id="one")
        await again.reconcile()
        assert again.assigned == {("orders", 0)}
        assert (await kafka.group("app").describe()).member("one").member_id == again.member_id


async def test_it_commits_as_a_member_at_its_epoch() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        await a.reconcile()
        assert await a.commit({("orders", 0): 5}) == {("orders", 0): ErrorCode.NONE}
        a.epoch -= 1
        assert await a.commit({("orders", 0): 6}) == {("orders", 0): ErrorCode.STALE_MEMBER_EPOCH}
        assert await kafka.group("app").committed("orders", 0) == 5


async def test_older_versions_are_asked_for_by_number() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        a.member_id = ""
        await a.join(version=0)
        assert len(a.member_id) == 22  # the coordinator made it
        assert (await a.heartbeat(epoch=7, version=0)).error_code == ErrorCode.FENCED_MEMBER_EPOCH


async def test_partitions_of_topics_that_are_gone_are_not_named() -> None:
    async with Cluster(topics={"orders": 1, "gone": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", ["orders", "gone"])
        await a.reconcile()
        await kafka.delete_topic("gone")
        assert ("gone", 0) in a.assigned
        assert (await a.acknowledge()).error_code == 0
        await kafka.clock.advance(1)
        await a.reconcile()
        assert a.assigned == {("orders", 0)}


async def test_one_that_vanishes_hears_nothing_any_more() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        a = kafka.manual_consumer("app", "orders")
        await a.reconcile()
        beating = a.heartbeat()
        a.vanish()
        assert beating.cancelled()
        await kafka.clock.advance(45)
        assert await kafka.group("app").state() == "Empty"


async def test_what_waits_says_which_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupcoord.testing.manual_request_sender.TIMEOUT_S", 0.01)
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        kafka.faults.when("ConsumerGroupHeartbeat").drop()
        with pytest.raises(WaitTimeoutError, match=r"ConsumerGroupHeartbeat of app-1 was not answered within 0\.01 s"):
            await kafka.manual_consumer("app", "orders").join()
