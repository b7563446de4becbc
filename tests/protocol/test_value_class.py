"""Classes of values, frozen ones above all: tests/protocol/test_message.py has the others."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field, replace

import pytest

from groupcoord.core.events import AdminAction, Event, event_class


@event_class
class Seen(Event):
    """An event with every kind of field."""

    what: str
    times: int = 1
    details: Mapping[str, int] = field(default_factory=dict)


NOW = AdminAction("a test")


def test_a_field_gets_its_default_or_one_of_its_own() -> None:
    one, other = Seen(at_ms=0, cause=NOW, what="a"), Seen(at_ms=0, cause=NOW, what="a")
    assert (one.times, one.details) == (1, {})
    assert one == other
    assert one.details is not other.details


def test_fields_are_named_and_there_are_no_others() -> None:
    with pytest.raises(TypeError, match="what"):
        Seen(at_ms=0, cause=NOW)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="where"):
        Seen(at_ms=0, cause=NOW, what="a", where="b")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Seen(0, NOW, "a")  # type: ignore[call-arg]


def test_what_is_inherited_counts_when_values_are_compared() -> None:
    seen = Seen(at_ms=0, cause=NOW, what="a")
    assert seen != replace(seen, at_ms=1)
    assert repr(replace(seen, at_ms=1)) == "Seen(at_ms=1, cause=AdminAction(action='a test'), what='a', details={})"


def test_a_frozen_value_cannot_be_changed() -> None:
    seen = Seen(at_ms=0, cause=NOW, what="a")
    with pytest.raises(FrozenInstanceError, match=r"Seen\.what cannot be changed"):
        seen.what = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match=r"Seen\.at_ms cannot be changed"):
        del seen.at_ms
    assert (seen.what, seen.at_ms) == ("a", 0)


def test_a_frozen_value_can_be_copied_and_pickled() -> None:
    seen = Seen(at_ms=0, cause=NOW, what="a", details={"b": 2})
    assert copy.deepcopy(seen) == seen
    assert pickle.loads(pickle.dumps(seen)) == seen
