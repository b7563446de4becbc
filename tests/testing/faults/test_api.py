import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from groupcoord.cluster.assemble import Assembly
from groupcoord.core.effects import Call, Reply
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults import AsyncRule, FaultRulesFailed, Faults, HoldRule, TopicResolver, when
from groupcoord.testing.faults.rule_file import parse_rules
from groupcoord.testing.waiting import WaitTimeoutError
from tests.server.support import FakeCluster
from tests.testing.faults.support import Heartbeat, JoinGroup, World, heartbeat

LOST = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def world() -> World:
    return World()


def test_a_rule_is_installed_with_its_verb(world: World) -> None:
    beginning = world.when(Heartbeat)
    before = world.faults.rules
    rule = beginning.drop()
    assert (before, world.faults.rules) == ((), (rule,))
    assert (type(rule), rule.rule, rule.name) == (AsyncRule, when(Heartbeat).drop(), "rule 1")
    assert repr(world.faults) == "<Faults 1 rules>"


def test_a_rule_that_is_a_value_is_installed_by_hand(world: World) -> None:
    hold = world.faults.add(when(Heartbeat).hold(), "faults.yaml rule 1")
    assert isinstance(hold, HoldRule)
    assert hold.name == "faults.yaml rule 1"
    assert type(world.faults.add(when(Heartbeat).drop())) is AsyncRule


def test_a_node_is_known_by_its_id(world: World) -> None:
    assert world.faulty.broker == world.node.config.node_id == 1
    assert world.faults.layer(FakeCluster(), broker=7).broker == 7
    known = TopicResolver(lambda _: "orders")
    assert world.faults.layer(FakeCluster(), topics=known).broker == 1


def test_one_set_of_rules_for_several_brokers(world: World) -> None:
    other = world.faults.layer(world.node, broker=2)
    world.when(Heartbeat, broker=2).refuse(LOST)
    call = world.heartbeat().call
    (_, reply) = other.handle(call, heartbeat(), world.now)
    assert reply.response.error_code == LOST  # type: ignore[union-attr]


def test_the_end(world: World) -> None:
    world.faults.check()
    world.when(Heartbeat).drop()
    assert len(world.faults.unused()) == 1
    with pytest.raises(FaultRulesFailed):
        world.faults.check()


def test_an_explanation(world: World) -> None:
    rule = world.when(Heartbeat, client_id="d", version=3).drop().rule
    assert world.faults.explain(heartbeat()).splitlines() == [
        f"Heartbeat v4 from a client without id at 0 ms, broker 0: {heartbeat()!r}",
        f"  rule 1, {rule}: no: it names no client_id, and not 'd'; version is 4, not 3",
    ]
    assert world.faults.explain(heartbeat(), client_id="d", version=3, broker=2).endswith(": yes")


def living_in(brokers: ThreadPoolExecutor, world: World) -> Faults:
    """Rules for ``world`` whose brokers live in a thread of their own."""
    faults = Faults(now_ms=lambda: world.now, run=lambda code: brokers.submit(code).result())
    world.faulty = faults.layer(world.node)
    world.faulty.execute_effects = world.execute_effects
    return faults


class TestHold:
    def test_arrivals_are_awaited(self, world: World) -> None:
        async def story() -> None:
            hold = world.when(Heartbeat).hold().times(2)
            world.heartbeat("a")
            (first,) = await hold.wait()
            waiting = asyncio.ensure_future(hold.wait(2))
            await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
            world.heartbeat("b")
            assert await waiting == (first, hold.waiting[1])
            hold.release()
            assert await hold.wait(2) == ()  # they were there

        asyncio.run(story())

    def test_what_arrives_when_it_has_been_told_changes_nothing(self, world: World) -> None:
        async def story() -> None:
            hold = world.when(Heartbeat).hold().times(3)
            waiting = asyncio.ensure_future(hold.wait())
            await asyncio.wait([waiting], timeout=0)
            for member in "abc":
                world.heartbeat(member)
            assert len(await waiting) == 3

        asyncio.run(story())

    def test_none_comes(self, world: World) -> None:
        async def story() -> None:
            hold = world.when(Heartbeat, member="a").hold()
            world.heartbeat("b")
            with pytest.raises(WaitTimeoutError) as failed:
                await hold.wait(timeout=0)
            assert str(failed.value).splitlines() == [
                "rule 1: 0 of 1 were held within 0 s: when(Heartbeat, member='a').hold()",
                "  the nearest request:",
                f"    Heartbeat v4 from 'c' at 0 ms, broker 1: {heartbeat('b')!r}",
                "      member is 'b', not 'a'",
            ]

        asyncio.run(story())

    def test_a_thread_waits(self, world: World) -> None:
        with ThreadPoolExecutor(1) as brokers, ThreadPoolExecutor(1) as elsewhere:
            hold = living_in(brokers, world).sync().when(Heartbeat).hold()
            waiting = elsewhere.submit(hold.wait)
            brokers.submit(world.heartbeat).result()
            assert waiting.result() == hold.waiting
            with pytest.raises(WaitTimeoutError, match="1 of 2 were held within 0 s"):
                hold.wait(2, timeout=0)

    def test_it_ends_with_its_block(self, world: World) -> None:
        with world.when(Heartbeat).hold() as hold:
            asked = [world.heartbeat(), world.heartbeat()]
            assert hold.arrivals == 2
            assert all(asking.is_open for asking in asked)
        assert not any(asking.is_open for asking in asked)
        assert not world.heartbeat().is_open

    def test_a_callback_is_told(self, world: World) -> None:
        hold = world.when(JoinGroup).hold().times(2)
        seen: list[tuple[int, int]] = []
        end = hold.on_change(lambda: seen.append((hold.uses, hold.arrivals)))
        world.join()
        end()
        world.join()
        assert seen == [(1, 0), (1, 1)]

    def test_all_is_done_where_the_brokers_live(self) -> None:
        there: list[int] = []

        def run(code: Callable[[], object]) -> None:
            def noted() -> None:
                there.append(threading.get_ident())
                code()

            with ThreadPoolExecutor(1) as brokers:
                brokers.submit(noted).result()

        world = World()
        faults = Faults(now_ms=lambda: world.now, run=run)
        world.faulty = faults.layer(world.node)
        world.faulty.execute_effects = world.execute_effects
        hold = faults.sync().when(Heartbeat).hold()
        asking = world.heartbeat()
        hold.wait()
        hold.release()
        assert not asking.is_open
        assert len(there) == 4  # installed, listened, listened no more, released
        assert threading.get_ident() not in there


class TestWaitingForARule:
    def test_it_acts(self, world: World) -> None:
        async def story() -> None:
            rule = world.when(Heartbeat).refuse(LOST).times(2)
            world.heartbeat()
            await rule.acted(timeout=0)
            waiting = asyncio.ensure_future(rule.acted(2))
            await asyncio.wait([waiting], timeout=0)
            assert not waiting.done()
            world.heartbeat()
            await waiting
            assert [each.uses for each in world.faults.rules] == [2]

        asyncio.run(story())

    def test_it_does_not_act_in_time(self, world: World) -> None:
        async def story() -> None:
            rule = world.when(Heartbeat).refuse(LOST).always()
            world.heartbeat()
            with pytest.raises(WaitTimeoutError) as failed:
                await rule.acted(2, timeout=0)
            assert str(failed.value).splitlines() == [
                "rule 1: it acted 1 of 2 times within 0 s: when(Heartbeat).refuse('NOT_COORDINATOR').always()",
                "  no other Heartbeat came; what came: nothing",
            ]

        asyncio.run(story())

    def test_a_thread_waits(self, world: World) -> None:
        with ThreadPoolExecutor(1) as brokers, ThreadPoolExecutor(1) as elsewhere:
            rule = living_in(brokers, world).sync().when(Heartbeat).drop()
            waiting = elsewhere.submit(rule.acted)
            brokers.submit(world.heartbeat).result()
            waiting.result()
            with pytest.raises(WaitTimeoutError, match="it acted 1 of 2 times within 0 s"):
                rule.acted(2, timeout=0)


TEXT = """\
- {when: Heartbeat, do: refuse, code: NOT_COORDINATOR}
- {when: Heartbeat, member: m-9, do: drop}
- {when: JoinGroup, do: drop, optional: true}
"""


def test_the_log_says_which_rules_there_are_and_which_never_acted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world = World()
    assembly = Assembly(world.node)
    faults = Faults(now_ms=lambda: world.now)
    faults.add_layer(assembly)
    faults.add_named(parse_rules(TEXT, "dir/faults.yaml"))
    assert caplog.messages == [
        "faults.yaml rule 1: when(Heartbeat).refuse('NOT_COORDINATOR')",
        "faults.yaml rule 2: when(Heartbeat, member='m-9').drop()",
        "faults.yaml rule 3: when(JoinGroup).drop().optional()",
    ]
    call = Call(1, 2, Heartbeat, 4, "c", "/127.0.0.1")
    _, reply = assembly.served.handle(call, heartbeat(), world.now)
    assert isinstance(reply, Reply)
    assert reply.response.error_code == ErrorCode.NOT_COORDINATOR
    caplog.clear()
    faults.log_unused()
    assert caplog.messages == [
        "faults.yaml rule 2 never acted: when(Heartbeat, member='m-9').drop()",
        "  the nearest request:",
        f"    Heartbeat v4 from 'c' at 0 ms, broker 1: {heartbeat()!r}",
        "      member is 'm-1', not 'm-9'",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
