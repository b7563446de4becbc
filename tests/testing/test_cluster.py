"""The cluster in a test's own loop."""

import asyncio
import re
from typing import Any

import pytest

from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing import ClockError, Cluster, WaitTimeoutError, cluster_clock
from groupcoord.testing.faults import FaultRulesFailed

pytestmark = pytest.mark.asyncio

ORDERS = {"orders": 6}


async def test_it_listens_while_its_block_runs() -> None:
    kafka = Cluster(topics=ORDERS, clock="manual")
    assert repr(kafka) == "<Cluster not started>"
    assert not kafka.is_started
    with pytest.raises(RuntimeError, match="inside its `async with` block"):
        _ = kafka.address
    async with kafka:
        host, port = kafka.address.split(":")
        assert repr(kafka) == f"<Cluster {kafka.address}>"
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
    assert len(asyncio.all_tasks()) == 1


async def test_it_belongs_to_one_loop() -> None:
    async with Cluster(clock="manual") as kafka:
        with pytest.raises(RuntimeError, match="in another event loop than the one that uses it now"):
            await asyncio.to_thread(lambda: asyncio.run(kafka.settle()))


async def test_the_same_seed_gives_the_same_ids() -> None:
    async def ids(seed: int) -> tuple[str, str]:
        async with Cluster(topics=ORDERS, seed=seed, clock="manual") as kafka:
            member = kafka.manual_member("app", "orders")
            await member.join()
            return member.member_id, str(kafka.core.broker.topics.topic_id("orders"))

    assert await ids(1) == await ids(1) != await ids(2)


async def test_a_silent_member_is_out_when_the_test_says_so() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        assert len(a.assigned) == len(b.assigned) == 3
        b.vanish()
        await kafka.clock.advance(44.999)
        assert len((await kafka.group("app").describe()).members) == 2
        await kafka.clock.advance(0.001)
        assert [member.client_id for member in (await kafka.group("app").describe()).members] == ["app-1"]
        await kafka.clock.advance(3)
        assert a.assigned == {("orders", partition) for partition in range(6)}
        assert "app-2's session of 45,000 ms ran out at" in kafka.trace.why("app", 2)


async def test_deadlines_say_what_will_happen_and_why() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders", session_timeout_ms=10_000)
        other = kafka.manual_member("other", "orders", session_timeout_ms=8_000)
        for each in (member, other):
            await each.rejoin()
        (deadline,) = kafka.clock.deadlines(group="app")
        assert (deadline.kind, deadline.group, deadline.member) == ("session", "app", member.member_id)
        ends = f"the session of {member.member_id} in group app ends unless it is heard"
        assert str(deadline) == f"in 10.000 s {ends}"
        assert [each.group for each in kafka.clock.deadlines()] == ["other", "app"]
        everything = kafka.clock.deadlines(everything=True)
        assert {each.kind for each in everything} >= {"session", "retention"}
        assert {each.group for each in everything} == {"app", "other", ""}
        assert await kafka.list_groups() == ["app", "other"]
        assert (await kafka.clock.advance_to_next(group="app")).reason == ends
        assert await kafka.list_groups() == ["app", "other"]
        assert await kafka.group("app").state() == "Empty"
        with pytest.raises(WaitTimeoutError, match="nothing will ever happen in group app by itself"):
            await kafka.clock.advance_to_next(group="app")


async def test_time_passes_until_a_condition_holds() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.manual_member("app", "orders").rejoin()
        before = kafka.clock.now_ms()

        async def is_empty() -> bool:
            return await kafka.group("app").state() == "Empty"

        await kafka.clock.advance_until(is_empty)
        assert kafka.clock.now_ms() - before == 45_000

        def pigs_fly() -> bool:
            return False

        with pytest.raises(
            WaitTimeoutError, match=r"^pigs_fly: not within 5 s of the cluster's time\n  app Empty gen=2"
        ):
            await kafka.clock.advance_until(pigs_fly, timeout=5)
        assert kafka.clock.now_ms() - before == 50_000
        with pytest.raises(TypeError, match=r"seconds='46': a number, such as 46 or 0\.5"):
            await kafka.clock.advance("46")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="time does not go back"):
            await kafka.clock.advance(-1)


async def test_a_condition_that_never_holds_ends_after_an_hour_and_says_what_there_was() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        before = kafka.clock.now_ms()

        async def error_of(*what: str, **named: Any) -> str:
            with pytest.raises(WaitTimeoutError) as problem:
                await kafka.clock.advance_until(lambda: False, *what, **named)
            return str(problem.value)

        limit = "an hour unless timeout= says otherwise"
        assert re.search(
            rf"^the condition at test_cluster\.py:\d+: not within 3,600 s of the cluster's time \({limit}\)\n"
            "  there is no group$",
            await error_of(),
        )
        assert kafka.clock.now_ms() - before == 3_600_000
        await kafka.manual_member("app", "orders", session_timeout_ms=10_000).rejoin()
        said = await error_of("pigs fly", timeout=5)
        assert said.splitlines()[:2] == [
            "pigs fly: not within 5 s of the cluster's time",
            "  app Stable gen=1, 1 member: app-1",
        ]
        assert "  group app: sessions end unless members are heard: app-1 at 3,610.0 s" in said.splitlines()
        for number in range(22):
            await kafka.group(f"group-{number:02}").commit({("orders", 0): 1})
        assert "  and 3 more groups" in (await error_of(timeout=0)).splitlines()
        kafka.faults.when("JoinGroup").refuse("GROUP_MAX_SIZE_REACHED").always()
        with pytest.raises(WaitTimeoutError, match="1 new member of none: not within 600 s"):
            await kafka.consumers(1, group="none", topics="orders")


async def test_what_is_due_for_ever_does_not_hang_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders")
        monkeypatch.setattr(member, "next_deadline", lambda: 0)
        monkeypatch.setattr(cluster_clock, "MOST_ROUNDS", 10)
        with pytest.raises(RuntimeError, match="again and again, and time does not pass"):
            await kafka.clock.advance(1)


async def test_only_a_manual_clock_is_moved_by_the_test() -> None:
    async with Cluster(topics=ORDERS, clock="real") as kafka:
        with pytest.raises(ClockError, match="only with clock='manual' the test moves it"):
            await kafka.clock.advance(1)


@pytest.mark.slow
async def test_on_a_fast_clock_everything_happens_sooner() -> None:
    async with Cluster(topics=ORDERS, clock="fast", speed=50) as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        b.vanish()
        view = await kafka.group("app").wait_stable(members=1, generation=a.generation + 1)
        assert [(each.client_id, len(each.assigned)) for each in view.members] == [("app-1", 6)]


async def test_after_a_restart_groups_are_what_the_log_says() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        a, b = kafka.manual_member("app", "orders"), kafka.manual_member("app", "orders")
        await a.rejoin()
        await a.commit({("orders", 0): 4})
        waiting = b.join()
        await kafka.settle()
        await kafka.stop()
        for asked in (waiting, a.heartbeat()):
            with pytest.raises(ConnectionResetError, match=r"the connection of app-. was closed"):
                await asked
        await kafka.restart()
        assert (await kafka.group("app").describe()).text() == "app Stable gen=1, 1 member: app-1"
        assert await kafka.group("app").committed("orders", 0) == 4
        assert await a.heartbeat() == ErrorCode.NONE
        b.vanish()


async def test_time_passes_while_the_broker_is_down() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        await kafka.stop()
        await kafka.stop()
        await kafka.group("app").force_rebalance()
        await kafka.clock.advance(100)
        assert a.membership.coordinator is None
        await kafka.restart()
        await kafka.clock.advance(50)
        assert a.is_stable
        assert a.generation == 1  # sessions begin anew with a broker that starts
        assert (await kafka.group("app").describe()).member("app-1").assigned == a.assigned


async def test_a_group_moves_away_and_comes_back() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        await kafka.group("app").unload_coordinator()
        assert await member.heartbeat() == ErrorCode.NOT_COORDINATOR
        assert await kafka.group("app").state() == "NOT_COORDINATOR"
        await kafka.group("app").load_coordinator()
        assert await member.heartbeat() == ErrorCode.NONE


async def test_an_administrator_rebalances_and_fences() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders", instance_id="one")
        await member.rejoin()
        await kafka.group("app").force_rebalance("for fun")
        assert await member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        await member.rejoin()
        await kafka.group("app").fence_member("one")
        assert await member.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


async def test_a_session_ends_at_once_by_any_name_of_its_member() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        member = kafka.manual_member("app", "orders", client_id="victim")
        await member.rejoin()
        await kafka.group("app").expire_member("victim")
        assert await member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        with pytest.raises(LookupError, match="no member called 'victim' in app Empty gen=2, 0 members"):
            await kafka.group("app").expire_member("victim")


async def test_nobody_heartbeats_for_who_is_no_member() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        host, port = kafka.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        # ApiVersions v0: the connection is known from then on.
        writer.write(bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", "")))
        await reader.readexactly(4)
        engine = kafka._engine
        assert engine.server is not None
        (engine.transport.spoke["app", "nobody"],) = engine.server._connections.open
        before = len(kafka.trace)
        engine.heartbeat_for("app", "nobody")
        assert len(kafka.trace) == before
        writer.close()


async def test_records_can_be_put_where_a_consumer_finds_them() -> None:
    async with Cluster(clock="manual") as kafka:
        await kafka.create_topic("orders", 2)
        assert [sent.offset for sent in await kafka.produce("orders", b"a", b"b", partition=1)] == [0, 1]
        assert [sent.offset for sent in await kafka.produce("orders", b"c", partition=1, key=b"k")] == [2]
        with pytest.raises(ValueError, match="there is no orders-2: orders has 2 partitions"):
            await kafka.produce("orders", b"d", partition=2)


async def test_an_error_of_the_server_fails_the_block() -> None:
    async def story() -> None:
        async with Cluster(topics=ORDERS, clock="manual") as kafka:
            kafka.core.coordinator.handle = None  # type: ignore[method-assign,assignment]
            host, port = kafka.address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            # Heartbeat v0 of group g, generation 1, member m.
            writer.write(bytes.fromhex("0000001a 000c 0000 00000001 ffff 0001 67 00000001 0001 6d".replace(" ", "")))
            writer.write(b"\0" * 8)
            await reader.read(8)
            writer.close()

    with pytest.raises(ExceptionGroup, match="errors in the server") as raised:
        await story()
    assert isinstance(raised.value.exceptions[0], TypeError)


async def test_a_rule_that_was_not_used_fails_the_block() -> None:
    async def story(divisor: int) -> None:
        async with Cluster(clock="manual") as kafka:
            kafka.faults.when("Heartbeat").drop()
            _ = 1 / divisor

    with pytest.raises(FaultRulesFailed, match="rule 1 never acted"):
        await story(1)
    with pytest.raises(ZeroDivisionError):
        await story(0)


async def test_a_rule_without_an_action_fails_the_block() -> None:
    with pytest.raises(
        FaultRulesFailed, match=r"when\(Heartbeat, group='app'\) says nothing that is to happen: add an"
    ):
        async with Cluster() as kafka:
            kafka.faults.when("Heartbeat", group="app")


async def test_requests_gather_and_go_in_the_order_of_the_test() -> None:
    async with Cluster(topics=ORDERS, config={"group.initial.rebalance.delay.ms": 3_000}, clock="manual") as kafka:
        barrier = kafka.barrier("JoinGroup", group="app", size=2)
        a = kafka.manual_member("app", "orders", instance_id="a")
        b = kafka.manual_member("app", "orders", instance_id="b")
        joining = a.join(), b.join()
        gathered = await barrier.wait()
        assert [held.request.group_instance_id for held in gathered] == ["a", "b"]
        assert barrier.waiting == gathered
        with pytest.raises(ValueError, match=r"2 requests wait, which \[0, 0\] does not order"):
            barrier.release([0, 0])
        barrier.release([1, 0])
        await kafka.clock.advance(6)  # somebody new came during the first three
        await asyncio.gather(*joining)
        assert b.is_leader
        assert not a.is_leader


async def test_requests_that_gather_may_go_in_the_order_they_came() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        with pytest.raises(ValueError, match="size=0: a number of requests, 1 or more"):
            kafka.barrier("JoinGroup", size=0)
        barrier = kafka.barrier("JoinGroup", size=1)
        member = kafka.manual_member("app", "orders", instance_id="a")
        joining = member.join()
        await barrier.wait()
        barrier.release()
        assert (await joining).error_code == ErrorCode.NONE
        assert kafka.faults.unused() == []


async def test_topics_grow_and_go() -> None:
    async with Cluster(topics=ORDERS, clock="manual") as kafka:
        await kafka.add_partitions("orders", 2)
        member = kafka.manual_member("app", "orders")
        await member.rejoin()
        assert len(member.assigned) == 8
        await member.commit({("orders", 7): 1})
        await kafka.delete_topic("orders")
        assert await kafka.group("app").offsets() == {}
        await kafka.create_topic("orders")
        await kafka.stop()
        with pytest.raises(ConnectionResetError, match="DeleteTopicsRequest: the cluster was stopped"):
            await kafka.delete_topic("orders")
