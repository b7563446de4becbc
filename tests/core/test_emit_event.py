"""Events that are made when a listener asks for them."""

from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import AdminAction, Event

CAUSE = AdminAction("the test")


def test_an_event_is_made_once_and_only_when_somebody_asks() -> None:
    made: list[Event] = []

    def make() -> Event:
        made.append(Event(at_ms=len(made), cause=CAUSE))
        return made[-1]

    effect = EmitEvent(make)
    assert made == []
    assert effect.event is effect.event
    assert made == [Event(at_ms=0, cause=CAUSE)]


def test_equal_events_are_equal_effects_whenever_they_are_made() -> None:
    event = Event(at_ms=5, cause=CAUSE)
    later = EmitEvent(lambda: Event(at_ms=5, cause=CAUSE))
    assert {EmitEvent(event), later} == {later}
    assert later not in (EmitEvent(Event(at_ms=6, cause=CAUSE)), event)
    assert repr(later) == f"EmitEvent({event!r})"
