"""Why a consumer group is at an epoch, in words."""

import pytest

from groupcoord.testing import Cluster, ManualConsumer, Trace

pytestmark = pytest.mark.asyncio


def cluster(partitions: int = 4) -> Cluster:
    return Cluster(topics={"orders": partitions}, clock="manual")


def members(kafka: Cluster, names: str = "ab") -> list[ManualConsumer]:
    return [kafka.manual_consumer("app", "orders", client_id=name) for name in names]


async def test_a_newcomer_waits_for_what_another_has() -> None:
    async with cluster() as kafka:
        a, b = members(kafka)
        await a.reconcile()
        await kafka.clock.advance(3)
        await b.join()
        await kafka.clock.advance(3)
        await a.heartbeat()
        await kafka.clock.advance(2)
        await a.acknowledge()
        await kafka.clock.advance(1)
        await b.heartbeat()
        assert kafka.trace.why("app", epoch=2) == (
            "epoch 2: member a came at 0.0 s; uniform computed the target assignment at 0.0 s: orders-0, orders-1, orders-2 "
            "and orders-3 go to a; a was at epoch 2 at 0.0 s"
        )
        assert kafka.trace.why("app") == (
            "epoch 3: member b came at 3.0 s; uniform computed the target assignment at 3.0 s: orders-2 and orders-3 go from "
            "a to b; b waited for orders-2 and orders-3 from 3.0 s until 9.0 s; a still had orders-2 and orders-3 until 8.0 s, "
            "and was told at 6.0 s to give them back; a and b were at epoch 3 at 9.0 s"
        )


async def test_a_session_ran_out_while_one_still_had_something() -> None:
    async with cluster(3) as kafka:
        a, b, c = members(kafka, "abc")
        for member in (a, b, c, a, b, c):
            await member.reconcile()
        await kafka.clock.advance(44)
        await a.heartbeat()
        await b.heartbeat()
        await kafka.clock.advance(1)
        assert kafka.trace.why("app") == (
            "epoch 5: member c's session of 45,000 ms ran out at 45.0 s, last heartbeat at 0.0 s; "
            "no target assignment was computed for it yet"
        )
        await a.heartbeat()
        assert kafka.trace.why("app").endswith("; b has not got there yet")
        await b.heartbeat()
        taken = "goes from c to a" if len(a.assigned) == 2 else "goes from c to b"
        assert taken in kafka.trace.why("app")
        assert kafka.trace.why("app").endswith("; a and b were at epoch 5 at 45.0 s")


async def test_one_that_does_not_give_back_is_removed() -> None:
    async with cluster(2) as kafka:
        a, b = members(kafka)
        await a.reconcile()
        await b.join()
        await a.heartbeat()
        await kafka.clock.advance(30)
        await a.heartbeat()
        await b.heartbeat()
        await kafka.clock.advance(30)
        told = kafka.trace.why("app", epoch=3)
        assert (
            "; a still had orders-1 until 60.0 s, when it was removed, and was told at 0.0 s to give it back; " in told
        )
        assert "; b waited for orders-1 from 0.0 s to the end of the trace; " in told
        assert told.endswith("; b has not got there yet")
        assert kafka.trace.why("app", epoch=4).startswith(
            "epoch 4: member a did not give back what it had to within 60,000 ms, by 60.0 s; "
        )
        await b.heartbeat()
        assert kafka.trace.why("app", epoch=3).endswith(
            "; the next target assignment came at 60.0 s, before b got there"
        )


async def test_members_leave() -> None:
    async with cluster(2) as kafka:
        (a,) = members(kafka, "a")
        await a.reconcile()
        await kafka.create_topic("payments", 1)
        b = kafka.manual_consumer("app", "payments", client_id="b")
        await b.reconcile()
        await b.leave()
        await a.leave()
        told = kafka.trace.why("app", epoch=3)
        assert told.endswith("; b was at epoch 3 at 0.0 s")
        assert kafka.trace.why("app") == (
            "epoch 5: member a left at 0.0 s; no target assignment was computed for it yet"
        )


async def test_nobody_is_left() -> None:
    async with cluster(2) as kafka:
        a, b = members(kafka)
        await a.reconcile()
        await b.join()
        await a.heartbeat()
        await a.leave()
        await b.leave()
        assert kafka.trace.why("app", epoch=3).endswith("; nobody is left who could get there")


async def test_other_subscriptions_and_expressions() -> None:
    async with cluster(1) as kafka:
        await kafka.create_topic("ordinals", 1)
        a = kafka.manual_consumer("app", "orders", client_id="a", instance_id="one")
        await a.reconcile()
        await a.subscribe("orders", "ordinals")
        assert kafka.trace.why("app").startswith("epoch 3: member one subscribed to orders and ordinals at 0.0 s; ")
        await a.subscribe(regex="ord.*")
        assert kafka.trace.why("app", epoch=4).startswith(
            "epoch 4: member one subscribed to what ord.* matches at 0.0 s; "
        )
        await kafka.clock.advance(1)
        assert kafka.trace.why("app").startswith("epoch 5: ord.* was found to match orders and ordinals at ")
        await a.heartbeat()
        await a.subscribe()
        assert "subscribed to nothing at 1.0 s; " in kafka.trace.why("app")
        assert "orders-0 and ordinals-0 of one go to nobody; " in kafka.trace.why("app")
        assert kafka.trace.why("app", epoch=2).startswith("epoch 2: static member one came at 0.0 s; ")


async def test_a_topic_grew() -> None:
    async with cluster(1) as kafka:
        (a,) = members(kafka, "a")
        await a.reconcile()
        await kafka.add_partitions("orders", 7)
        await a.heartbeat()
        assert kafka.trace.why("app") == (
            "epoch 3: topics that it subscribes to changed, noticed at 0.0 s; uniform computed the target assignment at 0.0 s: "
            "orders-1, orders-2, orders-3, orders-4, orders-5, orders-6 and 1 more go to a; a was at epoch 3 at 0.0 s"
        )


async def test_a_static_member_is_away_and_comes_back_as_another() -> None:
    async with cluster(2) as kafka:
        a = kafka.manual_consumer("app", "orders", client_id="a", instance_id="one")
        (b,) = members(kafka, "b")
        await a.reconcile()
        await kafka.clock.advance(1)
        await b.join()
        await a.leave_for_now()
        told = kafka.trace.why("app")
        assert (
            "; static member one was away from 1.0 s on, and kept what it had; one and b have not got there yet" in told
        )
        await kafka.create_topic("payments", 1)
        again = kafka.manual_consumer("app", ["orders", "payments"], client_id="a", instance_id="one")
        await again.join()
        told = kafka.trace.why("app")
        assert told.startswith("epoch 4: static member one came back as a new member (one-")
        assert ") at 1.0 s, subscribed to something else; " in told


async def test_members_of_the_classic_protocol_come_too() -> None:
    async with cluster(2) as kafka:
        (a,) = members(kafka, "a")
        await a.reconcile()
        joining = kafka.manual_member("app", "orders", client_id="old").join()
        await joining
        assert kafka.trace.why("app").startswith("epoch 3: member old came at 0.0 s by the classic protocol; ")


async def test_many_members_are_counted() -> None:
    async with cluster(8) as kafka:
        group = members(kafka, "abcdefgh")
        for member in group:
            await member.join()
        for member in (*group, *group):
            await member.reconcile()
        assert kafka.trace.why("app").endswith("; all 8 members were at epoch 9 at 0.0 s")


async def test_assignments_that_come_too_late_for_an_epoch() -> None:
    async with Cluster(
        topics={"orders": 2}, clock="manual", config={"group.consumer.assignment.interval.ms": 1_000}
    ) as kafka:
        a, b, c = members(kafka, "abc")
        await a.join()
        await b.join()
        await c.join()
        await kafka.clock.advance(1)
        await a.heartbeat()
        assert kafka.trace.why("app", epoch=3) == (
            "epoch 3: member b came at 0.0 s; no target assignment was computed for it: the next was that of epoch 4, at 1.0 s"
        )


async def test_a_target_by_which_nothing_moves() -> None:
    async with cluster(2) as kafka:
        (a,) = members(kafka, "a")
        await a.reconcile()
        b = kafka.manual_consumer("app", "nothing", client_id="b")
        await b.reconcile()
        assert ": nothing moves; " in kafka.trace.why("app")


async def test_what_the_trace_does_not_have() -> None:
    async with cluster(1) as kafka:
        (a,) = members(kafka, "a")
        await a.reconcile()
        with pytest.raises(LookupError, match=r"does not have the beginning of epoch 9 of group 'app', but that of 2$"):
            kafka.trace.why("app", epoch=9)
        with pytest.raises(
            LookupError,
            match=r"does not have the beginning of epoch 1 of group 'other', of which it knows nothing but of 'app'$",
        ):
            kafka.trace.why("other", epoch=1)


async def test_the_newest_of_a_group_that_was_classic_before_and_is_again() -> None:
    async with cluster(2) as kafka:
        old = kafka.manual_member("app", "orders", client_id="old")
        await old.rejoin()
        assert kafka.trace.why("app").startswith("generation 1: ")
        (new,) = members(kafka, "n")
        await new.join()
        assert kafka.trace.why("app").startswith("epoch 2: the group became a consumer group at 0.0 s, because ")
        assert kafka.trace.why("app", 1).startswith("generation 1: ")


async def test_a_saved_trace_explains_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("traces") / "trace.jsonl"
    async with cluster(2) as kafka:
        a, b = members(kafka)
        for member in (a, b, a, b):
            await member.reconcile()
        kafka.trace.save(path)
        assert Trace.load(path).why("app", epoch=3) == kafka.trace.why("app")
