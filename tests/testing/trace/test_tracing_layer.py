"""Requests, what happens, and answers, in the order of their happening and each with its cause."""

from typing import Any, cast

import pytest

from groupcoord.cluster.layer import ServedCluster
from groupcoord.coordinator.events import GenerationStarted, MemberRemoved, StateChanged
from groupcoord.core.effects import Append, Call, CloseConnection, NoReply, RawReply, Reply
from groupcoord.core.events import AdminAction, Event, Requested, TimerFired
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.apis.fetch import FetchPartition, FetchTopic
from groupcoord.protocol.apis.produce import PartitionProduceData, TopicProduceData
from groupcoord.protocol.messages import FetchRequest, HeartbeatRequest, HeartbeatResponse, ProduceRequest
from groupcoord.testing.trace import (
    ConnectionClosed,
    ConnectionOpened,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    ServerFailed,
    TracingLayer,
)
from tests.testing.trace.stage import GROUP, Stage


def kinds(stage: Stage) -> list[str]:
    return [type(entry.event).__name__ for entry in stage.trace]


def test_a_request_what_it_does_and_its_answer() -> None:
    stage = Stage()
    stage.member("a").join()
    assert kinds(stage) == ["RequestReceived", "GroupCreated", "MemberIdAssigned", "ResponseSent"]
    assert [entry.cause for entry in stage.trace] == [None, 1, 1, 1]
    request, answer = stage.trace.of(RequestReceived).one(), stage.trace.of(ResponseSent).one()
    assert (request.api, request.version, request.client_id, request.group) == ("JoinGroup", 9, "a", GROUP)
    assert (request.connection_id, request.correlation_id, request.client_host) == (1, 1, "/127.0.0.1")
    assert request.cause == Requested("JoinGroup", 9, "a", "/127.0.0.1", 1, 1)
    assert (answer.error, answer.member, answer.group) == ("MEMBER_ID_REQUIRED", stage.asked[0].answer.member_id, GROUP)


def test_an_answer_that_a_timer_makes() -> None:
    stage = Stage()
    stage.member("a").enter()
    stage.advance(3_000)
    answer = stage.trace.of(ResponseSent, error="NONE").one()
    entry = stage.trace.entry(answer)
    assert (answer.took_ms, answer.generation) == (3_000, 1)
    assert entry.answers == stage.trace.entry(stage.trace.of(RequestReceived).last).seq
    assert entry.cause is not None
    assert stage.trace[entry.cause].text() == f"#{entry.cause} @3000 the join timer of g fires"
    assert entry.seq in stage.trace[entry.cause].consequences
    assert answer.cause == stage.trace.of(GenerationStarted).one().cause


def test_an_answer_that_the_request_of_another_makes() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    b.join(protocols={"range": b"new"})
    a.join()
    of_b = stage.trace.entry(stage.trace.of(ResponseSent, api="JoinGroup", client_id="b", generation=2).one())
    asked = stage.trace.of(RequestReceived, api="JoinGroup")
    assert (of_b.cause, of_b.answers) == (stage.trace.entry(asked[-1]).seq, stage.trace.entry(asked[-2]).seq)


def test_several_timers_of_one_moment_make_an_answer_each() -> None:
    """Two newcomers are kept waiting too long in one group, another one in a second group."""
    stage = Stage("group.initial.rebalance.delay.ms=300000")
    terms = {"rebalance_ms": 600_000, "session_ms": 100_000}
    for name, group in (("a", "g"), ("b", "g"), ("c", "h")):
        member = stage.member(name, group=group, **terms)
        member.enter()
    stage.now_ms = 300_000
    stage._carry_out(stage.tracing.expire(300_000))
    removed = {event.member: event.cause for event in stage.trace.of(MemberRemoved)}
    refused = {event.member: event.cause for event in stage.trace.of(ResponseSent, error="UNKNOWN_MEMBER_ID")}
    assert len(removed) >= 2
    assert refused == removed


def test_a_fetch_whose_wait_is_over() -> None:
    stage = Stage()
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic="t", partitions=(part,)),), session_epoch=-1
    )
    stage.ask(ApiKey.FETCH, request, version=12)
    stage.advance(500)
    answer = stage.trace.of(ResponseSent, api="Fetch").one()
    assert answer.cause == TimerFired("fetch", "connection 1", "fetch 1", 500)
    assert answer.took_ms == 500
    assert answer.details == {"bytes": 0}


def test_a_request_that_wants_no_answer() -> None:
    stage = Stage()
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0, records=b"rubbish"),))
    stage.ask(ApiKey.PRODUCE, ProduceRequest(acks=0, timeout_ms=1, topic_data=(data,)), version=9)
    ended = stage.trace.of(RequestUnanswered).one()
    assert ended.reason.startswith("the connection is closed: ")
    assert stage.trace.entry(ended).answers == 1


class Scripted:
    """A cluster that does as it is told."""

    def __init__(self, does: Any) -> None:
        self.does = does

    def handle(self, call: Call, request: Any, now_ms: int) -> Any:
        return self.does(call)

    def expire(self, now_ms: int) -> Any:
        return self.does(None)


CALL = Call(1, 1, APIS[ApiKey.HEARTBEAT], 4, "a", "/127.0.0.1")
OTHER = CALL._replace(correlation_id=2)
BEAT = HeartbeatRequest(group_id="g", generation_id=2, member_id="a-1")


def traced(does: Any) -> tuple[TracingLayer, list[Event]]:
    told: list[Event] = []
    return TracingLayer(cast("ServedCluster", Scripted(does)), told.append), told


def test_a_request_that_asked_for_no_answer() -> None:
    tracing, told = traced(lambda call: [NoReply(call)])
    tracing.handle(CALL, BEAT, 5)
    assert [event.text() for event in told] == [
        "a asks Heartbeat v4: member a-1, generation 2",
        "a gets no answer to Heartbeat: it asked for none",
    ]


def test_the_end_of_a_request_is_told_once() -> None:
    tracing, told = traced(lambda call: [NoReply(call), CloseConnection(call, "so"), Reply(call, HeartbeatResponse())])
    tracing.handle(CALL, BEAT, 5)
    assert len(told) == 2


def test_what_is_no_concern_of_a_trace_passes() -> None:
    append = Append(1, "t", 0, ())
    tracing, told = traced(lambda call: [append])
    assert tracing.handle(CALL, BEAT, 5) == [append]
    assert len(told) == 1


def test_bytes_in_the_place_of_an_answer() -> None:
    tracing, told = traced(lambda call: [RawReply(call, b"12345", hangs_up=True)])
    tracing.handle(CALL, BEAT, 5)
    assert told[-1].text() == "a is answered Heartbeat: RAW, member a-1, generation 2, bytes 5, hangs_up true"
    tracing.inner.does = lambda call: []  # type: ignore[attr-defined]
    tracing.handle(OTHER, BEAT, 5)
    tracing.inner.does = lambda call: [RawReply(OTHER, b"1")]  # type: ignore[attr-defined]
    tracing.expire(9)
    assert told[-1].text() == "a is answered Heartbeat after 4 ms: RAW, member a-1, generation 2, bytes 1"


def test_an_answer_says_which_timer_made_it() -> None:
    timer = TimerFired("fault", "rule 1", "Heartbeat 1:1", 25)
    tracing, told = traced(lambda call: [] if call else [Reply(CALL, HeartbeatResponse(), timer)])
    tracing.handle(CALL, BEAT, 5)
    tracing.expire(25)
    assert told[-1].cause == timer
    assert told[-1].text() == "a is answered Heartbeat after 20 ms: member a-1, generation 2"


def test_an_answer_to_nobody_known() -> None:
    tracing, told = traced(lambda call: [Reply(CALL, HeartbeatResponse())])
    tracing.expire(25)
    assert told == []


def test_a_failure_is_told_and_raised() -> None:
    def fails(call: Call | None) -> Any:
        raise KeyError("gone")

    tracing, told = traced(fails)
    with pytest.raises(KeyError):
        tracing.handle(CALL, BEAT, 5)
    with pytest.raises(KeyError):
        tracing.expire(6)
    assert [type(event) for event in told] == [RequestReceived, ServerFailed, ServerFailed]
    assert told[1].text() == "the server fails: KeyError: 'gone'"
    assert told[1].cause == told[0].cause
    assert told[2].cause == AdminAction("a timer")


def test_connections() -> None:
    tracing, told = traced(lambda call: [])
    tracing.connection_opened(1, "/127.0.0.1", 3)
    tracing.handle(CALL, BEAT, 5)
    tracing.handle(CALL._replace(connection_id=2), BEAT, 5)
    tracing.connection_closed(1, "/127.0.0.1", 9, "it was idle")
    assert isinstance(told[0], ConnectionOpened)
    assert isinstance(told[-1], ConnectionClosed)
    assert (told[-1].at_ms, told[-1].reason) == (9, "it was idle")
    tracing.outgoing([Reply(CALL, HeartbeatResponse())], 10)
    assert type(told[-1]) is ConnectionClosed, "nobody waits for it any more"
    tracing.outgoing([Reply(CALL._replace(connection_id=2), HeartbeatResponse())], 10)
    assert [type(event) for event in told[-2:]] == [ConnectionClosed, ResponseSent]


def test_what_an_administrator_does() -> None:
    stage = Stage()
    a, b = stage.member("a"), stage.member("b")
    stage.joined(a, b)
    b.sync()
    stage.operate("force it", lambda ctx: stage.group.prepare_rebalance(ctx, "a drill"))
    answer = stage.trace.entry(stage.trace.of(ResponseSent, error="REBALANCE_IN_PROGRESS").one())
    moved = stage.trace.entry(stage.trace.of(StateChanged).last)
    assert answer.cause == moved.cause
    assert answer.cause is not None
    assert stage.trace[answer.cause].text() == f"#{answer.cause} @6000 action: force it"
