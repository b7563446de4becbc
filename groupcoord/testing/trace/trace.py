"""Everything that happened, in order, each with what made it happen: to ask, to read, to draw and to keep."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, TypeVar, assert_never, overload

from groupcoord.core.events import AdminAction, Answered, Event, Requested, TimerFired
from groupcoord.testing.trace import mermaid, schema, why
from groupcoord.testing.trace.entry import Entry
from groupcoord.testing.trace.events import (
    AdminActionRun,
    ConnectionClosed,
    ConnectionOpened,
    Exchange,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    TimerExpired,
)
from groupcoord.testing.trace.names import Names
from groupcoord.testing.trace.selection import Selection, check_fields

E = TypeVar("E", bound=Event)

Moment = float | Entry
"""A moment of a trace: seconds since its start, or one of its entries."""

LIMIT = 100_000

_CHATTER = (Exchange, ConnectionOpened, ConnectionClosed)
_ENDS = (ResponseSent, RequestUnanswered)


class Trace:
    """Collects events: call it with each, as a listener or from a TracingNode. It may be read from any thread meanwhile.

    At most ``limit`` entries are kept. Requests, answers and connections are let go first, the oldest first, until they are
    less than half; then whatever is oldest. ``start_ms`` is the time from which its seconds count, by default that of the
    first event.
    """

    def __init__(self, *, limit: int = LIMIT, start_ms: int | None = None) -> None:
        if limit < 1:
            raise ValueError(f"a trace of {limit} entries")
        self.limit = limit
        self.start_ms = start_ms
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._chatter: deque[int] = deque()
        self._let_go: Counter[type[Event]] = Counter()
        self._last_seq = 0
        self._roots: dict[Hashable, int] = {}
        """The entries that may be causes, by what causes say of them."""

    # Collecting.

    def __call__(self, event: Event) -> None:
        """``event`` happened."""
        with self._lock:
            if self.start_ms is None:
                self.start_ms = event.at_ms
            if isinstance(event, RequestReceived):
                self._add(event, None)
            else:
                self._add(event, self._cause_of(event), self._request_of(event))

    def _add(self, event: Event, cause: int | None, answers: int | None = None) -> int:
        self._last_seq = seq = self._last_seq + 1
        self.insert(Entry(seq, event.at_ms - (self.start_ms or 0), event, cause, answers))
        while len(self._entries) > self.limit:
            self._let_one_go()
        return seq

    def insert(self, entry: Entry) -> None:
        """Put ``entry``, whose links are known, behind all others, as is done when a trace is read back."""
        self._entries[entry.seq] = entry
        self._last_seq = entry.seq
        if isinstance(entry.event, _CHATTER):
            self._chatter.append(entry.seq)
        root = _root_of(entry.event)
        if root is not None:
            self._roots[root] = entry.seq
        if entry.cause is not None and (made_by := self._entries.get(entry.cause)) is not None:
            made_by.caused(entry.seq)

    def _let_one_go(self) -> None:
        if len(self._chatter) > self.limit // 2:
            entry = self._entries.pop(self._chatter.popleft())
        else:
            _, entry = self._entries.popitem(last=False)
            if self._chatter and self._chatter[0] == entry.seq:
                self._chatter.popleft()
        self._let_go[type(entry.event)] += 1
        root = _root_of(entry.event)
        if self._roots.get(root) == entry.seq:
            del self._roots[root]

    def _cause_of(self, event: Event) -> int | None:
        """The entry of what made ``event`` happen; timers and admin actions get one with their first event."""
        cause = event.cause
        match cause:
            case Requested():
                return self._roots.get((cause.connection_id, cause.correlation_id))
            case TimerFired():
                known = self._roots.get(cause)
                return known or self._add(TimerExpired(at_ms=event.at_ms, cause=cause, **cause._asdict()), None)
            case AdminAction():
                if isinstance(event, ConnectionOpened | ConnectionClosed):
                    return None
                known = self._roots.get((cause, event.at_ms))
                return known or self._add(AdminActionRun(at_ms=event.at_ms, cause=cause, action=cause.action), None)
            case Answered():
                member = getattr(event, "member", "")
                return self._roots.get((cause.api, member)) or self._roots.get((cause.api, ""))
            case _:
                assert_never(cause)

    def _request_of(self, event: Event) -> int | None:
        if not isinstance(event, _ENDS):
            return None
        return self._roots.get((event.connection_id, event.correlation_id))

    # Asking.

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def __getitem__(self, seq: int) -> Entry:
        """The entry with that number. Raises KeyError, which says so, if it was let go."""
        with self._lock:
            try:
                return self._entries[seq]
            except KeyError:
                gone = "was let go" if 0 < seq <= self._last_seq else "never was"
                raise KeyError(f"entry {seq} {gone}") from None

    def __repr__(self) -> str:
        gone = f", {self.let_go} let go" if self.let_go else ""
        return f"<Trace of {len(self)} entries{gone}>"

    def entries(
        self, *, since: Moment | None = None, until: Moment | None = None, group: str | None = None
    ) -> tuple[Entry, ...]:
        """The entries from ``since`` to ``until``, both included, that are about ``group``."""
        with self._lock:
            all_entries = tuple(self._entries.values())
        return tuple(
            entry
            for entry in all_entries
            if not (since is not None and _is_before(entry, since))
            and not (until is not None and _is_after(entry, until))
            and (group is None or entry.concerns(group))
        )

    def entry(self, event: Event) -> Entry:
        """The entry of ``event``. Raises LookupError if it has none, or no longer."""
        for entry in self.entries():
            if entry.event is event:
                return entry
        raise LookupError(f"the trace has no entry of {event!r}")

    def let_go_of(self, kind: type[Event] = Event) -> int:
        """How many events of ``kind`` the trace no longer has."""
        with self._lock:
            return sum(count for each, count in self._let_go.items() if issubclass(each, kind))

    @property
    def let_go(self) -> int:
        """How many entries the trace no longer has."""
        return self.let_go_of()

    @overload
    def of(self, /, **match: Any) -> Selection[Event]: ...

    @overload
    def of(self, kind: type[E], /, **match: Any) -> Selection[E]: ...

    def of(self, kind: type[Any] = Event, /, **match: Any) -> Selection[Any]:
        """The events of ``kind`` whose fields have the values in ``match``; a value that can be called is a predicate.

        Raises TypeError for a field that no such event has.
        """
        check_fields(kind, tuple(match))
        return Selection(self.entries(), kind, match, self.let_go_of(kind))

    # Telling.

    def text(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        group: str | None = None,
        limit: int | None = None,
        links: bool = True,
        short: bool = True,
    ) -> str:
        """The entries for people, one a line; with ``limit`` only the last so many. See ``Entry.text`` for ``links``.

        ``short`` puts the names of members in the place of their ids: that of the client, as far as it is the only one.
        """
        entries = self.entries(since=since, until=until, group=group)
        lines = [f"({self.let_go} older entries were let go)"] if self.let_go else []
        if limit is not None and len(entries) > limit:
            lines.append(f"({len(entries) - limit} entries before)")
            entries = entries[len(entries) - limit :]
        text = "\n".join([*lines, *(entry.text(links=links) for entry in entries)])
        return Names(self.entries()).shortened(text) if short else text

    def mermaid(
        self,
        *,
        group: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = mermaid.LIMIT,
    ) -> str:
        """A sequence diagram in Mermaid's language, which GitHub draws: clients and the coordinator, and what happens.

        Heartbeats that change nothing are drawn as one. With more than ``limit`` steps, the last ones are drawn.
        """
        names = Names(self.entries())
        return mermaid.sequence_diagram(self.entries(since=since, until=until, group=group), names, limit=limit)

    def why(self, group: str, generation: int | None = None) -> str:
        """Why ``generation`` of ``group`` (by default the newest) began, in words.

        Raises LookupError, which says what is known, if the trace does not have its beginning.
        """
        return why.why(self.entries(), group, generation, let_go=self.let_go)

    # Keeping.

    def save(self, path: str | Path) -> None:
        """Write the trace to ``path``: one line of JSON for each entry, as docs/trace.md says."""
        entries = self.entries()
        with self._lock:
            let_go = {schema.name_of(kind): count for kind, count in self._let_go.items()}
        schema.write(Path(path), entries, start_ms=self.start_ms, let_go=let_go)

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read back what ``save`` wrote. Raises ValueError for a file that is none, or of another version."""
        start_ms, let_go, entries = schema.read(Path(path))
        trace = cls(limit=max(LIMIT, len(entries)), start_ms=start_ms)
        trace._let_go.update(let_go)
        for entry in entries:
            trace.insert(entry)
        return trace


def _root_of(event: Event) -> Hashable:
    """By what a cause names this event; None for what is never a cause."""
    match event:
        case RequestReceived():
            return event.connection_id, event.correlation_id
        case ResponseSent():
            return event.api, event.member
        case TimerExpired():
            return event.cause
        case AdminActionRun():
            return event.cause, event.at_ms
        case _:
            return None


def _is_before(entry: Entry, moment: Moment) -> bool:
    return entry.seq < moment.seq if isinstance(moment, Entry) else entry.seconds < moment


def _is_after(entry: Entry, moment: Moment) -> bool:
    return entry.seq > moment.seq if isinstance(moment, Entry) else entry.seconds > moment
