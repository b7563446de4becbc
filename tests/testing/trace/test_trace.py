"""Entries with numbers, times and links; what is kept and what is dropped; reading while it grows."""

import dataclasses
import threading

import pytest

from groupcoord.broker.events import LogNotCleaned
from groupcoord.client.member.member_events import RejoinWanted
from groupcoord.coordinator.events import GroupCreated, StateChanged
from groupcoord.core.events import AdminAction, Answered, Cause, Event, Requested, TimerFired
from groupcoord.testing.trace import (
    AdminActionRun,
    ConnectionClosed,
    ConnectionOpened,
    RequestReceived,
    ResponseSent,
    TimerExpired,
    Trace,
)
from tests.testing.trace.stage import GROUP, Stage
from tests.testing.trace.test_events import SPOKEN

TEST = AdminAction("the test")
ASKED = Requested("JoinGroup", 9, "a", "/127.0.0.1", 3, 7)


def moved(at_ms: int, cause: Cause = TEST, group: str = "g") -> StateChanged:
    return StateChanged(at_ms=at_ms, cause=cause, group=group, origin="Empty", target="Stable", generation=1)


def request(at_ms: int, correlation_id: int = 7) -> RequestReceived:
    return RequestReceived(
        at_ms=at_ms, cause=ASKED._replace(correlation_id=correlation_id), **{**SPOKEN, "correlation_id": correlation_id}
    )


def answer(at_ms: int, member: str = "") -> ResponseSent:
    return ResponseSent(at_ms=at_ms, cause=ASKED, **{**SPOKEN, "member": member}, error="NONE", took_ms=0)


def told(*events: Event, limit: int = 100, start_ms: int | None = None) -> Trace:
    trace = Trace(limit=limit, start_ms=start_ms)
    for event in events:
        trace(event)
    return trace


def links(trace: Trace) -> list[tuple[int, str, int | None]]:
    return [(entry.seq, type(entry.event).__name__, entry.cause) for entry in trace]


def test_time_counts_from_the_first_event_or_from_a_given_moment() -> None:
    assert [entry.since_start_ms for entry in told(request(5_000), moved(5_010, ASKED))] == [0, 10]
    assert [entry.seconds for entry in told(request(5_000), start_ms=4_000)] == [1.0]
    assert told(start_ms=4_000).start_ms == 4_000


def test_what_a_request_caused() -> None:
    trace = told(request(0), moved(0, ASKED), answer(0))
    assert links(trace) == [(1, "RequestReceived", None), (2, "StateChanged", 1), (3, "ResponseSent", 1)]
    assert trace[1].consequences == (2, 3)
    assert trace[3].answers == 1
    assert trace[2].consequences == ()


def test_a_request_that_was_not_told_is_no_link() -> None:
    assert links(told(moved(0, ASKED))) == [(1, "StateChanged", None)]


def test_a_correlation_id_is_used_again() -> None:
    trace = told(request(0), answer(0), request(1), answer(1))
    assert [entry.cause for entry in trace] == [None, 1, None, 3]


def test_a_timer_gets_an_entry_of_its_own() -> None:
    fired = TimerFired("session", "g", "a-1", 90)
    trace = told(moved(100, fired), moved(100, fired), moved(200, fired._replace(due_ms=190)))
    assert links(trace) == [
        (1, "TimerExpired", None),
        (2, "StateChanged", 1),
        (3, "StateChanged", 1),
        (4, "TimerExpired", None),
        (5, "StateChanged", 4),
    ]
    expired = trace.of(TimerExpired).first
    assert (expired.kind, expired.scope, expired.subject, expired.due_ms, expired.at_ms) == (
        "session",
        "g",
        "a-1",
        90,
        100,
    )


def test_an_admin_action_gets_one_as_well() -> None:
    trace = told(moved(100), moved(100), moved(200))
    assert [seq for seq, kind, _ in links(trace) if kind == "AdminActionRun"] == [1]
    assert trace.of(AdminActionRun).one().action == "the test"


def test_equal_firings_and_equal_actions_of_one_moment_are_told_apart() -> None:
    for cause in TimerFired("session", "g", "a-1", 90), AdminAction("the test"):
        equal = cause._replace()
        trace = told(moved(100, cause), moved(100, equal), moved(100, cause), moved(100, equal))
        assert [entry.cause for entry in trace] == [None, 1, None, 3, 1, 3]
        assert trace[1].consequences == (2, 5)


def test_connections_are_nobody_s_wish() -> None:
    trace = told(
        ConnectionOpened(at_ms=0, cause=TEST, connection_id=1, client_host="/h"),
        ConnectionClosed(at_ms=0, cause=TEST, connection_id=1, client_host="/h", reason=""),
    )
    assert [cause for _, _, cause in links(trace)] == [None, None]


def test_an_answer_causes_what_a_client_does() -> None:
    def wanted(member: str, api: str = "JoinGroup") -> RejoinWanted:
        return RejoinWanted(at_ms=0, cause=Answered(api, "NONE"), group="g", member=member, reason="so")

    trace = told(answer(0), answer(0, "a-1"), wanted("a-1"), wanted("b-1"), wanted("b-1", "Heartbeat"))
    assert [cause for _, _, cause in links(trace)] == [None, None, 2, 1, None]


def test_an_answer_that_says_which_it_is_causes_that() -> None:
    def wanted(correlation_id: int) -> RejoinWanted:
        cause = Answered("JoinGroup", "NONE", 3, correlation_id)
        return RejoinWanted(at_ms=0, cause=cause, group="g", member="", reason="so")

    other = dataclasses.replace(answer(0), correlation_id=8)
    trace = told(answer(0), other, wanted(7), wanted(8), wanted(9))
    assert [entry.cause for entry in trace] == [None, None, 1, 2, None]


def test_entries_have_the_milliseconds_of_the_real_world() -> None:
    times_ns = iter([1_000_000_000, 1_002_900_000, 1_017_000_000])
    trace = Trace(monotonic_ns=lambda: next(times_ns))
    trace(request(0))
    trace(moved(0, ASKED))
    assert [entry.real_ms for entry in trace] == [2, 17]
    assert trace.text(real=True).splitlines()[1] == "#2 @0 (17 ms) g Empty → Stable gen=1  ← #1"
    assert trace.text(real=True, links=False).splitlines()[1] == "@0 (17 ms) g Empty → Stable gen=1"
    assert "ms" not in trace.text()


def test_entries_by_time_group_and_place() -> None:
    trace = told(request(0), moved(1_000, ASKED), moved(2_000, ASKED, "h"), moved(3_000, ASKED))
    assert [entry.seq for entry in trace.entries(since=1.0, until=2.0)] == [2, 3]
    assert [entry.seq for entry in trace.entries(since=trace[2], until=trace[3])] == [2, 3]
    assert [entry.seq for entry in trace.entries(group="h")] == [1, 3]  # with what made it happen


def test_the_text() -> None:
    trace = told(request(0), moved(1_000, ASKED), moved(2_000, ASKED, "h"))
    assert (
        trace.text()
        == "#1 @0 g a asks JoinGroup v9\n#2 @1000 g Empty → Stable gen=1  ← #1\n#3 @2000 h Empty → Stable gen=1  ← #1"
    )
    assert trace.text(group="h", links=False) == "@0 g a asks JoinGroup v9\n@2000 h Empty → Stable gen=1"
    assert trace.text(limit=1, links=False) == "(2 entries before)\n@2000 h Empty → Stable gen=1"
    assert trace.text(since=2, limit=5, links=False) == "@2000 h Empty → Stable gen=1"


def test_what_is_told_of_a_group_has_what_made_it_happen() -> None:
    trace = told(request(0), answer(0), moved(1_000, TEST, "h"), moved(1_000, TEST, "g"))
    assert trace.text(group="h") == "#3 @1000 action: the test\n#4 @1000 h Empty → Stable gen=1  ← #3"


def test_members_in_a_text_have_short_names_unless_told_otherwise() -> None:
    stage = Stage()
    a = stage.member("a")
    a.enter()
    assert "g a joins, offers range" in stage.trace.text()
    assert f"g {a.member_id} joins, offers range" in stage.trace.text(short=False)


def test_requests_and_connections_are_dropped_first() -> None:
    trace = told(moved(0), *(request(0, number) for number in range(10)), moved(0), limit=6)
    assert [(seq, kind) for seq, kind, _ in links(trace)] == [
        (1, "AdminActionRun"),
        (2, "StateChanged"),
        (10, "RequestReceived"),
        (11, "RequestReceived"),
        (12, "RequestReceived"),
        (13, "StateChanged"),
    ]
    assert (trace.dropped, trace.dropped_of(RequestReceived), trace.dropped_of(StateChanged)) == (7, 7, 0)
    assert repr(trace) == "<Trace of 6 entries, 7 dropped>"
    assert trace.text().startswith("(7 older entries were dropped)\n#1 ")


def test_then_what_is_oldest() -> None:
    trace = told(request(0), *(moved(number, ASKED) for number in range(6)), limit=4)
    assert [seq for seq, _, _ in links(trace)] == [4, 5, 6, 7]
    assert trace.dropped_of(RequestReceived) == 1
    assert repr(told()) == "<Trace of 0 entries>"


def test_a_cause_that_was_dropped_is_none_any_more() -> None:
    trace = told(request(0), *(moved(number, ASKED) for number in range(5)), limit=4)
    assert trace[6].cause is None
    assert trace[4].cause == 1
    with pytest.raises(KeyError, match="entry 1 was dropped"):
        trace[1]
    with pytest.raises(KeyError, match="entry 9 never was"):
        trace[9]


def test_a_later_cause_of_the_same_name_stays() -> None:
    trace = told(request(0), request(1), moved(1, ASKED), limit=2)
    assert trace[3].cause == 2


def test_the_entry_of_an_event() -> None:
    event = moved(0, ASKED)
    assert told(request(0), event).entry(event).seq == 2
    with pytest.raises(LookupError, match="no entry of"):
        told().entry(event)


def test_a_trace_of_nothing() -> None:
    with pytest.raises(ValueError, match="a trace of 0 entries"):
        Trace(limit=0)
    assert Trace().text() == ""


def test_it_is_read_while_it_grows() -> None:
    trace = Trace(limit=50)
    stop = threading.Event()
    problems: list[Exception] = []

    def read() -> None:
        try:
            while not stop.is_set():
                numbers = [entry.seq for entry in trace]
                assert numbers == sorted(numbers)
                trace.text(limit=5)
                assert not trace.of(GroupCreated)
        except Exception as problem:
            problems.append(problem)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(2_000):
        trace(moved(number, ASKED))
    stop.set()
    reader.join()
    assert not problems


def test_the_whole_story_is_there() -> None:
    stage = Stage(now_ms=1_000)
    (a,) = stage.stable("a")
    a.heartbeat()
    assert stage.trace.start_ms == 1_000
    beat = stage.trace.of(RequestReceived, api="Heartbeat", group=GROUP).one()
    (caused,) = stage.trace.entry(beat).consequences
    assert stage.trace[caused].text(links=False).startswith("@3000 g a is answered Heartbeat")


def test_who_listens_hears_of_every_entry_until_the_end() -> None:
    trace = Trace()
    heard: list[int] = []
    end = trace.on_entry(lambda: heard.append(1))
    trace(LogNotCleaned(at_ms=1, cause=AdminAction("a"), log="x-0", why="it is broken"))
    end()
    trace(LogNotCleaned(at_ms=2, cause=AdminAction("b"), log="x-0", why="it is broken"))
    assert (len(heard), len(trace)) == (2, 4)
