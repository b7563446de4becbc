"""What a trace knows beside the events of the pure parts: connections, requests and their ends, timers, admin actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupcoord.client.member.listener_events import MemberEvent
from groupcoord.core.events import Event, event_class

Detail = str | int | bool | None | tuple["Detail", ...]
"""What a detail of a request or an answer may be: plain values that JSON has a word for, and tuples of them."""


@event_class
class ConnectionOpened(Event):
    """A client is connected; ``connection_id`` is the server's number for the connection."""

    connection_id: int
    client_host: str

    def text(self) -> str:
        return f"connection {self.connection_id} from {_host(self.client_host)} is open"


@event_class
class ConnectionClosed(Event):
    """A connection is gone; ``reason`` says why, as far as that is known."""

    connection_id: int
    client_host: str
    reason: str

    def text(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return f"connection {self.connection_id} from {_host(self.client_host)} is closed{because}"


@event_class
class RequestEvent(Event):
    """A request or what became of it.

    ``api`` and ``version`` are those of the request, ``connection_id`` and ``correlation_id`` say which it is. ``group``,
    ``member``, ``instance_id`` and ``generation`` are what it speaks of, ``""``, None and -1 where it speaks of none. Of a
    ConsumerGroupHeartbeat, ``generation`` is the member epoch.
    ``details`` are further fields worth seeing, by Kafka's names.
    """

    api: str
    version: int
    client_id: str | None
    client_host: str
    connection_id: int
    correlation_id: int
    group: str
    member: str
    instance_id: str | None
    generation: int

    @property
    def client_name(self) -> str:
        """The client, as people call it."""
        return self.client_id or f"connection {self.connection_id}"


@event_class
class RequestReceived(RequestEvent):
    """A client asks. ``frame`` is the request as bytes, in hexadecimal digits; only a detailed trace has it."""

    details: Mapping[str, Detail] = field(default_factory=dict)
    frame: str | None = None

    def text(self) -> str:
        subject_of = [f"member {self.member}"] if self.member else []
        if self.instance_id is not None:
            subject_of.append(f"instance {self.instance_id}")
        if self.api == CONSUMER_GROUP_HEARTBEAT:
            subject_of.append(EPOCH_WORDS.get(self.generation, f"epoch {self.generation}"))
        elif self.generation != NO_GENERATION:
            subject_of.append(f"generation {self.generation}")
        return f"{self.client_name} asks {self.api} v{self.version}{_listed(subject_of, self.details)}"


@event_class
class ResponseSent(RequestEvent):
    """A request is answered, ``took_ms`` after it came.

    ``error`` is Kafka's name of the first error in the answer, wherever it stands; ``NONE`` if there is none, ``RAW`` where a
    fault put mere bytes in its place. ``member`` and ``generation`` are what the answer says, or else what the request said.
    ``frame`` is the answer as bytes, in hexadecimal digits; only a detailed trace has it.
    """

    error: str
    took_ms: int
    details: Mapping[str, Detail] = field(default_factory=dict)
    frame: str | None = None

    def text(self) -> str:
        said = [] if self.error == "NONE" else [self.error]
        if self.member:
            said.append(f"member {self.member}")
        if self.api == CONSUMER_GROUP_HEARTBEAT:
            said += [f"epoch {self.generation}"] if self.error == "NONE" and self.generation > 0 else []
        elif self.generation != NO_GENERATION:
            said.append(f"generation {self.generation}")
        after = f" after {self.took_ms} ms" if self.took_ms else ""
        return f"{self.client_name} is answered {self.api}{after}{_listed(said, self.details)}"


@event_class
class RequestUnanswered(RequestEvent):
    """A request is done with and gets no answer: a Produce with acks=0, or one whose connection is closed for it."""

    reason: str

    def text(self) -> str:
        return f"{self.client_name} gets no answer to {self.api}: {self.reason}"


AppendedRecord = tuple[int, str, str | None]
"""The offset of a record of a coordinator, and its key and value in words; no value is a tombstone."""


@event_class
class RecordsAppended(Event):
    """The log of ``partition`` of ``topic`` has grown from ``base_offset`` to ``end_offset``, which is the next record's.

    Of ``__consumer_offsets`` and ``__transaction_state`` the first hundred ``records`` are told.
    """

    topic: str
    partition: int
    base_offset: int
    end_offset: int
    records: tuple[AppendedRecord, ...]

    def text(self) -> str:
        count = self.end_offset - self.base_offset
        told = "; ".join(f"{key} (tombstone)" if value is None else key for _, key, value in self.records)
        records = "1 record more" if count == 1 else f"{count} records more"
        return f"{self.topic}-{self.partition} has {records}, up to offset {self.end_offset}" + (
            f": {told}" if told else ""
        )


@event_class
class ClusterDescribed(Event):
    """The brokers (id, host, port, rack), and the topics with the leader and the end offset of each partition, as they are now.

    ``settings`` are a few properties of the brokers (milliseconds).
    """

    brokers: tuple[tuple[int, str, int, str | None], ...]
    topics: Mapping[str, tuple[tuple[int, int], ...]]
    settings: Mapping[str, int]

    def text(self) -> str:
        brokers = ", ".join(f"{number} at {host}:{port}" for number, host, port, _ in self.brokers)
        topics = ", ".join(f"{name} ({len(partitions)})" for name, partitions in self.topics.items())
        return f"brokers {brokers}; topics {topics or 'none'}"


@event_class
class TimerExpired(Event):
    """A timer fired: ``kind`` (``session``, ``join``, ``sync`` …) of ``scope`` (a group) and ``subject`` (a member)."""

    kind: str
    scope: str
    subject: str
    due_ms: int

    def text(self) -> str:
        of = f"{self.subject} in {self.scope}" if self.subject else self.scope
        early = f", {self.due_ms - self.at_ms} ms before it is due" if self.due_ms > self.at_ms else ""
        return f"the {self.kind} timer of {of} fires{early}"


@event_class
class AdminActionRun(Event):
    """Something outside the protocol did it: a test, a start-up, a tool."""

    action: str

    def text(self) -> str:
        return f"admin action: {self.action}"


@event_class
class ServerFailed(Event):
    """The cluster raised an unexpected exception."""

    error: str

    def text(self) -> str:
        return f"the server fails: {self.error}"


@event_class
class UnknownEvent(Event):
    """An event read from a file whose type is not known here: ``name`` says which, ``told`` is its text."""

    name: str
    told: str
    fields: Mapping[str, Any]

    def text(self) -> str:
        return self.told


NO_GENERATION = -1
RAW = "RAW"
CONSUMER_GROUP_HEARTBEAT = "ConsumerGroupHeartbeat"
EPOCH_WORDS = {0: "to join", -1: "to leave", -2: "to leave for now"}
"""What a member says by its epoch, where that is none (KIP-848)."""


def _host(client_host: str) -> str:
    return client_host.removeprefix("/")


def _listed(said: list[str], details: Mapping[str, Detail]) -> str:
    told = [*said, *(f"{name} {_plain(value)}" for name, value in details.items())]
    return f": {', '.join(told)}" if told else ""


def _plain(value: Detail) -> str:
    match value:
        case tuple():
            return f"[{', '.join(_plain(each) for each in value)}]"
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case "":
            return '""'
        case _:
            return str(value)


@dataclass(eq=False, slots=True, repr=False)
class TraceEntry:
    """``seq`` counts from 1. ``cause`` is the ``seq`` of the entry that made it happen, None if that is not in the trace.

    ``answers`` is, for the end of a request, the ``seq`` of the request; ``consequences`` are those of which this one is
    the ``cause``. ``since_start_ms`` counts from the start of the trace on the clock of the server, ``at_ms`` is the time on
    that clock. ``real_ms`` are the milliseconds that had passed in the real world since the trace was begun: on a clock that a
    test moves, they say what took long.
    """

    seq: int
    since_start_ms: int
    event: Event
    cause: int | None = None
    answers: int | None = None
    consequences: tuple[int, ...] = ()
    real_ms: int = 0

    @property
    def at_ms(self) -> int:
        """When it happened (ms), on the clock of the server."""
        return self.event.at_ms

    @property
    def seconds(self) -> float:
        """When it happened, in seconds since the start of the trace."""
        return self.since_start_ms / 1000

    @property
    def group(self) -> str:
        """The group it is about, or ``""``."""
        return getattr(self.event, "group", "")

    def shares_cause(self, other: "TraceEntry") -> bool:
        """Did one and the same thing make both happen? Where the trace does not have it, equal causes are taken for one."""
        if self.cause is None and other.cause is None:
            return self.event.cause == other.event.cause
        return self.cause == other.cause

    def concerns(self, group: str) -> bool:
        """Is it about ``group``, or about several groups and this is one of them, or is it a timer of it?"""
        if self.group:
            return self.group == group
        details = getattr(self.event, "details", {})
        return (
            group in details.get("groups", ())
            or group in details.get("coordinator_keys", ())
            or getattr(self.event, "scope", None) == group
        )

    def text(self, *, links: bool = True, real: bool = False) -> str:
        """``#12 @3000 orders PreparingRebalance → CompletingRebalance gen=1  ← #9``: number, milliseconds since the start, the
        group, what happened, and what made it happen. Without ``links`` there are no numbers in it. With ``real`` the real
        milliseconds stand behind those of the clock: ``@3000 (17 ms)``."""
        text = self.event.text()
        if isinstance(self.event, MemberEvent):
            text = f"{self.event.member or 'newcomer'}: {text}"
        if self.group:
            text = f"{self.group} {text.removeprefix(f'{self.group} ')}"
        real_time = f" ({self.real_ms} ms)" if real else ""
        line = f"@{self.since_start_ms}{real_time} {text}".replace("\r", "\\r").replace("\n", "\\n")
        if not links:
            return line
        causes = [f"← #{self.cause}"] if self.cause is not None else []
        if self.answers not in (None, self.cause):
            causes.append(f"answers #{self.answers}")
        return "  ".join([f"#{self.seq} {line}", *causes])

    def __repr__(self) -> str:
        return f"<TraceEntry {self.text()}>"
