"""TraceEntry, and the trace's own event types: connections, requests and responses, timers, actions and tasks,
appended records."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groupcoord.client.member.member_events import MemberEvent
from groupcoord.core.events import Event, event_class
from groupcoord.did_you_mean import did_you_mean

Detail = str | int | bool | None | tuple["Detail", ...]
"""The value of a detail of a request or response: a JSON scalar, or a tuple of such values."""


@event_class
class ConnectionOpened(Event):
    """A client has connected; ``connection_id`` is the server's number of the connection."""

    connection_id: int
    client_host: str

    def text(self) -> str:
        return f"connection {self.connection_id} from {_host(self.client_host)} is open"


@event_class
class ConnectionClosed(Event):
    """A connection was closed; ``reason`` says why, if that is known."""

    connection_id: int
    client_host: str
    reason: str

    def text(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return f"connection {self.connection_id} from {_host(self.client_host)} is closed{because}"


@event_class
class RequestEvent(Event):
    """The base of the events about a request.

    ``connection_id`` and ``correlation_id`` identify the request. ``group``, ``member``, ``instance_id`` and ``generation`` are
    what it is about; ``""``, None and -1 if it names none. For a ConsumerGroupHeartbeat, ``generation`` is the member epoch.

    ``details`` are other relevant fields, by Kafka's names.
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
        """The client id, or the number of the connection if there is none."""
        return self.client_id or f"connection {self.connection_id}"


@event_class
class RequestReceived(RequestEvent):
    """A request was received. ``frame`` are its bytes in hexadecimal digits; only a detailed trace has them."""

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
    """A response was sent, ``took_ms`` after its request came.

    ``error`` is Kafka's name of the first error anywhere in the response; ``NONE`` if there is none, ``RAW`` if a fault rule
    replaced the response by bytes. ``member`` and ``generation`` are those of the response, or of the request if the response
    has none. ``frame`` are the bytes of the response in hexadecimal digits; only a detailed trace has them.
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
    """A request ended without a response: a Produce with acks=0, or one after which the connection was closed."""

    reason: str

    def text(self) -> str:
        return f"{self.client_name} gets no answer to {self.api}: {self.reason}"


AppendedRecord = tuple[int, str, str | None]
"""The offset of a record of a coordinator, and its key and value in words; a value of None is a tombstone."""


@event_class
class RecordsAppended(Event):
    """Records were appended to a partition's log, from ``base_offset`` up to ``end_offset`` (exclusive).

    For ``__consumer_offsets`` and ``__transaction_state``, ``records`` are the first hundred of them.
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
    """The present brokers (id, host, port, rack), and topics with the leader and the end offset of each partition.

    ``settings`` are a few broker configs (milliseconds).
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
    """An action outside the protocol: of a test, a tool or the application of a client."""

    action: str

    def text(self) -> str:
        return f"action: {self.action}"


@event_class
class BrokerTaskRun(Event):
    """What a broker does by itself, such as an append of a coordinator."""

    task: str

    def text(self) -> str:
        return self.task


@event_class
class ServerFailed(Event):
    """The cluster raised an unexpected exception."""

    error: str

    def text(self) -> str:
        return f"the server fails: {self.error}"


@event_class
class UnknownEvent(Event):
    """An event of an unknown type, read from a file: ``name`` is the type, ``told`` its text."""

    name: str
    told: str
    fields: Mapping[str, Any]

    def text(self) -> str:
        return self.told


NO_GENERATION = -1
RAW = "RAW"
CONSUMER_GROUP_HEARTBEAT = "ConsumerGroupHeartbeat"
EPOCH_WORDS = {0: "to join", -1: "to leave", -2: "to leave for now"}
"""The meaning of member epochs that are not epochs (KIP-848)."""


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
    """An event in a trace. ``seq`` counts from 1. ``cause`` is the ``seq`` of the entry that caused it, None if unknown.

    For the end of a request, ``answers`` is the ``seq`` of the request. ``consequences`` are the entries that this one caused.
    ``at_ms`` is the time on the server's clock, ``since_start_ms`` the time since the start of the trace on that clock.
    ``real_ms`` is the real time since the start of the trace (milliseconds), which shows what took long on a manual clock.
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
        """When it happened (ms), on the server's clock."""
        return self.event.at_ms

    @property
    def seconds(self) -> float:
        """When it happened, in seconds since the start of the trace."""
        return self.since_start_ms / 1000

    @property
    def group(self) -> str:
        """The group that it is about, or ``""``."""
        return getattr(self.event, "group", "")

    def shares_cause(self, other: "TraceEntry") -> bool:
        """Do both entries have the same cause? If the trace does not have the causes, they are compared by value."""
        if self.cause is None and other.cause is None:
            return self.event.cause == other.event.cause
        return self.cause == other.cause

    def concerns(self, group: str) -> bool:
        """Is it about ``group``, alone or among others, or about a timer of it?"""
        if self.group:
            return self.group == group
        details = getattr(self.event, "details", {})
        return (
            group in details.get("groups", ())
            or group in details.get("coordinator_keys", ())
            or getattr(self.event, "scope", None) == group
        )

    def text(self, *, links: bool = True, real: bool = False) -> str:
        """``#12 @3000 orders PreparingRebalance → CompletingRebalance gen=1  ← #9``: number, milliseconds since the start,
        group, event, and cause. Without ``links`` the numbers of entries are left out. With ``real`` the real milliseconds
        follow those of the clock: ``@3000 (17 ms)``."""
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


def check_fields(kind: type[Event], names: Sequence[str]) -> None:
    """Raises TypeError, which suggests a similar name, if no event of ``kind`` has a field of one of ``names``."""
    if not (isinstance(kind, type) and issubclass(kind, Event)):
        raise TypeError(f"{kind!r} is not a type of events, such as events.MemberRemoved")
    known = sorted(_fields(kind))
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, otherwise=f"there are {', '.join(known)}")
            raise TypeError(f"{kind.__name__} has no field {name!r}; {hint}")


def _fields(kind: type[Event]) -> set[str]:
    fields = {field.name for field in dataclasses.fields(kind)}
    for narrower in kind.__subclasses__():
        fields |= _fields(narrower)
    return fields
