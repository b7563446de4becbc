"""Rules that do something to brokers, when a request comes, when it is handled, or when it is answered."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import groupcoord as gc
from groupcoord.broker.events import LogTruncated
from groupcoord.broker.leader_election_and_isr import PartitionState
from groupcoord.protocol.messages import MetadataRequest
from groupcoord.testing.faults import (
    FaultInjected,
    FaultRulesFailed,
    NamedRule,
    Rulebook,
    RuleFileError,
    RuleProblems,
    when,
)
from groupcoord.testing.faults.layer import FaultLayer
from groupcoord.testing.faults.rule_file import parse_rules
from tests.testing.faults.support import Produce, World
from tests.testing.faults.support import produce as empty_produce
from tests.testing.producing import outcome, produce

pytestmark = pytest.mark.asyncio
SESSION_S = 9.0


def trio() -> gc.Cluster:
    config = {"default.replication.factor": 3, "offsets.topic.num.partitions": 3}
    return gc.Cluster(brokers=3, clock="manual", topics={"orders": 1}, config=config)


def state(kafka: gc.Cluster) -> PartitionState:
    return kafka.core.broker.topics["orders"].metadata.partitions[0]


def ends(kafka: gc.Cluster) -> dict[int, int]:
    """Where the copy of each broker ends."""
    return {broker: log.log_end_offset for broker, log in kafka.core.broker.topics["orders"].copies[0].items()}


async def told(asked: "asyncio.Task[Any]") -> str:
    try:
        return outcome(await asked)[0]
    except ConnectionResetError:
        return "the connection is closed"


async def test_a_leader_dies_before_it_has_handled_what_it_is_asked() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        kafka.faults.when("Produce", topic="orders").kill_broker()
        assert await told(await produce(kafka, leader, acks=1)) == "the connection is closed"
        assert (kafka.broker(leader).state, set(ends(kafka).values())) == ("stopped", {0})
        event = kafka.trace.of(FaultInjected).one()
        assert event.action == "arrives, and before it is handled its broker is killed"


async def loses_the_record(kafka: gc.Cluster, moment: str) -> str:
    """What a producer is told of a record that only the leader has when it dies."""
    leader, *followers = state(kafka).replicas
    for each in followers:
        await kafka.broker(each).pause_replication()
    kafka.faults.when("Produce", broker=leader).kill_broker(moment=moment)
    said = await told(await produce(kafka, leader, acks=1))
    assert (kafka.broker(leader).state, ends(kafka)) == ("stopped", {leader: 1} | dict.fromkeys(followers, 0))
    for each in followers:
        await kafka.broker(each).resume_replication()
    await kafka.clock.advance(SESSION_S)
    await kafka.broker(leader).start()
    assert (kafka.trace.of(LogTruncated).one().lost, set(ends(kafka).values())) == (1, {0})
    return said


async def test_a_leader_dies_between_append_and_answer() -> None:
    async with trio() as kafka:
        assert await loses_the_record(kafka, "handled") == "the connection is closed"


async def test_a_leader_dies_behind_its_answer_and_what_was_acknowledged_is_lost() -> None:
    async with trio() as kafka:
        assert await loses_the_record(kafka, "answered") == "NONE"


@pytest.mark.parametrize("moment", ["handled", "answered"])
async def test_what_gets_no_answer_is_handled_too(moment: str) -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        rule = kafka.faults.when("Produce").kill_broker(moment=moment)
        asked = await produce(kafka, leader, acks=0)
        await rule.acted()
        assert (set(ends(kafka).values()), kafka.broker(leader).state) == ({1}, "stopped")
        asked.cancel()


async def test_a_broker_that_stops_hands_over_first() -> None:
    async with trio() as kafka:
        (a,) = await kafka.consumers(1, group="app", topics="orders")
        partition = kafka.core.coordinator.shard_of("app").partition
        coordinator = kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition]
        kafka.faults.when("Heartbeat", group="app").stop_broker()
        await kafka.clock.advance(10)
        assert kafka.broker(coordinator).is_fenced
        assert kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition] != coordinator
        assert (a.is_stable, await kafka.group("app").state()) == (True, "Stable")


async def test_a_broker_that_is_paused_says_its_answer_when_it_goes_on() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        kafka.faults.when("Produce").pause_broker(moment="handled")
        asked = await produce(kafka, leader)
        assert (asked.done(), set(ends(kafka).values())) == (False, {1})
        await kafka.broker(leader).resume()
        assert await told(asked) == "NONE"


async def test_another_broker_than_the_one_that_is_asked() -> None:
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        kafka.faults.when("Produce", broker=leader).kill_broker(follower, moment="handled")
        assert await told(await produce(kafka, leader)) == "NONE"
        assert kafka.broker(follower).state == "stopped"
        assert kafka.trace.of(FaultInjected).one().action == (
            f"is handled, and before its response is sent broker {follower} is killed"
        )


async def test_a_leader_is_cut_off_from_the_controller_and_does_not_know_it() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        kafka.faults.when("Produce").cut_off_broker("controller")
        assert await told(await produce(kafka, leader, acks=1)) == "NONE"
        assert str(kafka.broker(leader).condition) == "running, cut off from the controller"
        assert kafka.trace.of(FaultInjected).one().action == (
            "arrives, and before it is handled its broker is cut off from the controller"
        )


async def test_a_broker_that_is_gone_already_cannot_be_killed_once_more() -> None:
    async with trio() as kafka:
        leader, follower, _ = state(kafka).replicas
        await kafka.broker(follower).kill()
        before = kafka.faults.when("Produce", nth=1).kill_broker(follower)
        behind = kafka.faults.when("Produce", nth=2).kill_broker(follower, moment="handled")
        for _ in range(2):
            assert await told(await produce(kafka, leader, acks=1)) == "NONE"
        for rule in (before, behind):
            assert f"broker {follower} is stopped: it cannot be killed" in (rule.why_unused() or "")
            rule.remove()


async def test_a_broker_that_a_rule_has_ended_can_be_started_at_once() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        with kafka.faults.when("Metadata").stop_broker(leader, moment="answered"):
            await kafka.ask_broker(leader, MetadataRequest())
            await kafka.broker(leader).start()
        assert len((await kafka.ask_broker(leader, MetadataRequest())).brokers) == 3


async def test_two_brokers_are_ended_by_one_request_each() -> None:
    async with trio() as kafka:
        one, other, third = state(kafka).replicas
        kafka.faults.when("Produce", nth=1).kill_broker(other)
        kafka.faults.when("Produce", nth=2).kill_broker(third)
        asked = [await produce(kafka, one, acks=1) for _ in range(2)]
        assert [await told(each) for each in asked] == ["NONE", "NONE"]
        assert [kafka.broker(each).state for each in (one, other, third)] == ["running", "stopped", "stopped"]


async def test_sockets_are_closed_behind_what_was_said() -> None:
    async with trio() as kafka:
        leader = state(kafka).leader
        host, port = kafka.brokers[leader].address.split(":")
        kafka.faults.when("ApiVersions").kill_broker(moment="answered")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(bytes.fromhex("0000000a 0012 0000 00000007 ffff"))
        size = int.from_bytes(await reader.readexactly(4))
        assert (await reader.readexactly(size))[:6] == bytes.fromhex("00000007 0000")
        assert await reader.read() == b""
        writer.close()
        await kafka.settle()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection(host, int(port))


@pytest.mark.parametrize(
    ("add", "problem"),
    [
        (lambda one: one.kill_broker(9), "broker_id: there is no broker 9: the ids are 1, 2, 3"),
        (lambda one: one.cut_off_broker(9), "peer: there is no broker 9: the ids are 1, 2, 3"),
    ],
)
async def test_brokers_that_there_are_not_are_refused(add: Callable[[Any], Any], problem: str) -> None:
    async with trio() as kafka:
        with pytest.raises(RuleProblems, match=problem):
            add(kafka.faults.when("Produce"))
        kafka.faults.book.unfinished.clear()


async def test_a_lone_broker_cannot_be_ended_by_a_rule() -> None:
    world = World()
    with pytest.raises(RuleProblems, match="do: kill_broker is for a cluster of several brokers, which this is not"):
        world.faults.add(when("Produce").kill_broker())


async def test_a_layer_that_knows_no_brokers_has_no_such_rules() -> None:
    world, book = World(), Rulebook()
    layer = FaultLayer(world.node, book)
    book.add(when("Produce").kill_broker())
    world.faulty = layer
    with pytest.raises(AssertionError, match="a rule about brokers is added where they are known"):
        world.ask(Produce, empty_produce(1))


async def test_a_file_of_rules_is_for_the_brokers_that_there_are() -> None:
    text = "- {when: Produce, do: kill_broker, broker_id: 4, moment: handled}\n- {when: any, do: drop}\n"
    with pytest.raises(RuleFileError) as found:
        parse_rules(text, "faults.yaml", range(1, 4))
    assert str(found.value) == "faults.yaml: rule 1 (line 1): broker_id: there is no broker 4: the ids are 1, 2, 3"
    with pytest.raises(RuleFileError, match=r"rule 1 \(line 1\): do: kill_broker is for a cluster of several brokers"):
        parse_rules(text, "faults.yaml", range(1, 2))
    killing, _ = parse_rules(text, "faults.yaml", range(1, 5))
    assert killing == NamedRule("faults.yaml rule 1", when("Produce").kill_broker(4, moment="handled"))


async def test_a_rule_that_was_removed_does_nothing_to_brokers_any_more() -> None:
    async with trio() as kafka:
        leader, slow, _ = state(kafka).replicas
        await kafka.broker(slow).pause_replication()
        rule = kafka.faults.when("Produce").kill_broker(moment="handled")
        asked = await produce(kafka, leader)
        rule.remove()
        await kafka.broker(slow).resume_replication()
        assert await told(asked) == "NONE"
        with pytest.raises(FaultRulesFailed, match="in its block"):
            async with kafka.faults.when("Produce").kill_broker():
                pass


async def test_what_the_others_coordinate_then_is_read_without_time() -> None:
    async with trio() as kafka:
        partition = kafka.core.coordinator.shard_of("app").partition
        coordinator = kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition]
        await kafka.group("app").commit({("orders", 0): 5})
        kafka.faults.when("Produce").stop_broker(coordinator)
        await produce(kafka, state(kafka).leader, acks=1)
        await kafka.settle()
        assert kafka.core.broker.topics["__consumer_offsets"].metadata.leaders[partition] != coordinator
        assert await kafka.group("app").committed("orders", 0) == 5
