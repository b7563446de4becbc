"""Every event of a trace reads as a sentence."""

from typing import Any

import pytest

from groupcoord.core.events import AdminAction, Event
from groupcoord.testing.trace import events as e

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
    (e.AdminActionRun, {"action": "unload g"}, "admin action: unload g"),
    (e.ServerFailed, {"error": "KeyError: 1"}, "the server fails: KeyError: 1"),
    (e.UnknownEvent, {"name": "x.Y", "told": "it was so", "fields": {}}, "it was so"),
]


@pytest.mark.parametrize(("kind", "fields", "text"), EVENTS)
def test_an_event_reads_as_a_sentence(kind: type[Event], fields: dict[str, Any], text: str) -> None:
    assert kind(at_ms=0, cause=AdminAction("a test"), **fields).text() == text
