"""Folds requests without effect into one line for each client: successful heartbeats, empty fetches, and commits of offsets
that are already committed; and moves of coordinators without records. For the text of a trace and its diagram.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from groupcoord.coordinator.events import GroupEvent, OffsetsCommitted
from groupcoord.testing.trace.coordinator_moves import CoordinatorMoves, with_moves_folded
from groupcoord.testing.trace.events import (
    CONSUMER_GROUP_HEARTBEAT,
    RequestEvent,
    RequestReceived,
    ResponseSent,
    TimerExpired,
    TraceEntry,
)
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import moment

_OF_MEMBERS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", CONSUMER_GROUP_HEARTBEAT})
"""Requests that come only from the member itself; LeaveGroup may come from an administrator."""


@dataclass(frozen=True, slots=True)
class QuietExchanges:
    """Requests of one API and one client without effect, and their responses, with only such requests between them."""

    api: str
    who: str
    """The short name of the member, or the client if there is none."""
    client: str
    """The client, as ``client_names`` names it."""
    requests: tuple[TraceEntry, ...]
    at_ms: int
    """When the last of them, or of the requests folded with them, happened: milliseconds since the start of the trace."""

    @property
    def words(self) -> str:
        """``17 times Heartbeat of alice, all fine, 3.0 s to 51.0 s``."""
        count = len(self.requests)
        first_ms, last_ms = self.requests[0].since_start_ms, self.requests[-1].since_start_ms
        times = "" if count == 1 else f"{count} times "
        outcome = "nothing new" if self.api in ("Fetch", "OffsetCommit") else "fine" if count == 1 else "all fine"
        since = "" if first_ms == last_ms else f", {moment(first_ms)} to {moment(last_ms)}"
        return f"{times}{self.api} of {self.who}, {outcome}{since}"

    def text(self, *, links: bool = True, real: bool = False) -> str:
        """``#31–#64 @51000 17 times …``: the numbers of the first and the last request, milliseconds since the start, and the
        words. Without ``links`` the numbers of entries are left out; with ``real`` the real milliseconds of the last request
        follow those of the clock."""
        first, last = self.requests[0].seq, self.requests[-1].seq
        numbers = f"#{first} " if first == last else f"#{first}–#{last} "
        real_time = f" ({self.requests[-1].real_ms} ms)" if real else ""
        return f"{numbers if links else ''}@{self.at_ms}{real_time} {self.words}"


def folded(
    entries: Sequence[TraceEntry], names: ShortMemberNames
) -> Iterator[TraceEntry | QuietExchanges | CoordinatorMoves]:
    """``entries`` in order, with runs of requests without effect folded; they come where their last one was. So are moves of
    coordinators without records."""
    clients = client_names(entries, names)
    quiet = _quiet(entries)
    for changed_nothing, run in groupby(entries, key=lambda entry: entry.seq in quiet):
        if not changed_nothing:
            yield from with_moves_folded(tuple(run))
            continue
        requests: dict[tuple[str, str, str], list[TraceEntry]] = {}
        at_ms = 0
        for entry in run:
            at_ms = entry.since_start_ms
            if isinstance(event := entry.event, RequestReceived):
                client = clients[event.connection_id]
                who = names.of(event.member) if event.member else client
                requests.setdefault((event.api, who, client), []).append(entry)
        for (api, who, client), own in requests.items():
            yield QuietExchanges(api, who, client, tuple(own), at_ms)


def client_names(entries: Iterable[TraceEntry], names: ShortMemberNames) -> dict[int, str]:
    """What the client of each connection is called: as its member, if only one speaks there, or else by its client id."""
    ids: dict[int, str] = {}
    members: dict[int, set[str]] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, RequestEvent):
            ids.setdefault(event.connection_id, event.client_name)
            if event.api in _OF_MEMBERS and event.member:
                members.setdefault(event.connection_id, set()).add(names.of(event.member))
    return {
        number: next(iter(known)) if len(known := members.get(number, ())) == 1 else name
        for number, name in ids.items()
    }


def _quiet(entries: Sequence[TraceEntry]) -> frozenset[int]:
    """The numbers of the entries of requests that succeeded and changed nothing, of their responses, and of the timers that
    ended empty fetches."""
    commits = _commits_of_what_was_committed(entries)
    requests = {entry.seq: entry.event for entry in entries if isinstance(entry.event, RequestReceived)}
    quiet: set[int] = set()
    for entry in entries:
        request = requests.get(entry.answers or 0)
        if request is not None and isinstance(entry.event, ResponseSent) and _changed_nothing(request, entry.event):
            quiet |= {entry.answers or 0, entry.seq}
        elif isinstance(entry.event, ResponseSent) and entry.answers in commits and entry.event.error == "NONE":
            quiet |= {entry.answers or 0, entry.seq, commits[entry.answers]}
    timers = (entry for entry in entries if isinstance(entry.event, TimerExpired) and entry.event.kind == "fetch")
    quiet |= {entry.seq for entry in timers if quiet.issuperset(entry.consequences)}
    return frozenset(quiet)


def _commits_of_what_was_committed(entries: Iterable[TraceEntry]) -> dict[int | None, int]:
    """Requests → their OffsetsCommitted entries that change nothing: no other event of the group came since the last commit."""
    known: dict[str, dict[tuple[str, int], int]] = {}
    found: dict[int | None, int] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, OffsetsCommitted):
            offsets = {(topic, partition): offset for topic, partition, offset in event.offsets}
            before = known.setdefault(event.group, {})
            if offsets.items() <= before.items():
                found[entry.cause] = entry.seq
            before.update(offsets)
        elif isinstance(event, GroupEvent):
            known.pop(event.group, None)
    return found


def _changed_nothing(request: RequestReceived, answer: ResponseSent) -> bool:
    if answer.error != "NONE":
        return False
    match answer.api:
        case "Heartbeat":
            return True
        case "Fetch":
            return answer.details.get("bytes") == 0
        case "ConsumerGroupHeartbeat":
            said_nothing = not request.details and not answer.details
            return said_nothing and request.generation == answer.generation and request.generation > 0
        case _:
            return False
