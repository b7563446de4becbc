"""Members that live by themselves."""

import asyncio

import pytest

from groupcoord.assignors import (
    Assignment,
    FunctionAssignor,
    GroupSubscription,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import AutoMember, Cluster, WaitTimeoutError
from groupcoord.testing.trace import RequestReceived

pytestmark = pytest.mark.asyncio

ORDERS = {"orders": 4, "payments": 2}


async def test_cooperative_members_keep_what_they_have() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders", assignors="cooperative-sticky")
        kept = sorted(a.assigned)
        (b,) = await kafka.consumers(1, group="app", topics="orders", assignors=["cooperative-sticky"])
        await kafka.clock.advance(10)
        assert a.rebalance_callbacks[0] == ("assigned", tuple(kept))
        assert a.rebalance_callbacks[1] == ("revoked", tuple(sorted(b.assigned)))
        assert set(a.rebalance_callbacks[2:]) == {("assigned", ())}
        assert a.assigned | b.assigned == set(kept)
        assert len(b.assigned) == 2
        assert "app-1" in repr(a)
        assert a.is_stable


async def test_leaving_commits_what_was_consumed() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics=["orders"])
        mine = min(b.assigned)
        b.consumed[mine] = 7
        b.leave("enough")
        await kafka.settle()
        assert b.has_left
        assert await kafka.group("app").committed(*mine) == 7
        await kafka.clock.advance(3)
        assert len(a.assigned) == 4
        a.leave()
        await kafka.settle()
        assert a.has_left
        assert a.rebalance_callbacks[-1][0] == "revoked"


async def test_a_commit_says_what_came_of_it() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        found: list[dict[tuple[str, int], ErrorCode]] = []
        a.commit({("orders", 0): 3}, found.append)
        a.commit({}, found.append)
        await kafka.settle()
        assert found == [{}, {("orders", 0): ErrorCode.NONE}]
        kafka.faults.when("OffsetCommit").disconnect()
        a.commit({("orders", 0): 4}, found.append)
        await kafka.settle()
        assert len(found) == 2
        a.commit({("orders", 0): 5})
        await kafka.settle()
        assert await kafka.group("app").committed("orders", 0) == 5


async def test_a_zombie_finds_that_its_partitions_have_gone() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        before = b.generation
        kafka.faults.when("Heartbeat", client_id="app-2").delay_answer(100_000)
        await kafka.clock.advance(3)
        b.pause()
        await kafka.clock.advance(120)
        assert len(a.assigned) == 4
        b.resume()
        await kafka.clock.advance(10)
        assert "lost" in [what for what, _ in b.rebalance_callbacks]
        assert b.generation > before
        assert len(b.assigned) == 2


async def test_a_busy_user_is_out_after_the_poll_interval() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders", max_poll_interval_ms=10_000)
        b.be_busy()
        await kafka.clock.advance(20)
        assert len(a.assigned) == 4
        b.poll()
        await kafka.clock.advance(10)
        assert len(b.assigned) == 2


async def test_another_subscription_rebalances_the_group() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        a.subscribe("orders", "payments")
        await kafka.clock.advance(1)
        assert len(a.assigned) == 6


async def test_static_members_have_their_names() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.consumers(2, group="app", topics="orders", instance_ids=["one", "two"])
        assert {member.instance_id for member in (await kafka.group("app").describe()).members} == {"one", "two"}


async def test_lost_answers_and_closed_connections_are_survived() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        kafka.faults.when("FindCoordinator").disconnect()
        kafka.faults.when("JoinGroup").drop()
        (a,) = await kafka.consumers(1, group="app", topics="orders", request_timeout_ms=5_000)
        assert len(a.assigned) == 4
        kafka.faults.when("Heartbeat").corrupt("garbage")
        kafka.faults.when("Heartbeat", nth=3).delay_answer(20_000)
        await kafka.clock.advance(40)
        assert a.is_stable


async def test_who_leaves_while_it_joins_wants_no_answer_any_more() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.consumers(1, group="app", topics="orders")
        joining = asyncio.ensure_future(kafka.consumers(1, group="app", topics="orders"))
        await kafka.group("app").wait_rebalancing()
        _, b = kafka._engine.scheduler
        b.leave()
        await kafka.settle()
        assert b.has_left
        joining.cancel()


async def test_an_assignor_that_fails_is_told_to_the_user() -> None:
    def fails(_: GroupSubscription) -> Assignment:
        raise ZeroDivisionError

    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        with pytest.raises(WaitTimeoutError):
            await kafka.consumers(1, group="app", topics="orders", assignors=[FunctionAssignor("broken", fails)])
        (member,) = kafka._engine.scheduler
        assert "broken" in str(member.errors[0])


@pytest.mark.slow
async def test_members_on_a_clock_that_runs_act_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(topics=ORDERS, clock="fast", speed=100.0) as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        heard = len(kafka.trace)

        def heard_twice() -> bool:
            return len(kafka.trace) > heard + 4

        await kafka._engine.waiting.until(heard_twice, "it should heartbeat", lambda: kafka.trace.text(limit=5))
        assert isinstance(a, AutoMember)


async def test_a_leader_notices_new_partitions_after_a_while() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        await kafka.add_partitions("orders", 2)
        await kafka.clock.advance(290)
        assert len(a.assigned | b.assigned) == 4
        await kafka.clock.advance(20)
        assert len(a.assigned) == len(b.assigned) == 3
        await kafka.delete_topic("orders")
        for member in (a, b):
            member.refresh_metadata()
        await kafka.clock.advance(5)
        assert a.assigned == b.assigned == frozenset()


async def test_a_topic_that_is_missing_is_asked_for_every_second() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics=["orders", "later"], metadata_max_age_ms=60_000)
        kafka.faults.when("Metadata").disconnect()
        await kafka.clock.advance(3)
        assert len(kafka.trace.of(RequestReceived, api="Metadata")) == 4
        assert repr(a).endswith("owns 4>, topics that do not exist: later>")
        await kafka.create_topic("later", 3)
        await kafka.clock.advance(1)
        assert len(a.assigned) == 7
        assert repr(a).endswith("owns 7>>")


async def test_who_has_ended_asks_for_nothing() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders", instance_ids=["one", "two"])
        hold = kafka.faults.when("Metadata").hold().times(2)
        for member in (a, b):
            member.refresh_metadata()
        await hold.wait(2)
        a.leave()
        await kafka.group("app").fence_member("two")
        await kafka.clock.advance(5)
        hold.release()
        await kafka.settle()
        assert (a.has_left, b.is_stable) == (True, False)
        a.refresh_metadata()
        before = len(kafka.trace.of(RequestReceived, api="Metadata"))
        await kafka.clock.advance(3_600)
        assert len(kafka.trace.of(RequestReceived, api="Metadata")) == before


async def test_metadata_that_does_not_come_is_asked_for_again() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        kafka.faults.when("Metadata").drop()  # with which the leader learns what there is to assign
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        assert len(a.assigned) == 4
        kafka.faults.when("Metadata").drop()
        await kafka.add_partitions("orders", 1)
        a.refresh_metadata()
        await kafka.clock.advance(29)
        assert len(a.assigned) == 4
        await kafka.clock.advance(5)
        assert len(a.assigned) == 5


async def test_there_are_as_many_instance_ids_as_members() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        with pytest.raises(ValueError, match="2 members have 1 instance ids"):
            await kafka.consumers(2, group="app", topics="orders", instance_ids=["one"])
        with pytest.raises(ValueError, match="each member has its own"):
            await kafka.consumers(2, group="app", topics="orders", instance_ids=["one", "one"])
        with pytest.raises(TypeError, match="instance_ids='ab': the instance id of each member"):
            await kafka.consumers(2, group="app", topics="orders", instance_ids="ab")


async def test_offsets_and_topics_of_a_member_have_their_shapes() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        with pytest.raises(TypeError, match=r"a partition is a topic and a number, such as .*, not 'orders'"):
            a.commit({"orders": 5})  # type: ignore[dict-item]
        with pytest.raises(TypeError, match=r"takes names of topics, not .'orders'."):
            a.subscribe(["orders"])  # type: ignore[arg-type]
        for member in kafka.manual_member("app", "orders"), kafka.manual_consumer("other", "orders"):
            with pytest.raises(TypeError, match="the offset of orders-0 is a number"):
                member.commit({("orders", 0): "5"})  # type: ignore[dict-item]
