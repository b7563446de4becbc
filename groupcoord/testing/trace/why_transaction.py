"""Explains a transaction: which client began it, what ended it, and why its producer or a zombie was refused."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from groupcoord.coordinator.events import RequestRefused
from groupcoord.coordinator.transaction.events import (
    AbortReason,
    TransactionChanged,
    TransactionEvent,
    TransactionRefused,
)
from groupcoord.coordinator.transaction.metadata import PREPARED, TransactionState
from groupcoord.core.events import Cause, Requested, counted
from groupcoord.protocol.apis.find_coordinator import TRANSACTION
from groupcoord.protocol.errors import ErrorCode
from groupcoord.testing.faults.layer import FaultInjected
from groupcoord.testing.trace.events import (
    AdminActionRun,
    BrokerTaskRun,
    RequestReceived,
    ResponseSent,
    TimerExpired,
    TraceEntry,
)
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import duration, listed, moment

SHOWN = 6
"""How many partitions are named; of the others only the number."""

_ONGOING, _EMPTY = TransactionState.ONGOING.value, TransactionState.EMPTY.value
_COMMITS, _ABORTS = TransactionState.PREPARE_COMMIT.value, TransactionState.PREPARE_ABORT.value
_PREPARED = frozenset(state.value for state in PREPARED)
_FENCED = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING"})
_LOOKING = frozenset({"FindCoordinator", "DescribeTransactions", "ListTransactions"})


class _Change(NamedTuple):
    """A change of the transaction's state that was stored."""

    entry: TraceEntry
    event: TransactionChanged

    @property
    def at(self) -> str:
        return moment(self.entry.since_start_ms)

    @property
    def producer(self) -> tuple[int, int]:
        return self.event.producer_id, self.event.producer_epoch


class _Refusal(NamedTuple):
    """A request that was refused."""

    entry: TraceEntry
    api: str
    client: str
    error: str
    why: str

    @property
    def is_retriable(self) -> bool:
        return self.error in ErrorCode.__members__ and ErrorCode[self.error].retriable


def why_transaction(entries: Sequence[TraceEntry], transactional_id: str) -> str:
    """Explains the last aborted transaction of ``transactional_id``, or else the last one.

    With the requests that were refused since it began. Raises LookupError if the trace has nothing of that transactional id.
    """
    own = of_transaction(entries, transactional_id)
    changes = [_Change(entry, entry.event) for entry in own if isinstance(entry.event, TransactionChanged)]
    refusals = list(_refusals(own))
    if not changes and not refusals:
        known = {entry.event.transactional_id: None for entry in entries if isinstance(entry.event, TransactionEvent)}
        text = f"the trace knows nothing of transactional id {transactional_id!r}"
        text += f", but of {listed([repr(name) for name in known])}" if known else ""
        raise LookupError(text)
    clauses = _TransactionExplanation(entries, changes, refusals).clauses()
    return ShortMemberNames(entries).shortened(f"transaction {transactional_id}: {'; '.join(clauses)}")


class _TransactionExplanation:
    def __init__(self, entries: Sequence[TraceEntry], changes: Sequence[_Change], refusals: Sequence[_Refusal]) -> None:
        self._entries, self._changes, self._refused = entries, changes, refusals
        ends = [place for place, change in enumerate(changes) if change.event.after in _PREPARED]
        aborted = [place for place in ends if changes[place].event.after == _ABORTS]
        open_still = [len(changes)] if changes and changes[-1].event.after == _ONGOING else []
        self._end_place = (aborted or open_still or ends or [len(changes)])[-1]
        self._place = self._end_place
        while self._place and changes[self._place - 1].event.after == _ONGOING:
            self._place -= 1
        self._opening = changes[self._place : self._end_place]
        self._end = changes[self._end_place] if self._end_place < len(changes) else None
        self._later = changes[self._end_place + 1 :]

    def clauses(self) -> Iterator[str]:
        begun = self._opening[0] if self._opening else None
        if begun is not None:
            yield self._began(begun)
            yield from self._markers_of_others(begun)
        if self._end is not None:
            yield self._ended(self._end, begun)
            yield from self._hanging(self._end)
        elif begun is not None:
            yield "it is open still"
        else:
            yield "no transaction was begun"
        since = begun or self._end
        refused = [each for each in self._refused if since is None or each.entry.seq >= since.entry.seq]
        yield from self._refusals(refused)
        commits = sum(change.event.after == _COMMITS for change in self._later)
        if commits:
            yield f"since then {counted(commits, 'transaction')} {'was' if commits == 1 else 'were'} committed"
        if self._later and self._later[-1].event.after == _ONGOING:
            yield f"{_who(self._later[-1].event.cause)} has another one open"

    def _began(self, begun: _Change) -> str:
        producer, epoch = begun.producer
        text = f"{_who(begun.event.cause)} (producer {producer}, epoch {epoch}) began it at {begun.at}"
        partitions = self._opening[-1].event.partitions
        names = [f"{topic}-{number}" for topic, number in sorted(partitions)[:SHOWN]]
        more = len(partitions) - SHOWN
        return f"{text}, with {listed(names + ([f'{more} more'] if more > 0 else []))}"

    def _ended(self, end: _Change, begun: _Change | None) -> str:
        cause, reason = end.event.cause, end.event.reason
        if end.event.after == _COMMITS:
            return f"it was committed at {end.at}, as {_who(cause)} asked for it"
        is_empty = end.event.before != _ONGOING
        what = f"{'an empty one' if is_empty else 'it'} was aborted at {end.at}"
        if reason is AbortReason.ASKED:
            return f"{what}, as {_who(cause)} asked for it"
        if reason is AbortReason.FENCED:
            why = f"{_who(cause)} was initialised with its transactional id (InitProducerId)"
        elif reason is AbortReason.TIMED_OUT:
            why = f"it was open for longer than {self._timeout()}"
            if begun is not None:
                why += f", for {duration(end.entry.at_ms - begun.entry.at_ms)} when the coordinator looked"
        else:
            why = "an administrator wanted it"
        return f"{what}, because {why}, which fences its producer: the epoch is {end.event.producer_epoch} from then on"

    def _timeout(self) -> str:
        """The transaction timeout of its producer, if the InitProducerId request is in the trace."""
        for change in reversed(self._changes[: self._place]):
            if change.event.after == _EMPTY:
                for entry in self._entries:
                    if entry.seq == change.entry.cause and isinstance(entry.event, RequestReceived):
                        return f"its timeout of {duration(int(str(entry.event.details['transaction_timeout_ms'])))}"
        return "its timeout"

    def _hanging(self, end: _Change) -> Iterator[str]:
        """That not all partitions have their transaction marker yet, if no Complete state was stored after ``end``."""
        if not self._later:
            yield f"it is {end.event.after} still: not all of its partitions know"

    def _markers_of_others(self, begun: _Change) -> Iterator[str]:
        """Transaction markers that an administrator wrote with WriteTxnMarkers, without the coordinator."""
        producer_id, _ = begun.producer
        until = self._end.entry.seq if self._end else None
        for entry in self._entries:
            event = entry.event
            if entry.seq < begun.entry.seq or (until is not None and entry.seq > until):
                continue
            if isinstance(event, RequestReceived) and event.api == "WriteTxnMarkers":
                producers, markers = event.details.get("producers"), event.details.get("markers")
                if isinstance(producers, tuple) and isinstance(markers, tuple) and producer_id in producers:
                    how = "wrote markers past its coordinator (WriteTxnMarkers)"
                    told = listed([str(marker) for marker in markers])
                    yield f"{event.client_name} {how} at {moment(entry.since_start_ms)}: {told}"

    def _refusals(self, refused: Sequence[_Refusal]) -> Iterator[str]:
        """The refused requests; those with retriable errors only if there are no others."""
        final = [each for each in refused if not each.is_retriable] or refused
        for _, group in groupby(final, key=lambda each: (each.api, each.client, each.error, each.why)):
            same = list(group)
            first = same[0]
            text = (
                f"{first.api} of {first.client} was refused with {first.error} at {moment(first.entry.since_start_ms)}"
            )
            if len(same) > 1:
                text += f" and {counted(len(same) - 1, 'time')} more"
            text += f": {first.why}" if first.why else ""
            yield text + (self._whose_epoch(first) if first.error in _FENCED else "")

    def _whose_epoch(self, refusal: _Refusal) -> str:
        """What had set the epoch of the transactional id by which the producer was fenced."""
        before = [change for change in self._changes if change.entry.seq < refusal.entry.seq]
        if not before:
            return ""
        newest = before[-1].producer
        origin = next(change for change in before if change.producer == newest)
        if origin.event.after == _EMPTY:
            gained = f"{_who(origin.event.cause)} was initialised with at {origin.at}"
        else:
            ended = "commit" if origin.event.after == _COMMITS else "abort"
            gained = f"the {ended} at {origin.at} brought"
        return f" (epoch {newest[1]} is what {gained})"


def _refusals(own: Sequence[TraceEntry]) -> Iterator[_Refusal]:
    """The requests that were refused, in the order of their responses."""
    requests = {entry.seq: entry.event for entry in own if isinstance(entry.event, RequestReceived)}
    reasons = {
        entry.cause: entry.event for entry in own if isinstance(entry.event, TransactionRefused | RequestRefused)
    }
    faults = {entry.cause: entry.event for entry in own if isinstance(entry.event, FaultInjected)}
    for entry in own:
        event = entry.event
        if isinstance(event, ResponseSent) and event.error != "NONE" and entry.answers in requests:
            if event.api not in _LOOKING:
                fault, reason = faults.get(entry.answers), reasons.get(entry.answers)
                by_rule = fault is not None and event.error in fault.action  # it may have been held, and refused later
                why = f"{fault.name} says so" if fault and by_rule else reason.why if reason else ""
                yield _Refusal(entry, event.api, event.client_name, event.error, why)
        elif isinstance(event, TransactionRefused) and entry.cause not in requests and event.api not in _LOOKING:
            yield _Refusal(entry, event.api, _who(event.cause), event.error, event.why)  # the request was dropped


def _who(cause: Cause) -> str:
    """The client whose request was the cause, or the cause itself."""
    return cause.client_id or "a client without id" if isinstance(cause, Requested) else str(cause)


def of_transaction(entries: Sequence[TraceEntry], transactional_id: str) -> list[TraceEntry]:
    """The entries that name the transactional id, consequences of its requests, and administrative actions on it."""
    named = {entry.seq for entry in entries if transactional_id in _named_by(entry)}
    requests = {entry.seq for entry in entries if entry.seq in named and isinstance(entry.event, RequestReceived)}
    named |= {entry.seq for entry in entries if {entry.cause, entry.answers} & requests}
    return [
        entry
        for entry in entries
        if entry.seq in named
        or (isinstance(entry.event, AdminActionRun | BrokerTaskRun) and named.intersection(entry.consequences))
    ]


def _named_by(entry: TraceEntry) -> Iterable[object]:
    """The transactional ids that the event of ``entry`` names."""
    event = entry.event
    match event:
        case RequestReceived(details=details):
            keys = details.get("coordinator_keys") if details.get("key_type") == TRANSACTION else None
            several = details.get("transactional_ids") or keys
            return several if isinstance(several, tuple) else (details.get("transactional_id"),)
        case TimerExpired(kind=kind, scope=scope):
            return (scope,) if kind.startswith("transaction") else ()
        case _:
            return (getattr(event, "transactional_id", None),)
