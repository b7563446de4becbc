"""Every firing, action and answer is a cause of its own, also on a clock that stands still, where all is at one moment."""

import pytest

from groupcoord.broker.events import ReplicaFetched
from groupcoord.client.member.member_events import AssignorRan, CoordinatorFound, MemberEvent, PartitionsTold
from groupcoord.coordinator.events import GenerationStarted, MemberRemoved, StateChanged
from groupcoord.core.events import Event
from groupcoord.testing import Cluster
from groupcoord.testing.trace import AdminActionRun, BrokerTaskRun, ResponseSent, TimerExpired, Trace
from groupcoord.testing.trace.events import TraceEntry

pytestmark = pytest.mark.asyncio


def cause(trace: Trace, event: Event) -> TraceEntry:
    found = trace.entry(event).cause
    assert found is not None
    return trace[found]


async def test_each_generation_has_a_join_timer_of_its_own() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        for _ in range(3):
            (member,) = await kafka.consumers(1, group="app", topics="orders")
            member.leave()
            await kafka.settle()
        begun = kafka.trace.of(GenerationStarted, group="app")
        assert {event.at_ms for event in begun} == {kafka.clock.now_ms()}
        fired = kafka.trace.of(TimerExpired, kind="join", scope="app")
        assert [cause(kafka.trace, event) for event in begun] == list(fired.entries)
        assert len(begun) == 3


async def test_each_action_of_a_test_is_one() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        (member,) = await kafka.consumers(1, group="app", topics="orders", instance_ids=["i"])
        for _ in range(2):
            member.vanish()
            await kafka.group("app").expire_member("i")
            (member,) = await kafka.consumers(1, group="app", topics="orders", instance_ids=["i"])
        removed = kafka.trace.of(MemberRemoved, group="app")
        actions = [cause(kafka.trace, event) for event in removed]
        assert len(set(actions)) == len(actions) == 2
        assert all(isinstance(action.event, AdminActionRun) for action in actions)


async def test_followers_fetch_what_the_coordinator_appends_because_it_does() -> None:
    async with Cluster(topics={"orders": 1}, brokers=3, clock="manual") as kafka:
        await kafka.group("app").commit({("orders", 0): 1})
        fetched = kafka.trace.of(ReplicaFetched, topic="__consumer_offsets")
        (task,) = {cause(kafka.trace, event) for event in fetched}
        assert isinstance(task.event, BrokerTaskRun)
        assert task.event.text() == f"the coordinator appends to __consumer_offsets-{fetched.first.partition}"
        assert not kafka.trace.of(AdminActionRun)


async def test_followers_fetch_a_marker_because_it_is_appended() -> None:
    async with Cluster(topics={"orders": 1}, brokers=3, clock="manual") as kafka:
        producer = kafka.manual_producer("app")
        await producer.init()
        await producer.commit_offsets("group", {("orders", 0): 1})
        await producer.end()
        await kafka.settle()
        fetched = kafka.trace.of(ReplicaFetched, topic="__consumer_offsets")
        causes = {cause(kafka.trace, event).event.text().replace(f"-{event.partition}", "") for event in fetched}
        told = {
            "the coordinator appends to __consumer_offsets",
            "a transaction marker is appended to __consumer_offsets",
        }
        assert causes == told


async def test_a_restart_is_one_action_for_all_that_waits() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        held = kafka.hold_append(times=2)
        waiting = []
        for group in "app", "other":
            member = kafka.manual_member(group, "orders")
            waiting.append(member.commit({("orders", 0): 1}))
        await held.wait(2)
        await kafka.restart()
        for each in waiting:
            with pytest.raises(ConnectionResetError):
                await each
        answers = kafka.trace.of(ResponseSent, api="OffsetCommit")
        assert [cause(kafka.trace, answer).event.text() for answer in answers] == [
            "action: the broker starts again",
            "action: the broker starts again",
        ]
        kafka.trace.of(AdminActionRun, action="the broker starts again").one()


async def test_what_a_member_does_comes_of_the_answer_that_it_got() -> None:
    """Two members ask before either is answered, and what they are answered is the same."""
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        await kafka.consumers(2, group="app", topics="orders")
        trace = kafka.trace
        found = [cause(trace, event).event for event in trace.of(CoordinatorFound)]
        assert [(event.api, event.client_name) for event in found if isinstance(event, ResponseSent)] == [
            ("FindCoordinator", "app-1"),
            ("FindCoordinator", "app-2"),
        ]
        told = [(event, cause(trace, event).event) for event in trace.of(PartitionsTold)]
        assert [(why.api, why.member) for event, why in told if isinstance(why, ResponseSent)] == [
            ("SyncGroup", event.member) for event, _ in told
        ]
        assigned = cause(trace, trace.of(AssignorRan).one()).event
        assert isinstance(assigned, ResponseSent)
        assert assigned.api == "Metadata"


async def test_an_answer_that_is_read_after_a_pause_is_the_cause_still() -> None:
    async with Cluster(topics={"orders": 2}, clock="manual") as kafka:
        a, b = await kafka.consumers(2, group="app", topics="orders")
        await kafka.group("app").force_rebalance()
        b.pause()
        await kafka.clock.advance(4)
        a.pause()
        b.resume()
        a.resume()
        await kafka.clock.advance(10)
        trace = kafka.trace
        without = [entry for entry in trace.of(MemberEvent).entries if entry.cause is None]
        assert without == []
        for entry in trace.of(MemberEvent).entries:
            why = trace[entry.cause or 0].event
            if isinstance(why, ResponseSent) and why.member:
                assert why.client_name in entry.event.member  # type: ignore[attr-defined]


async def test_a_member_whose_broker_is_gone_was_answered_by_nobody() -> None:
    async with Cluster(topics={"orders": 1}, clock="manual") as kafka:
        await kafka.consumers(1, group="app", topics="orders")
        await kafka.stop()
        await kafka.clock.advance(4)
        last = kafka.trace.of(MemberEvent).entries[-1]
        assert last.cause is None
        assert not kafka.trace.of(StateChanged).entries[-1].shares_cause(last)
