"""Events of a trace that fit, and assertions about them that say what nearly did."""

import dataclasses
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from groupcoord.core.events import Event
from groupcoord.testing.trace.entry import Entry

E_co = TypeVar("E_co", bound=Event, covariant=True)

SHOWN = 5
"""So many entries an assertion shows of those that nearly fit, or that should not."""

_MISSING = object()


class Selection(Sequence[E_co], Generic[E_co]):
    """The events of ``kind`` whose fields are as ``match`` says, in the order of the trace.

    It is what the trace had when it was asked. ``let_go`` is how many events of that kind the trace no longer has.
    """

    def __init__(self, candidates: Sequence[Entry], kind: type[E_co], match: Mapping[str, Any], let_go: int) -> None:
        self._kind = kind
        self._match = match
        self._let_go = let_go
        self._all = tuple(candidates)
        self._candidates = tuple(entry for entry in candidates if isinstance(entry.event, kind))
        self.entries = tuple(entry for entry in self._candidates if not self._differences(entry.event))
        """The entries of the events, with their places, causes and consequences."""

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[E_co]:
        for entry in self.entries:
            yield entry.event  # type: ignore[misc]

    @overload
    def __getitem__(self, index: int) -> E_co: ...

    @overload
    def __getitem__(self, index: slice) -> list[E_co]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return list(self)[index]

    def __repr__(self) -> str:
        return f"<Selection of {len(self)}: {self.wanted}>"

    @property
    def wanted(self) -> str:
        """What was asked for, in words."""
        match = ", ".join(f"{name}={_value(value)}" for name, value in self._match.items())
        return self._kind.__name__ + (f" with {match}" if match else "")

    @property
    def first(self) -> E_co:
        """The first of the events. Raises AssertionError if there is none."""
        self._expect(len(self) > 0, "at least one", sure=True)
        return self[0]

    @property
    def last(self) -> E_co:
        """The last of the events. Raises AssertionError if there is none."""
        self._expect(len(self) > 0, "at least one", sure=True)
        return self[-1]

    def one(self) -> E_co:
        """The only one of the events. Raises AssertionError if there is none, or more than one, or that cannot be known."""
        self._expect(len(self) == 1, "one", sure=False)
        return self[0]

    def none(self) -> None:
        """Raises AssertionError if there is any of these events, or that cannot be known."""
        self._expect(not self, "no", sure=False)

    def _expect(self, fulfilled: bool, how_many: str, *, sure: bool) -> None:
        """``sure`` is what cannot be refuted by an event that the trace no longer has."""
        __tracebackhide__ = True  # pytest shows the line of the test
        if fulfilled and (sure or not self._let_go):
            return
        found = f"found {len(self) or 'none'}"
        lines = [f"expected {how_many} {self.wanted}, {found}."]
        if self._let_go:
            lines.append(f"The trace has let go of {self._let_go} older {self._kind.__name__}, so it cannot be sure.")
        lines += self._shown() if self.entries else self._nearest()
        raise AssertionError("\n".join(lines))

    def _shown(self) -> Iterator[str]:
        yield from (f"  {entry.text()}" for entry in self.entries[:SHOWN])
        if len(self) > SHOWN:
            yield f"  and {len(self) - SHOWN} more"

    def _nearest(self) -> Iterator[str]:
        if not self._candidates:
            kinds = sorted({type(entry.event).__name__ for entry in self._all})
            yield f"The trace has {', '.join(kinds)}." if kinds else "The trace is empty."
            return
        differing = [(self._differences(entry.event), entry) for entry in self._candidates]
        differing.sort(key=lambda pair: (len(pair[0]), -pair[1].seq))
        yield f"Of {len(self._candidates)} {self._kind.__name__}, these come nearest:"
        for differences, entry in differing[:SHOWN]:
            yield f"  {entry.text()}"
            yield from (f"      {difference}" for difference in differences)

    def _differences(self, event: Event) -> list[str]:
        """In which fields ``event`` is not as wanted, in words."""
        differences = []
        for name, wanted in self._match.items():
            actual = getattr(event, name, _MISSING)
            if actual is _MISSING:
                differences.append(f"{type(event).__name__} has no {name}")
            elif callable(wanted):
                if not wanted(actual):
                    differences.append(f"{name} is {actual!r}, which {_value(wanted)} refuses")
            elif actual != wanted:
                differences.append(f"{name} is {actual!r}, not {wanted!r}")
        return differences


def check_fields(kind: type[Event], names: Sequence[str]) -> None:
    """Raises TypeError for a name of which no event of ``kind`` has a field, with the names that come nearest."""
    known = sorted(_fields(kind))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"; did you mean {' or '.join(near)}?" if near else "."
            raise TypeError(f"{kind.__name__} has no field {name!r}{hint} It has {', '.join(known)}.")


def _fields(kind: type[Event]) -> set[str]:
    fields = {field.name for field in dataclasses.fields(kind)}
    for narrower in kind.__subclasses__():
        fields |= _fields(narrower)
    return fields


def _value(value: Any) -> str:
    return _name(value) if callable(value) else repr(value)


def _name(predicate: Callable[..., Any]) -> str:
    """``<lambda> in line 12`` or the name of a function."""
    name: str = getattr(predicate, "__name__", repr(predicate))
    code = getattr(predicate, "__code__", None)
    return f"{name} of line {code.co_firstlineno}" if code is not None and name == "<lambda>" else name
