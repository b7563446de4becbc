"""What every message can do."""

import dataclasses

import pytest

from groupcoord.protocol.message_dataclass import message


@message
class Point:
    """A message."""

    x: int
    y: int = 0
    name: str | None = None


@message
class Other:
    """The same fields in another class."""

    x: int
    y: int = 0
    name: str | None = None


def test_messages_are_values() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    same_in_another_class: object = Other(x=1)
    assert Point(x=1) != same_in_another_class
    assert {Point(x=1), Point(x=1, y=0), Point(x=2)} == {Point(x=2), Point(x=1)}


def test_messages_are_dataclasses_with_keywords_only() -> None:
    assert dataclasses.replace(Point(x=1), y=5) == Point(x=1, y=5)
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]


def test_messages_have_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        Point(x=1).z = 5  # type: ignore[attr-defined]


def test_a_message_shows_what_is_not_default() -> None:
    assert repr(Point(x=0)) == "Point(x=0)"
    assert repr(Point(x=1, y=0, name="a")) == "Point(x=1, name='a')"
