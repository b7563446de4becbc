from typing import Any

import pytest

from groupcoord.client.events import RejoinWanted
from groupcoord.coordinator.events import StateChanged
from groupcoord.core.events import AdminAction, Event
from groupcoord.testing.trace.entry import Entry
from groupcoord.testing.trace.events import ConnectionClosed, RequestReceived, TimerExpired
from tests.testing.trace.test_events import SPOKEN

TEST = AdminAction("the test")
MOVED = StateChanged(
    at_ms=4_000, cause=TEST, group="orders", origin="PreparingRebalance", target="CompletingRebalance", generation=1
)


def request(**fields: Any) -> RequestReceived:
    return RequestReceived(at_ms=0, cause=TEST, **{**SPOKEN, **fields})


def test_the_line_of_an_entry() -> None:
    entry = Entry(12, 3_000, MOVED, cause=9)
    assert entry.text() == "#12 @3000 orders PreparingRebalance → CompletingRebalance gen=1  ← #9"
    assert entry.text(links=False) == "@3000 orders PreparingRebalance → CompletingRebalance gen=1"
    assert repr(entry) == f"<Entry {entry.text()}>"


def test_when_it_was() -> None:
    entry = Entry(12, 3_000, MOVED)
    assert (entry.at_ms, entry.since_start_ms, entry.seconds) == (4_000, 3_000, 3.0)


def test_an_entry_without_a_cause_and_of_no_group() -> None:
    closed = ConnectionClosed(at_ms=0, cause=TEST, connection_id=1, client_host="/h", reason="a\nb\rc")
    assert Entry(1, 0, closed).text() == "#1 @0 connection 1 from h is closed: a\\nb\\rc"


def test_an_answer_that_another_request_made() -> None:
    assert Entry(20, 0, request(), cause=18, answers=4).text() == "#20 @0 g a asks JoinGroup v9  ← #18  answers #4"
    assert Entry(20, 0, request(), cause=4, answers=4).text() == "#20 @0 g a asks JoinGroup v9  ← #4"


@pytest.mark.parametrize(("member", "who"), [("a-1", "a-1"), ("", "newcomer")])
def test_what_a_client_says_of_itself_has_its_name(member: str, who: str) -> None:
    event = RejoinWanted(at_ms=0, cause=TEST, group="g", member=member, reason="so")
    assert Entry(1, 0, event).text(links=False) == f"@0 g {who}: has to join again: so"


def test_consequences_are_in_order() -> None:
    entry = Entry(1, 0, MOVED)
    entry.caused(2)
    entry.caused(5)
    assert entry.consequences == (2, 5)


def concerns(event: Event, group: str) -> bool:
    return Entry(1, 0, event).concerns(group)


def test_what_an_entry_concerns() -> None:
    assert concerns(MOVED, "orders")
    assert not concerns(MOVED, "other")
    assert concerns(request(group="", details={"groups": ("orders", "other")}), "orders")
    assert concerns(request(group="", details={"coordinator_keys": ("orders", "other")}), "other")
    assert not concerns(request(group="", details={}), "orders")
    timer = TimerExpired(at_ms=0, cause=TEST, kind="join", scope="orders", subject="", due_ms=0)
    assert concerns(timer, "orders")
    assert not concerns(timer, "other")
