"""Draws a trace as a Mermaid sequence diagram, which GitHub renders.

Participants are the clients and the coordinator; arrows are requests and responses, notes are events. Notes over all
participants give the time in seconds since the start of the trace.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from groupcoord.client.member.member_events import MemberEvent
from groupcoord.coordinator.events import RequestRefused
from groupcoord.core.events import counted
from groupcoord.testing.trace.coordinator_moves import CoordinatorMoves
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
from groupcoord.testing.trace.folding import QuietExchanges, client_names, folded
from groupcoord.testing.trace.short_member_names import ShortMemberNames
from groupcoord.testing.trace.times_and_lists_in_words import moment

LIMIT = 500
"""How many steps are drawn by default: a longer diagram is hard to read, and GitHub draws at most 50,000 characters."""

COORDINATOR = "coordinator"
_NODE = "K"
NOTE_WIDTH = 60
"""Characters in a line of a note, at most."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One line of the diagram: its time (ms), the line with ``{}`` in place of the client, and the client, if there is one."""

    at_ms: int
    line: str
    client: str | None


def sequence_diagram(entries: Sequence[TraceEntry], names: ShortMemberNames, *, limit: int = LIMIT) -> str:
    """The diagram of ``entries``, at most the last ``limit`` steps; a note says how many were left out."""
    artist = _DiagramBuilder(entries, names)
    steps = list(artist.steps(folded(entries, names)))
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
        self._clients = client_names(entries, self._names)
        self._one_group = len({entry.group for entry in entries} - {""}) < 2

    def steps(self, entries: Iterable[TraceEntry | QuietExchanges | CoordinatorMoves]) -> Iterable[_Step]:
        for entry in entries:
            if isinstance(entry, QuietExchanges):
                yield _Step(entry.at_ms, f"{{}}->>{_NODE}: {escape(entry.words)}", entry.client)
                continue
            if isinstance(entry, CoordinatorMoves):
                yield _Step(entry.at_ms, f"note right of {_NODE}: {self._noted(entry.words)}", None)
                continue
            event = entry.event
            at_ms = entry.since_start_ms
            match event:
                case RequestEvent():
                    client = self._clients[event.connection_id]
                    yield _Step(at_ms, self._arrow(event, client), client)
                case ConnectionOpened() | ConnectionClosed():
                    continue  # participants stand for connections; the text of a trace has these events
                case RequestRefused():
                    continue  # the response says it
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
        """The text of the event, with the group if the diagram has several."""
        text = entry.event.text()
        if not entry.group:
            return text
        text = text.removeprefix(f"{entry.group} ")
        return text if self._one_group else f"{entry.group}: {text}"


def escape(text: str) -> str:
    """``text`` with the characters that are special to Mermaid replaced by their character codes."""
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
    """``text`` broken into lines of at most NOTE_WIDTH characters."""
    return "<br/>".join(escape(line) for line in textwrap.wrap(text, NOTE_WIDTH))
