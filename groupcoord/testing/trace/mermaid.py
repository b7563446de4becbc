"""A trace as a sequence diagram in Mermaid's language, which GitHub draws.

Participants are the clients and the coordinator; arrows are requests and answers, notes are what happened in between. Time
stands in bars over all of them, in seconds since the start of the trace.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from groupcoord.client.member.listener_events import MemberEvent
from groupcoord.coordinator.events import RequestRefused
from groupcoord.testing.trace.events import (
    CONSUMER_GROUP_HEARTBEAT,
    EPOCH_WORDS,
    NO_GENERATION,
    ConnectionClosed,
    ConnectionOpened,
    Detail,
    RequestEvent,
    RequestReceived,
    RequestUnanswered,
    ResponseSent,
    TraceEntry,
)
from groupcoord.testing.trace.text_formatting import ShortMemberNames, counted, moment

LIMIT = 500
"""How many steps are drawn by default: a longer diagram is hard to read, and GitHub draws at most 50,000 characters."""

COORDINATOR = "coordinator"
_NODE = "K"
NOTE_WIDTH = 60
"""Characters in a line of a note, at most."""

_OF_MEMBERS = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", CONSUMER_GROUP_HEARTBEAT})
"""What members ask for themselves; LeaveGroup may be an administrator's."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One line of the diagram: who takes part (participants' keys), the line with ``{}`` for them, and when (ms)."""

    at_ms: int
    line: str
    client: str | None
    beats: str | None = None
    """Whose heartbeat it is that changed nothing."""


def sequence_diagram(entries: Sequence[TraceEntry], names: ShortMemberNames, *, limit: int = LIMIT) -> str:
    """The diagram of ``entries``; of more than ``limit`` steps the last ones, with a note that says how many were left out."""
    artist = _DiagramBuilder(entries, names)
    steps = list(_folded(artist.steps(entries)))
    left_out = max(len(steps) - limit, 0)
    steps = steps[left_out:]
    drawn = dict.fromkeys(step.client for step in steps if step.client is not None)
    ids = {client: f"c{number}" for number, client in enumerate(drawn, 1)}
    lines = ["sequenceDiagram"]
    lines += [f"participant {ids[client]} as {escape(client)}" for client in drawn]
    lines.append(f"participant {_NODE} as {COORDINATOR}")
    all_participants = ",".join([next(iter(ids.values()), _NODE), _NODE]) if ids else _NODE
    if left_out:
        lines.append(f"note over {all_participants}: {counted(left_out, 'step')} before")
    last_ms: int | None = None
    for step in steps:
        if step.at_ms != last_ms:
            lines.append(f"note over {all_participants}: {moment(step.at_ms)}")
            last_ms = step.at_ms
        lines.append(step.line.format(ids.get(step.client or "", _NODE)))
    return "\n    ".join(lines) + "\n"


class _DiagramBuilder:
    def __init__(self, entries: Sequence[TraceEntry], names: ShortMemberNames) -> None:
        self._names = names
        self._clients = _clients(entries, self._names)
        self._one_group = len({entry.group for entry in entries} - {""}) < 2
        self._quiet = _quiet_heartbeats(entries)

    def steps(self, entries: Iterable[TraceEntry]) -> Iterable[_Step]:
        for entry in entries:
            event = entry.event
            at_ms = entry.since_start_ms
            match event:
                case RequestEvent():
                    client = self._clients[event.connection_id]
                    who = self._names.of(event.member) if event.member else client
                    beats = who if entry.seq in self._quiet else None
                    yield _Step(at_ms, self._arrow(event, client), client, beats)
                case ConnectionOpened() | ConnectionClosed():
                    continue  # it comes and goes with its client; the text of a trace has it
                case RequestRefused():
                    continue  # the answer says it
                case MemberEvent(member=member):
                    client = self._names.of(member)
                    if client in self._clients.values():
                        yield _Step(at_ms, f"note over {{}}: {self._noted(event.text())}", client)
                case _:
                    yield _Step(at_ms, f"note right of {_NODE}: {self._noted(self._what(entry))}", None)

    def _arrow(self, event: RequestEvent, client: str) -> str:
        match event:
            case RequestReceived():
                what = f"{event.api} v{event.version}"
                if event.api == CONSUMER_GROUP_HEARTBEAT:
                    what += f" {EPOCH_WORDS.get(event.generation, f'epoch={event.generation}')}"
                elif event.generation != NO_GENERATION:
                    what += f" gen={event.generation}"
                name = self._names.of(event.member) if event.member else ""
                if name and name != client:
                    what += f" of {name}"
                return f"{{}}->>{_NODE}: {self._said(what + _asked_of_transaction(event.details))}"
            case ResponseSent():
                what = event.api if event.error == "NONE" else f"{event.api} {event.error}"
                if event.api in ("JoinGroup", "OffsetCommit") and event.error == "NONE" and event.generation >= 0:
                    what += f" gen={event.generation}"
                if event.api == CONSUMER_GROUP_HEARTBEAT and event.error == "NONE" and event.generation > 0:
                    what += f" epoch={event.generation}"
                what += _told_of_producer(event.details)
                assigned = event.details.get("assignment")
                if isinstance(assigned, tuple):
                    what += f": {', '.join(map(str, assigned)) or 'nothing'}"
                return f"{_NODE}-->>{{}}: {self._said(what)}"
            case RequestUnanswered():
                return f"{_NODE}--x{{}}: {self._said(f'{event.api}: {event.reason}')}"
            case _:
                raise AssertionError(event)

    def _said(self, text: str) -> str:
        return escape(self._names.shortened(text))

    def _noted(self, text: str) -> str:
        return _broken(self._names.shortened(text))

    def _what(self, entry: TraceEntry) -> str:
        """What happened, with the group where there are several."""
        text = entry.event.text()
        if not entry.group:
            return text
        text = text.removeprefix(f"{entry.group} ")
        return text if self._one_group else f"{entry.group}: {text}"


def escape(text: str) -> str:
    """``text`` so that Mermaid shows it and does not obey it: what is special to it goes as the number of the character."""
    text = " ".join(text.split()) or "\N{NO-BREAK SPACE}"
    escaped = "".join(f"#{ord(letter)};" if letter in _SPECIAL else letter for letter in text)
    if _OBEYED_AT_START.match(escaped):
        return f"#{ord(escaped[0])};{escaped[1:]}"
    return escaped


def _asked_of_transaction(details: Mapping[str, Detail]) -> str:
    of_transaction = f" of {details['transactional_id']}" if "transactional_id" in details else ""
    if "committed" not in details:
        return of_transaction
    return f"{of_transaction}: {'commit' if details['committed'] else 'abort'}"


def _told_of_producer(details: Mapping[str, Detail]) -> str:
    return " producer={producer_id} epoch={producer_epoch}".format_map(details) if "producer_epoch" in details else ""


_SPECIAL = frozenset('#;<>%{}"\\$&`')
_OBEYED_AT_START = re.compile("(no)?wrap:")


def _broken(text: str) -> str:
    """A note in lines that fit beside a diagram."""
    return "<br/>".join(escape(line) for line in textwrap.wrap(text, NOTE_WIDTH))


def _clients(entries: Iterable[TraceEntry], names: ShortMemberNames) -> dict[int, str]:
    """What the client of each connection is called: as its member, if only one speaks there, or else by its client id."""
    ids: dict[int, str] = {}
    members: dict[int, set[str]] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, RequestEvent):
            ids.setdefault(event.connection_id, event.client_id or f"connection {event.connection_id}")
            if event.api in _OF_MEMBERS and event.member:
                members.setdefault(event.connection_id, set()).add(names.of(event.member))
    return {
        number: next(iter(known)) if len(known := members.get(number, ())) == 1 else name
        for number, name in ids.items()
    }


def _quiet_heartbeats(entries: Sequence[TraceEntry]) -> frozenset[int]:
    """The numbers of the entries of heartbeats, and their answers, that changed nothing and were fine."""
    requests = {entry.seq: entry.event for entry in entries if isinstance(entry.event, RequestReceived)}
    quiet: list[int] = []
    for entry in entries:
        request = requests.get(entry.answers or 0)
        if request is not None and isinstance(entry.event, ResponseSent) and _is_quiet(request, entry.event):
            quiet += (entry.answers or 0, entry.seq)
    return frozenset(quiet)


def _is_quiet(request: RequestReceived, answer: ResponseSent) -> bool:
    if answer.error != "NONE":
        return False
    if answer.api == CONSUMER_GROUP_HEARTBEAT:
        said_nothing = not request.details and not answer.details
        return said_nothing and request.generation == answer.generation and request.generation > 0
    return answer.api == "Heartbeat"


def _folded(steps: Iterable[_Step]) -> Iterable[_Step]:
    """Heartbeats with nothing but heartbeats between them as one arrow for each member, where they end."""
    for beating, group in groupby(steps, key=lambda step: step.beats is not None):
        run = list(group)
        if not beating:
            yield from run
            continue
        for who in dict.fromkeys(step.beats for step in run):
            own = [step for step in run if step.beats == who]
            first_ms, last_ms = own[0].at_ms, own[-1].at_ms
            count = sum("-->>" not in step.line for step in own)
            if count == 1:
                yield from own
            else:
                since = f", {moment(first_ms)} to {moment(last_ms)}" if first_ms != last_ms else ""
                text = escape(f"{count} times Heartbeat of {who}, all fine{since}")
                yield _Step(run[-1].at_ms, f"{{}}->>{_NODE}: {text}", own[0].client)
