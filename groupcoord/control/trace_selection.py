"""The query parameters that select entries of the trace: event type, group, member, transaction and fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

from fastapi import Depends, Query

from groupcoord.control.problem_documents import ProblemError, wrong_argument
from groupcoord.core.events import Event
from groupcoord.testing.faults.matching import suggestion
from groupcoord.testing.trace import TraceEntry
from groupcoord.testing.trace.events import check_fields
from groupcoord.testing.trace.file_format import TYPES

_NAMES = {name: kind for full, kind in TYPES.items() for name in (full, full.partition(".")[2])}
"""Event types by name, with and without the prefix of the part that defines them (``trace.ResponseSent``)."""
_MEMBER_NAMES = ("member", "instance_id", "client_id")


def selection_of(
    event: Annotated[
        list[str] | None,
        Query(description="types of events, such as GroupTransitioned or trace.ResponseSent; repeated: one of them"),
    ] = None,
    group: Annotated[str | None, Query(description="about this group")] = None,
    member: Annotated[str | None, Query(description="about this member: a member id, instance id or client id")] = None,
    transaction: Annotated[str | None, Query(description="about this transactional id")] = None,
    where: Annotated[
        list[str] | None, Query(description="FIELD=VALUE, such as error=UNKNOWN_MEMBER_ID; repeated: all of them")
    ] = None,
) -> "TraceSelection":
    """The selection that the query parameters describe (a FastAPI dependency). Raises ProblemError."""
    kinds = [_kind(name) for name in event or ()]
    pairs = [_pair(text, kinds) for text in where or ()]
    return TraceSelection(tuple(kinds), group, member, transaction, tuple(pairs))


def _kind(name: str) -> type[Event]:
    if name not in _NAMES:
        raise ProblemError.of_field("event", f"there is no event {name!r}{suggestion(name, _NAMES)}")
    return _NAMES[name]


def _pair(text: str, kinds: Sequence[type[Event]]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ProblemError.of_field("where", f"{text!r} is no FIELD=VALUE, such as error=UNKNOWN_MEMBER_ID")
    for kind in kinds:
        with wrong_argument("where"):
            check_fields(kind, [name])
    return name, value


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """A filter of trace entries: every criterion that is given must hold. Field values are compared as text."""

    kinds: tuple[type[Event], ...]
    group: str | None
    member: str | None
    transaction: str | None
    where: tuple[tuple[str, str], ...]

    def __call__(self, entry: TraceEntry) -> bool:
        """Does the entry meet all criteria but ``transaction``, which Trace.entries checks?"""
        event = entry.event
        return (
            (not self.kinds or isinstance(event, self.kinds))
            and (self.group is None or entry.concerns(self.group))
            and (self.member is None or self.member in (getattr(event, name, None) for name in _MEMBER_NAMES))
            and all(_text_of(event, name) == value for name, value in self.where)
        )


def _text_of(event: Event, name: str) -> str | None:
    """The field ``name`` as text, written as in JSON."""
    value: Any = getattr(event, name, None)
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case Enum():
            return str(value.value)
        case _:
            return str(value)


Selected = Annotated[TraceSelection, Depends(selection_of)]
