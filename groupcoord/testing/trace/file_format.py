"""The file format of traces, JSON Lines as documented in docs/trace.md: writing and reading.

The first line is a header (schema, version, start time, dropped events); every other line is an entry. ``VERSION`` changes when
the fields of the entries themselves change. New event types, and new fields of an event, do not change it: readers must ignore
unknown ones.
"""

import dataclasses
import enum
import functools
import json
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from groupcoord.broker import events as broker
from groupcoord.client.member import member_events as client
from groupcoord.coordinator import events as coordinator
from groupcoord.coordinator.transaction import events as transaction
from groupcoord.core.events import AdminAction, Answered, BrokerTask, Cause, Event, Requested, TimerFired
from groupcoord.testing.faults import layer as faults
from groupcoord.testing.trace import events as trace
from groupcoord.testing.trace.events import TraceEntry

SCHEMA = "groupcoord-trace"
VERSION = 2

_CAUSES: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Requested, TimerFired, AdminAction, BrokerTask, Answered)
}
_UNNAMED = (
    coordinator.GroupEvent,
    transaction.TransactionEvent,
    client.MemberEvent,
    faults.FaultEvent,
    trace.RequestEvent,
    trace.UnknownEvent,
)
"""Event types that are not in files: base classes, and UnknownEvent."""

TYPES: dict[str, type[Event]] = {}
"""Event types by their names in a file: a prefix for the part that defines them, and the class name."""


def register(prefix: str, *kinds: type[Event]) -> None:
    """Register event types as ``prefix.NAME``, so that they can be saved and loaded.

    Raises ValueError if another class has the name.
    """
    for kind in kinds:
        name = f"{prefix}.{kind.__name__}"
        if TYPES.setdefault(name, kind) is not kind:
            raise ValueError(f"{name} is the name of another event type")


def _register_all(prefix: str, module: types.ModuleType) -> None:
    for kind in vars(module).values():
        is_own = isinstance(kind, type) and kind.__module__ == module.__name__ and issubclass(kind, Event)
        if is_own and kind not in _UNNAMED:
            register(prefix, kind)


for _prefix, _module in {
    "coordinator": coordinator,
    "transaction": transaction,
    "broker": broker,
    "client": client,
    "faults": faults,
    "trace": trace,
}.items():
    _register_all(_prefix, _module)


def name_of(kind: type[Event]) -> str:
    """The name of the event type ``kind`` in a file. Raises ValueError for one that is not registered."""
    if kind is trace.UnknownEvent:
        return "trace.UnknownEvent"
    for name, known in TYPES.items():
        if known is kind:
            return name
    raise ValueError(f"events of {kind.__module__}.{kind.__qualname__} cannot be saved: register() them first")


def own_fields(kind: type[Event]) -> tuple[str, ...]:
    """The fields of ``kind``, without those of every event."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in ("at_ms", "cause"))


def lines(entries: Iterable[TraceEntry], *, start_ms: int | None, dropped: Mapping[str, int]) -> Iterator[str]:
    """The lines of the file, each with its line end. Raises ValueError for unknown event types, TypeError for values that JSON
    cannot represent."""
    header = {"schema": SCHEMA, "version": VERSION, "start_ms": start_ms, "dropped": dict(dropped)}
    for line in (header, *map(entry_as_json, entries)):
        yield f"{json.dumps(line, ensure_ascii=False)}\n"


def read(path: Path) -> tuple[int | None, Counter[type[Event]], list[TraceEntry]]:
    """Read a file: (start of the trace, number of dropped events by type, entries).

    Raises OSError, and ValueError, with the line number, for a file that is not a trace or of another version.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path} is not a trace: it is not UTF-8 text") from problem
    try:
        header = json.loads(lines[0]) if lines else {}
        known = isinstance(header, dict) and header.get("schema") == SCHEMA
    except json.JSONDecodeError:
        known = False
    if not known:
        raise ValueError(f"{path} is not a trace: its first line is not a trace header")
    if header.get("version") != VERSION:
        raise ValueError(f"{path} is a trace of version {header.get('version')}; version {VERSION} can be read")
    missing = [name for name in ("start_ms", "dropped") if name not in header]
    if missing:
        raise ValueError(f"line 1 of {path} is not a complete trace header: it has no {' and no '.join(missing)}")
    entries = []
    start_ms = header["start_ms"]
    for number, line in enumerate(lines[1:], 2):
        try:
            entries.append(_entry_of(json.loads(line), start_ms))
        except (ValueError, KeyError, TypeError) as problem:
            raise ValueError(f"line {number} of {path} is not an entry of a trace: {problem}") from problem
    dropped: Counter[type[Event]] = Counter()
    for name, count in header["dropped"].items():
        dropped[TYPES.get(name, trace.UnknownEvent)] += count
    return start_ms, dropped, entries


def entry_as_json(entry: TraceEntry) -> dict[str, Any]:
    """The JSON object of ``entry``. Raises ValueError for an unknown event type."""
    event = entry.event
    if isinstance(event, trace.UnknownEvent):
        name, fields = event.name, event.fields
    else:
        name = name_of(type(event))
        fields = {own: getattr(event, own) for own in own_fields(type(event))}
    return {
        "seq": entry.seq,
        "at_ms": event.at_ms,
        "real_ms": entry.real_ms,
        "event": name,
        "caused_by": entry.cause,
        "answers": entry.answers,
        "cause": {"type": type(event.cause).__name__, **event.cause._asdict()},
        "fields": fields,
        "text": event.text(),
    }


def _entry_of(line: dict[str, Any], start_ms: int) -> TraceEntry:
    said = dict(line["cause"])
    cause: Cause = _CAUSES[said.pop("type")](**said)
    kind = TYPES.get(line["event"])
    event: Event
    if kind is None:
        event = trace.UnknownEvent(
            at_ms=line["at_ms"], cause=cause, name=line["event"], told=line["text"], fields=line["fields"]
        )
    else:
        hints = _hints(line["event"])
        fields = {name: _value(hints[name], value) for name, value in line["fields"].items() if name in hints}
        event = kind(at_ms=line["at_ms"], cause=cause, **fields)
    since_start_ms = event.at_ms - start_ms
    links = line["caused_by"], line["answers"]
    return TraceEntry(line["seq"], since_start_ms, event, *links, real_ms=line["real_ms"])


@functools.cache
def _hints(name: str) -> dict[str, Any]:
    """The types of the fields of that event type; cached, because a file has many entries of few types."""
    return typing.get_type_hints(TYPES[name])


def _value(hint: Any, value: Any) -> Any:
    """The JSON ``value`` converted to the type ``hint``: lists to tuples, texts to enum members."""
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    args = get_args(hint)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return None if value is None else _value(next(arg for arg in args if arg is not type(None)), value)
    if isinstance(value, list):
        return tuple(_value(args[0] if args else Any, each) for each in value)
    if isinstance(value, dict):
        return {name: _value(args[1] if args else Any, each) for name, each in value.items()}
    return value
