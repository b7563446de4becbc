"""Trace, all events of a cluster in order, with their causes, to query, print, draw, explain and save; and Selection, the
result of a query."""

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar, assert_never, overload

from groupcoord.assignors import TopicPartition
from groupcoord.core.events import AdminAction, Answered, BrokerTask, Event, Requested, TimerFired
from groupcoord.testing.trace import file_format, mermaid, why_epoch, why_generation, why_transaction
from groupcoord.testing.trace.coordinator_moves import CoordinatorMoves
from groupcoord.testing.trace.events import (
    AdminActionRun,
    BrokerTaskRun,
    ConnectionClosed,
    ConnectionOpened,
    RequestEvent,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    TimerExpired,
    TraceEntry,
    check_fields,
)
from groupcoord.testing.trace.folding import QuietExchanges, folded
from groupcoord.testing.trace.generation_history import GenerationHistory, groups_of
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.why_member import MemberExplanation
from groupcoord.testing.trace.why_transaction import of_transaction

E = TypeVar("E", bound=Event)

Moment = float | TraceEntry
"""A moment of a trace: seconds since its start, or one of its entries."""

LIMIT = 100_000

_REQUESTS_AND_CONNECTIONS = (RequestEvent, ConnectionOpened, ConnectionClosed)
_ENDS = (ResponseSent, RequestUnanswered)


E_co = TypeVar("E_co", bound=Event, covariant=True)

SHOWN = 5
"""How many entries the text of a failed assertion shows, of those that nearly match or that should not."""

_MISSING = object()


class Selection(Sequence[E_co], Generic[E_co]):
    """The events of ``kind`` whose fields have the values in ``match``, in order.

    It does not change when the trace grows. ``dropped`` is how many events of that kind the trace has dropped.
    """

    def __init__(
        self, candidates: Sequence[TraceEntry], kind: type[E_co], match: Mapping[str, Any], dropped: int
    ) -> None:
        self._kind = kind
        self._match = match
        self._dropped = dropped
        self._all = tuple(candidates)
        self._candidates = tuple(entry for entry in candidates if isinstance(entry.event, kind))
        self.entries = tuple(entry for entry in self._candidates if not self._differences(entry.event))
        """The trace entries of the events, with their numbers, causes and consequences."""

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
        """The query in words."""
        match = ", ".join(f"{name}={_value(value)}" for name, value in self._match.items())
        return self._kind.__name__ + (f" with {match}" if match else "")

    @property
    def first(self) -> E_co:
        """The first event. Raises AssertionError if there is none."""
        self._expect(len(self) > 0, "at least one", sure=True)
        return self[0]

    @property
    def last(self) -> E_co:
        """The last event. Raises AssertionError if there is none."""
        self._expect(len(self) > 0, "at least one", sure=True)
        return self[-1]

    def one(self) -> E_co:
        """The only event. Raises AssertionError if there is not exactly one, or if the trace has dropped such events."""
        self._expect(len(self) == 1, "one", sure=False)
        return self[0]

    def none(self) -> None:
        """Raises AssertionError if there is such an event, or if the trace has dropped such events."""
        self._expect(not self, "no", sure=False)

    def _expect(self, fulfilled: bool, how_many: str, *, sure: bool) -> None:
        """Raise AssertionError unless ``fulfilled``; unless ``sure``, also if dropped events could change the result."""
        __tracebackhide__ = True  # pytest shows the line of the test
        if fulfilled and (sure or not self._dropped):
            return
        found = f"found {len(self) or 'none'}"
        lines = [f"expected {how_many} {self.wanted}, {found}."]
        if self._dropped:
            lines.append(f"The trace has dropped {self._dropped} older {self._kind.__name__}, so it cannot be sure.")
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
        """The fields of ``event`` that do not match, in words."""
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


def _value(value: Any) -> str:
    return _name(value) if callable(value) else repr(value)


def _name(predicate: Callable[..., Any]) -> str:
    """``<lambda> of line 12``, or the name of a function."""
    name: str = getattr(predicate, "__name__", repr(predicate))
    code = getattr(predicate, "__code__", None)
    return f"{name} of line {code.co_firstlineno}" if code is not None and name == "<lambda>" else name


class Trace:
    """Collects events: it is called with each, as a listener or by a TracingLayer. It may be read from any thread.

    At most ``limit`` entries are kept. Requests, responses and connections are dropped first, the oldest first, while they are
    more than half; then the oldest entries of any kind. ``start_ms`` is the time from which its seconds count, by default that
    of the first event. ``monotonic_ns`` is a real-time clock (nanoseconds) for the ``real_ms`` of entries.
    """

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        start_ms: int | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if limit < 1:
            raise ValueError(f"a trace of {limit} entries")
        self.limit = limit
        self.start_ms = start_ms
        self._monotonic_ns = monotonic_ns
        self._begun_ns = monotonic_ns()
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, TraceEntry] = OrderedDict()
        self._dropped_first: deque[int] = deque()
        self._dropped: Counter[type[Event]] = Counter()
        self._last_seq = 0
        self._listeners: tuple[Callable[[], None], ...] = ()
        self._roots: dict[Hashable, int] = {}
        """The entries that may be causes, by the keys with which causes refer to them: see ``_roots_of``."""

    # Collecting.

    def __call__(self, event: Event) -> None:
        """Add ``event``."""
        with self._lock:
            if self.start_ms is None:
                self.start_ms = event.at_ms
            if isinstance(event, RequestReceived):
                self._add(event, None)
            else:
                self._add(event, self._cause_of(event), self._request_of(event))

    def _add(self, event: Event, cause: int | None, answers: int | None = None) -> int:
        self._last_seq = seq = self._last_seq + 1
        real_ms = (self._monotonic_ns() - self._begun_ns) // 1_000_000
        self.insert(TraceEntry(seq, event.at_ms - (self.start_ms or 0), event, cause, answers, real_ms=real_ms))
        while len(self._entries) > self.limit:
            self._drop_one()
        for listener in self._listeners:
            listener()
        return seq

    def on_entry(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` for every new entry, which it can get by ``after``; returns a function that removes the listener.

        It is called while the trace is locked, so it may only note that there is something to read.
        """
        self._listeners += (listener,)

        def end() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return end

    def insert(self, entry: TraceEntry) -> None:
        """Append ``entry``, whose links are known already, as when a trace is loaded from a file."""
        self._entries[entry.seq] = entry
        self._last_seq = entry.seq
        if isinstance(entry.event, _REQUESTS_AND_CONNECTIONS):
            self._dropped_first.append(entry.seq)
        for root in _roots_of(entry.event):
            self._roots[root] = entry.seq
        if entry.cause is not None and (made_by := self._entries.get(entry.cause)) is not None:
            made_by.consequences += (entry.seq,)

    def _drop_one(self) -> None:
        if len(self._dropped_first) > self.limit // 2:
            entry = self._entries.pop(self._dropped_first.popleft())
        else:
            _, entry = self._entries.popitem(last=False)
            if self._dropped_first and self._dropped_first[0] == entry.seq:
                self._dropped_first.popleft()
        self._dropped[type(entry.event)] += 1
        for root in _roots_of(entry.event):
            if self._roots.get(root) == entry.seq:
                del self._roots[root]

    def _cause_of(self, event: Event) -> int | None:
        """The number of the entry that caused ``event``; timers, actions and tasks get an entry with their first event.

        Different timers or actions may compare equal, so they are distinguished by the identity of their cause object.
        """
        cause = event.cause
        match cause:
            case Requested():
                return self._roots.get((cause.connection_id, cause.correlation_id))
            case TimerFired():
                known = self._roots.get(id(cause))
                return known or self._add(TimerExpired(at_ms=event.at_ms, cause=cause, **cause._asdict()), None)
            case AdminAction():
                if isinstance(event, ConnectionOpened | ConnectionClosed):
                    return None
                known = self._roots.get(id(cause))
                return known or self._add(AdminActionRun(at_ms=event.at_ms, cause=cause, action=cause.action), None)
            case BrokerTask():
                known = self._roots.get(id(cause))
                return known or self._add(BrokerTaskRun(at_ms=event.at_ms, cause=cause, task=cause.task), None)
            case Answered(connection_id=int(connection_id), correlation_id=correlation_id):
                return self._roots.get((ResponseSent, connection_id, correlation_id))
            case Answered():
                member = getattr(event, "member", "")
                return self._roots.get((cause.api, member)) or self._roots.get((cause.api, ""))
            case _:
                assert_never(cause)

    def _request_of(self, event: Event) -> int | None:
        if not isinstance(event, _ENDS):
            return None
        return self._roots.get((event.connection_id, event.correlation_id))

    # Queries.

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[TraceEntry]:
        return iter(self.entries())

    def __getitem__(self, seq: int) -> TraceEntry:
        """The entry with that number. Raises KeyError if it was dropped or never existed."""
        with self._lock:
            try:
                return self._entries[seq]
            except KeyError:
                gone = "was dropped" if 0 < seq <= self._last_seq else "never was"
                raise KeyError(f"entry {seq} {gone}") from None

    def __repr__(self) -> str:
        gone = f", {self.dropped} dropped" if self.dropped else ""
        return f"<Trace of {len(self)} entries{gone}>"

    def entries(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        group: str | None = None,
        transaction: str | None = None,
    ) -> tuple[TraceEntry, ...]:
        """The entries from ``since`` to ``until``, both included; only those about ``group`` or ``transaction``, if given.

        Their causes are included, too, such as an action of the test.
        """
        with self._lock:
            all_entries: Sequence[TraceEntry] = tuple(self._entries.values())
        if transaction is not None:
            all_entries = of_transaction(all_entries, transaction)
        if group is not None:
            all_entries = _of_group(all_entries, group)
        return tuple(
            entry
            for entry in all_entries
            if not (since is not None and _is_before(entry, since))
            and not (until is not None and _is_after(entry, until))
        )

    def after(self, seq: int) -> list[TraceEntry]:
        """The entries after number ``seq``, in time proportional to their number."""
        with self._lock:
            return list(takewhile(lambda entry: entry.seq > seq, reversed(self._entries.values())))[::-1]

    @property
    def last_seq(self) -> int:
        """The number of the newest entry; 0 if there was none."""
        return self._last_seq

    def entry(self, event: Event) -> TraceEntry:
        """The entry of ``event``. Raises LookupError if it has none or was dropped."""
        for entry in self.entries():
            if entry.event is event:
                return entry
        raise LookupError(f"the trace has no entry of {event!r}")

    def dropped_of(self, kind: type[Event] = Event) -> int:
        """How many events of ``kind`` were dropped."""
        with self._lock:
            return sum(count for each, count in self._dropped.items() if issubclass(each, kind))

    @property
    def dropped(self) -> int:
        """How many entries were dropped."""
        return self.dropped_of()

    @overload
    def of(self, /, **match: Any) -> Selection[Event]: ...

    @overload
    def of(self, kind: type[E], /, **match: Any) -> Selection[E]: ...

    def of(self, kind: type[Any] = Event, /, **match: Any) -> Selection[Any]:
        """The events of ``kind`` whose fields have the values in ``match``; a callable value is a predicate.

        Raises TypeError for an unknown field or type.
        """
        check_fields(kind, tuple(match))
        return Selection(self.entries(), kind, match, self.dropped_of(kind))

    # As text.

    def text(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        group: str | None = None,
        transaction: str | None = None,
        limit: int | None = None,
        links: bool = True,
        short: bool = True,
        real: bool = False,
        fold: bool = False,
    ) -> str:
        """The entries as text, one in a line; with ``limit`` only the last lines. See ``TraceEntry.text`` for ``links`` and
        ``real``.

        ``short`` replaces member ids by short names: the client id, if it is unique. ``fold`` shows requests without effect in
        one line for each client (heartbeats, empty fetches, commits of committed offsets), and sums up idle coordinators.
        """
        entries = self.entries(since=since, until=until, group=group, transaction=transaction)
        names = ShortMemberNames(self.entries() if short else ())
        shown: Sequence[TraceEntry | QuietExchanges | CoordinatorMoves] = (
            tuple(folded(entries, names)) if fold else entries
        )
        lines = [f"({self.dropped} older entries were dropped)"] if self.dropped else []
        if limit is not None and len(shown) > limit:
            lines.append(f"({len(shown) - limit} {'lines' if fold else 'entries'} before)")
            shown = shown[len(shown) - limit :]
        text = "\n".join([*lines, *(each.text(links=links, real=real) for each in shown)])
        return names.shortened(text)

    def mermaid(
        self,
        *,
        group: str | None = None,
        transaction: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = mermaid.LIMIT,
    ) -> str:
        """A Mermaid sequence diagram, which GitHub renders: clients, the coordinator, requests and events.

        Requests without effect are folded. At most the last ``limit`` steps are drawn.
        """
        names = ShortMemberNames(self.entries())
        entries = self.entries(since=since, until=until, group=group, transaction=transaction)
        return mermaid.sequence_diagram(entries, names, limit=limit)

    def groups(self) -> tuple[str, ...]:
        """The groups of which the trace has coordinator events, in the order of their first events."""
        return groups_of(self.entries())

    def generations(self, group: str, *, cause: TraceEntry | Event | None = None) -> tuple[int, ...]:
        """The generations of ``group`` whose beginning the trace has, in order; for a consumer group (KIP-848) its epochs.

        With ``cause`` (a request, timer, action, or a consequence of one) only those to which it led. Raises LookupError if the
        trace has no entry of ``cause``.
        """
        history = GenerationHistory(self.entries(), group)
        begun = history.beginnings() if cause is None else history.led_to(self._entry_of(cause))
        return tuple(dict.fromkeys(each.number for each in begun))

    def why(
        self,
        group: str | None = None,
        generation: int | None = None,
        *,
        epoch: int | None = None,
        member: str | None = None,
        lost: TopicPartition | None = None,
        got: TopicPartition | None = None,
        cause: TraceEntry | Event | None = None,
        transaction: str | None = None,
    ) -> str:
        """Explains in words why ``generation`` of ``group`` began, or ``epoch`` of a consumer group (KIP-848).

        By default the newest one. ``generation`` may be an epoch, too. Instead, one of these can be asked about a group:

        - ``member``: how it last joined, left or changed its subscription, and what that led to. It is a member id, instance
          id, client id or the short name in ``text``; if several members match, the one with the last such change.
        - ``lost=("orders", 3)``, ``got=("orders", 3)``: why ``member``, or any member, last lost or got that partition.
        - ``cause``, an entry or an event: why each generation or epoch to which it led began, one in a line.

        For a ``transaction`` (a transactional id): why its last aborted transaction, or else its last one, ended as it did, and
        why its producer or a zombie was refused.

        Raises LookupError, which says what is known, if the trace does not have it, and TypeError unless exactly one thing is
        asked.
        """
        asked = [
            "generation" if generation is not None else "",
            "epoch" if epoch is not None else "",
            "lost" if lost is not None else "got" if got is not None else "member" if member is not None else "",
            "got" if None not in (lost, got) else "",
            "cause" if cause is not None else "",
        ]
        names = [name for name in asked if name]
        if (group is None) is (transaction is None) or (transaction is not None and names):
            raise TypeError('why("app") explains a group, why(transaction="tid") a transaction: one of the two')
        if len(names) > 1:
            raise TypeError(f"why() explains one thing, not {' and '.join(names)}: ask for one after the other")
        made_by, entries = None if cause is None else self._entry_of(cause), self.entries()
        with self._saying_what_is_gone():
            if group is None:
                return why_transaction.why_transaction(entries, transaction or "")
            explanation = MemberExplanation(entries, group)
            if made_by is not None:
                return explanation.caused_by(made_by)
            if lost is not None:
                return explanation.lost(_checked(lost, "lost"), member)
            if got is not None:
                return explanation.got(_checked(got, "got"), member)
            if member is not None:
                return explanation.member(member)
            if epoch is None:
                epoch = _epoch_meant(GenerationHistory(entries, group), generation)
            if epoch is not None:
                return why_epoch.why_epoch(entries, group, epoch)
            return why_generation.why(entries, group, generation)

    @contextmanager
    def _saying_what_is_gone(self) -> Iterator[None]:
        try:
            yield
        except LookupError as unknown:
            if not self.dropped:
                raise
            raise LookupError(f"{unknown}; {self.dropped} older entries were dropped") from None

    def _entry_of(self, cause: TraceEntry | Event) -> TraceEntry:
        return cause if isinstance(cause, TraceEntry) else self.entry(cause)

    # As a file.

    def save(self, path: str | Path) -> None:
        """Write the trace to ``path``, in the file format of docs/trace.md (JSON Lines)."""
        from groupcoord.storage.file_io import write_output  # noqa: PLC0415 - Unix only

        write_output(Path(path), "".join(self.lines()))

    def lines(self) -> Iterator[str]:
        """The lines that ``save`` writes, each with its line end."""
        entries = self.entries()
        with self._lock:
            dropped = {file_format.name_of(kind): count for kind, count in self._dropped.items()}
        return file_format.lines(entries, start_ms=self.start_ms, dropped=dropped)

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Load a trace that ``save`` has written. Raises ValueError for a file that is not a trace or of another version."""
        start_ms, dropped, entries = file_format.read(Path(path))
        trace = cls(limit=max(LIMIT, len(entries)), start_ms=start_ms)
        trace._dropped.update(dropped)
        for entry in entries:
            trace.insert(entry)
        trace._begun_ns -= max((entry.real_ms for entry in entries), default=0) * 1_000_000
        return trace


def _of_group(entries: Sequence[TraceEntry], group: str) -> list[TraceEntry]:
    """The entries about ``group``, and their causes: requests, with their responses, timers and actions."""
    about = {entry.seq for entry in entries if entry.concerns(group)}
    causes = {entry.cause for entry in entries if entry.seq in about} - {None}
    return [entry for entry in entries if entry.seq in about or {entry.seq, entry.answers} & causes]


def _epoch_meant(history: GenerationHistory, generation: int | None) -> int | None:
    """``generation``, or the newest beginning if it is None, if that is an epoch; otherwise None."""
    if generation is not None:
        return generation if generation in history.epochs and generation not in history.generations else None
    *_, newest = [None, *history.beginnings()]
    return newest.number if newest is not None and newest.is_epoch else None


def _checked(partition: TopicPartition, argument: str) -> TopicPartition:
    match partition:
        case (str(), int()):
            return partition
        case _:
            raise TypeError(f'{argument}=("orders", 3) is a topic and the number of a partition, not {partition!r}')


def _roots_of(event: Event) -> tuple[Hashable, ...]:
    """The keys by which causes refer to this event; empty if it can never be a cause."""
    match event:
        case RequestReceived():
            return ((event.connection_id, event.correlation_id),)
        case ResponseSent():
            return (ResponseSent, event.connection_id, event.correlation_id), (event.api, event.member)
        case TimerExpired() | AdminActionRun() | BrokerTaskRun():
            return (id(event.cause),)  # the entry keeps the cause, so nothing else gets this id while it is here
        case _:
            return ()


def _is_before(entry: TraceEntry, moment: Moment) -> bool:
    return entry.seq < moment.seq if isinstance(moment, TraceEntry) else entry.seconds < moment


def _is_after(entry: TraceEntry, moment: Moment) -> bool:
    return entry.seq > moment.seq if isinstance(moment, TraceEntry) else entry.seconds > moment
