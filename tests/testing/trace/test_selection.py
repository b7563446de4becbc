"""Assertions that say what nearly fitted."""

import dataclasses
import re

import pytest

from groupcoord.coordinator.events import GroupCreated, MemberRemoved, StateChanged
from groupcoord.core.events import AdminAction, Event, Requested
from groupcoord.testing.trace import RequestReceived, Selection, Trace
from tests.testing.trace.stage import Stage

TEST = AdminAction("the test")
ASKED = Requested("SyncGroup", 5, "a", "/127.0.0.1", 1, 1)


def moved(group: str, target: str, generation: int = 1) -> StateChanged:
    return StateChanged(at_ms=0, cause=TEST, group=group, origin="Empty", target=target, generation=generation)


def trace(*events: Event, limit: int = 100) -> Trace:
    made = Trace(limit=limit)
    for event in events:
        made(event)
    return made


def message(refused: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    return str(refused.value).splitlines()


def test_events_by_their_fields() -> None:
    stage = Stage()
    a, b = stage.stable("a", "b")
    a.heartbeat()
    b.leave()
    assert stage.trace.of(MemberRemoved, group="g").one().member == b.member_id
    asked = stage.trace.of(RequestReceived, api="JoinGroup", member=lambda member: member != "")
    assert [each.member for each in asked] == [a.member_id, b.member_id]
    assert asked.first.member == a.member_id
    assert asked.last is asked[-1]
    assert asked[:1] == [asked.first]
    assert [entry.event for entry in asked.entries] == list(asked)
    assert len(stage.trace.of(group="g")) < len(stage.trace)
    assert list(stage.trace.of()) == [entry.event for entry in stage.trace]
    stage.trace.of(RequestReceived, api="Fetch").none()


def test_a_selection_is_what_the_trace_was() -> None:
    made = trace(moved("g", "Stable"))
    chosen = made.of(StateChanged)
    made(moved("g", "Empty"))
    assert len(chosen) == 1
    assert repr(chosen) == "<Selection of 1: StateChanged>"


def test_none_where_one_is_expected_shows_what_came_nearest() -> None:
    made = trace(
        moved("g", "Empty", 2), moved("h", "Stable", 1), GroupCreated(at_ms=0, cause=TEST, group="g", simple=False)
    )
    with pytest.raises(AssertionError) as refused:
        made.of(StateChanged, group="g", target="Stable", generation=2).one()
    assert message(refused) == [
        "expected one StateChanged with group='g', target='Stable', generation=2, found none.",
        "Of 2 StateChanged, these come nearest:",
        "  #2 @0 g Empty → Empty gen=2  ← #1",
        "      target is 'Empty', not 'Stable'",
        "  #3 @0 h Empty → Stable gen=1  ← #1",
        "      group is 'h', not 'g'",
        "      generation is 1, not 2",
    ]


def test_only_some_of_those_that_came_near_are_shown() -> None:
    made = trace(*(moved("g", "Stable", number) for number in range(9)))
    with pytest.raises(AssertionError) as refused:
        made.of(StateChanged, generation=9).one()
    assert len(message(refused)) == 2 + 2 * 5


def is_even(number: int) -> bool:
    return number % 2 == 0


def test_a_predicate_that_refuses_is_named() -> None:
    made = trace(moved("g", "Stable"))
    with pytest.raises(AssertionError, match="generation is 1, which is_even refuses"):
        made.of(StateChanged, generation=is_even).one()
    with pytest.raises(AssertionError, match=r"generation is 1, which <lambda> of line \d+ refuses"):
        made.of(StateChanged, generation=lambda number: number > 1).one()


def test_two_where_one_is_expected_are_shown() -> None:
    made = trace(*(moved("g", "Stable", number) for number in range(7)))
    with pytest.raises(AssertionError) as refused:
        made.of(StateChanged).one()
    lines = message(refused)
    assert lines[0] == "expected one StateChanged, found 7."
    assert lines[1] == "  #2 @0 g Empty → Stable gen=0  ← #1"
    assert lines[-1] == "  and 2 more"


def test_any_where_none_is_expected_are_shown() -> None:
    made = trace(moved("g", "Stable"))
    with pytest.raises(
        AssertionError, match=r"expected no StateChanged, found 1\.\n  #2 @0 g Empty → Stable gen=1  ← #1$"
    ):
        made.of(StateChanged).none()


@pytest.mark.parametrize("which", ["first", "last"])
def test_the_first_and_the_last_of_none(which: str) -> None:
    with pytest.raises(AssertionError, match="expected at least one StateChanged, found none"):
        getattr(trace().of(StateChanged), which)


def test_a_type_that_never_happened_is_answered_with_those_that_did() -> None:
    made = trace(moved("g", "Stable"))
    with pytest.raises(AssertionError, match="The trace has AdminActionRun, StateChanged"):
        made.of(MemberRemoved).one()
    with pytest.raises(AssertionError, match="The trace is empty"):
        trace().of(MemberRemoved).one()


def test_an_event_that_has_no_such_field_does_not_fit() -> None:
    made = trace(moved("g", "Stable"))
    with pytest.raises(AssertionError, match="AdminActionRun has no group"):
        made.of(group="h").one()


def test_an_unknown_field_is_answered_with_the_nearest() -> None:
    known = "at_ms, cause, generation, group, origin, target"
    with pytest.raises(TypeError, match=re.escape("StateChanged has no field 'grop'; did you mean group?")):
        trace().of(StateChanged, grop="g")
    with pytest.raises(TypeError, match=re.escape(f"StateChanged has no field 'zzz'; there are {known}")):
        trace().of(StateChanged, zzz=1)


def test_what_was_dropped_cannot_be_denied() -> None:
    events = [dataclasses.replace(moved("g", "Stable", number), cause=ASKED) for number in (1, 2, 3)]
    made = trace(*events, limit=2)
    sure = r"The trace has dropped 1 older StateChanged, so it cannot be sure\."
    with pytest.raises(AssertionError, match=sure):
        made.of(StateChanged, generation=1).none()
    with pytest.raises(AssertionError, match=sure):
        made.of(StateChanged, generation=2).one()
    assert made.of(StateChanged, generation=2).first.generation == 2
    made.of(MemberRemoved).none()


def test_it_is_a_sequence() -> None:
    chosen: Selection[StateChanged] = trace(moved("g", "Stable")).of(StateChanged)
    assert list(reversed(chosen)) == [chosen[0]]


def test_a_name_is_no_type_of_events() -> None:
    with pytest.raises(TypeError, match=r"'MemberRemoved' is not a type of events, such as events\.MemberRemoved"):
        Trace().of("MemberRemoved")  # type: ignore[call-overload]
