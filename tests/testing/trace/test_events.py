"""Every event of a trace reads as a sentence."""

from typing import Any

import pytest

from groupcoord.client.member.member_events import RejoinWanted
from groupcoord.coordinator.events import StateChanged
from groupcoord.core.events import AdminAction, Event
from groupcoord.testing.trace import events as e
from groupcoord.testing.trace.events import ConnectionClosed, RequestReceived, TimerExpired, TraceEntry

SPOKEN: dict[str, Any] = {
    "api": "JoinGroup",
    "version": 9,
    "client_id": "a",
    "client_host": "/127.0.0.1",
    "connection_id": 3,
    "correlation_id": 7,
    "group": "g",
    "member": "",
    "instance_id": None,
    "generation": -1,
}
FULL = {**SPOKEN, "member": "a-1", "instance_id": "i", "generation": 4}

HEARD = {**SPOKEN, "api": "ConsumerGroupHeartbeat", "version": 1, "member": "a-1"}

EVENTS: list[tuple[type[Event], dict[str, Any], str]] = [
    (e.ConnectionOpened, {"connection_id": 3, "client_host": "/127.0.0.1"}, "connection 3 from 127.0.0.1 is open"),
    (
        e.ConnectionClosed,
        {"connection_id": 3, "client_host": "/::1", "reason": ""},
        "connection 3 from ::1 is closed",
    ),
    (
        e.ConnectionClosed,
        {"connection_id": 3, "client_host": "/::1", "reason": "idle"},
        "connection 3 from ::1 is closed: idle",
    ),
    (e.RequestReceived, SPOKEN, "a asks JoinGroup v9"),
    (e.RequestReceived, {**SPOKEN, "client_id": None}, "connection 3 asks JoinGroup v9"),
    (e.RequestReceived, FULL, "a asks JoinGroup v9: member a-1, instance i, generation 4"),
    (
        e.RequestReceived,
        {**SPOKEN, "details": {"a": ("x", "y"), "b": True, "c": None, "d": False, "e": 1, "f": ""}},
        'a asks JoinGroup v9: a [x, y], b true, c null, d false, e 1, f ""',
    ),
    (e.ResponseSent, {**SPOKEN, "error": "NONE", "took_ms": 0}, "a is answered JoinGroup"),
    (
        e.ResponseSent,
        {**FULL, "error": "UNKNOWN_MEMBER_ID", "took_ms": 12},
        "a is answered JoinGroup after 12 ms: UNKNOWN_MEMBER_ID, member a-1, generation 4",
    ),
    (e.RequestReceived, {**HEARD, "generation": 7}, "a asks ConsumerGroupHeartbeat v1: member a-1, epoch 7"),
    (e.RequestReceived, {**HEARD, "generation": 0}, "a asks ConsumerGroupHeartbeat v1: member a-1, to join"),
    (e.RequestReceived, {**HEARD, "generation": -1}, "a asks ConsumerGroupHeartbeat v1: member a-1, to leave"),
    (
        e.ResponseSent,
        {**HEARD, "generation": 7, "error": "NONE", "took_ms": 0},
        "a is answered ConsumerGroupHeartbeat: member a-1, epoch 7",
    ),
    (
        e.ResponseSent,
        {**HEARD, "generation": 7, "error": "FENCED_MEMBER_EPOCH", "took_ms": 0},
        "a is answered ConsumerGroupHeartbeat: FENCED_MEMBER_EPOCH, member a-1",
    ),
    (e.RequestUnanswered, {**SPOKEN, "reason": "so"}, "a gets no answer to JoinGroup: so"),
    (
        e.TimerExpired,
        {"kind": "session", "scope": "g", "subject": "a-1", "due_ms": 0},
        "the session timer of a-1 in g fires",
    ),
    (
        e.TimerExpired,
        {"kind": "join", "scope": "g", "subject": "", "due_ms": 5},
        "the join timer of g fires, 5 ms before it is due",
    ),
    (e.AdminActionRun, {"action": "unload g"}, "action: unload g"),
    (e.BrokerTaskRun, {"task": "the coordinator appends to orders-0"}, "the coordinator appends to orders-0"),
    (e.ServerFailed, {"error": "KeyError: 1"}, "the server fails: KeyError: 1"),
    (e.UnknownEvent, {"name": "x.Y", "told": "it was so", "fields": {}}, "it was so"),
]


@pytest.mark.parametrize(("kind", "fields", "text"), EVENTS)
def test_an_event_reads_as_a_sentence(kind: type[Event], fields: dict[str, Any], text: str) -> None:
    assert kind(at_ms=0, cause=AdminAction("a test"), **fields).text() == text


TEST = AdminAction("the test")
MOVED = StateChanged(
    at_ms=4_000, cause=TEST, group="orders", origin="PreparingRebalance", target="CompletingRebalance", generation=1
)


def request(**fields: Any) -> RequestReceived:
    return RequestReceived(at_ms=0, cause=TEST, **{**SPOKEN, **fields})


def test_the_line_of_an_entry() -> None:
    entry = TraceEntry(12, 3_000, MOVED, cause=9)
    assert entry.text() == "#12 @3000 orders PreparingRebalance → CompletingRebalance gen=1  ← #9"
    assert entry.text(links=False) == "@3000 orders PreparingRebalance → CompletingRebalance gen=1"
    assert repr(entry) == f"<TraceEntry {entry.text()}>"


def test_when_it_was() -> None:
    entry = TraceEntry(12, 3_000, MOVED)
    assert (entry.at_ms, entry.since_start_ms, entry.seconds) == (4_000, 3_000, 3.0)


def test_an_entry_without_a_cause_and_of_no_group() -> None:
    closed = ConnectionClosed(at_ms=0, cause=TEST, connection_id=1, client_host="/h", reason="a\nb\rc")
    assert TraceEntry(1, 0, closed).text() == "#1 @0 connection 1 from h is closed: a\\nb\\rc"


def test_an_answer_that_another_request_made() -> None:
    assert TraceEntry(20, 0, request(), cause=18, answers=4).text() == "#20 @0 g a asks JoinGroup v9  ← #18  answers #4"
    assert TraceEntry(20, 0, request(), cause=4, answers=4).text() == "#20 @0 g a asks JoinGroup v9  ← #4"


@pytest.mark.parametrize(("member", "who"), [("a-1", "a-1"), ("", "newcomer")])
def test_what_a_client_says_of_itself_has_its_name(member: str, who: str) -> None:
    event = RejoinWanted(at_ms=0, cause=TEST, group="g", member=member, reason="so")
    assert TraceEntry(1, 0, event).text(links=False) == f"@0 g {who}: has to join again: so"


def concerns(event: Event, group: str) -> bool:
    return TraceEntry(1, 0, event).concerns(group)


def test_what_an_entry_concerns() -> None:
    assert concerns(MOVED, "orders")
    assert not concerns(MOVED, "other")
    assert concerns(request(group="", details={"groups": ("orders", "other")}), "orders")
    assert concerns(request(group="", details={"coordinator_keys": ("orders", "other")}), "other")
    assert not concerns(request(group="", details={}), "orders")
    timer = TimerExpired(at_ms=0, cause=TEST, kind="join", scope="orders", subject="", due_ms=0)
    assert concerns(timer, "orders")
    assert not concerns(timer, "other")
