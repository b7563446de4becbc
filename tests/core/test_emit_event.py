"""Events that are made when a listener asks for them."""

from typing import Self

from groupcoord.core.effects import EmitEvent
from groupcoord.core.events import AdminAction, Event, event_class

CAUSE = AdminAction("the test")


@event_class
class Named(Event):
    made = 0
    name: str

    def __new__(cls, **_: object) -> Self:
        cls.made += 1
        return object.__new__(cls)


def test_an_event_is_made_once_and_only_when_somebody_asks() -> None:
    made_before = Named.made
    effect = EmitEvent(Named, 5, CAUSE, {"name": "a"})
    assert (effect.kind, effect.about("name"), effect.about("group")) == (Named, "a", None)
    assert Named.made == made_before
    assert effect.event is effect.event
    assert effect.event == Named(at_ms=5, cause=CAUSE, name="a")
    assert Named.made == made_before + 2


def test_an_event_that_is_made_already_says_the_same() -> None:
    event = Named(at_ms=5, cause=CAUSE, name="a")
    effect = EmitEvent.of(event)
    assert effect.event is event
    assert (effect.kind, effect.about("name")) == (Named, "a")


def test_equal_events_are_equal_effects_whenever_they_are_made() -> None:
    event = Event(at_ms=5, cause=CAUSE)
    later = EmitEvent(Event, 5, CAUSE, {})
    assert {EmitEvent.of(event), later} == {later}
    assert later not in (EmitEvent.of(Event(at_ms=6, cause=CAUSE)), event)
    assert repr(later) == f"EmitEvent({event!r})"
