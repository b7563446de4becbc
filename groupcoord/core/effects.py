"""What goes into the pure parts and what comes out: a call in; replies, log appends and notes out.

Nothing in here does anything. A handler decides and returns effects; the shell carries them out in order.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from groupcoord.core.events import Cause, Event, Requested
from groupcoord.protocol.apis import Api


class Call(NamedTuple):
    """One request of one connection: whom to answer. A parked JoinGroup is a stored Call, answered by a later Reply.

    ``client_host`` is Java's text of an address, with its leading slash: ``/127.0.0.1``. ``broker`` is the broker that was
    asked and ``listener`` the listener it was asked by, both counted from 0, where there are several.
    """

    connection_id: int
    correlation_id: int
    api: Api
    version: int
    client_id: str | None
    client_host: str
    broker: int = 0
    listener: int = 0

    def as_cause(self) -> Requested:
        """The request as the cause of events."""
        return Requested(
            self.api.name, self.version, self.client_id, self.client_host, self.connection_id, self.correlation_id
        )


Origin = Call | Cause
"""What an effect follows from. A Call stands for the request; it becomes a Requested only where that is wanted."""


NO_CONNECTION = -1
"""The ``connection_id`` of a call that is answered already but still counts as parked."""


class Reply(NamedTuple):
    """Answer ``call`` with ``response``, in the version it was asked in. ``origin`` is what let it be answered now."""

    call: Call
    response: Any
    origin: Origin | None = None


class NoReply(NamedTuple):
    """``call`` is done and gets no answer: a Produce with acks=0."""

    call: Call
    origin: Origin | None = None


class RawReply(NamedTuple):
    """Answer ``call`` with the bytes of ``data``, length included, as they are; with ``hangs_up`` close the connection then.

    For faults: no handler answers so.
    """

    call: Call
    data: bytes
    hangs_up: bool = False
    origin: Origin | None = None


class CloseConnection(NamedTuple):
    """Close the connection of ``call``, as Kafka does when a Produce with acks=0 fails."""

    call: Call
    reason: str
    origin: Origin | None = None


class LogRecord(NamedTuple):
    """The bytes of one record; a ``value`` of None is a tombstone."""

    key: bytes
    value: bytes | None


UNWRITABLE = LogRecord(key=b"", value=None)
"""A record with a name in it that is too long to be written; a write with it fails (UNKNOWN_SERVER_ERROR)."""


NOT_ENCODED = LogRecord(key=b"", value=None)
"""Stands for the bytes of a record that was read."""


class TypedRecord(NamedTuple):
    """A record of a coordinator's topic: its ``key``, the ``value`` that a state machine keeps (None: a tombstone), and the
    bytes that are written, of which a record that was read has none."""

    key: Any
    value: Any
    encoded: LogRecord = NOT_ENCODED


NO_PRODUCER = -1
"""The producer id of what is not part of a transaction."""


class TransactionMarker(NamedTuple):
    """The end of a transaction, as it is written into each of its partitions.

    ``coordinator_epoch`` is the leader epoch of the partition of ``__transaction_state`` that says so; ``transaction_version``
    is 2 where each transaction has an epoch of its own (KIP-890), and the marker's is larger than that of its records.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


class Append(NamedTuple):
    """Store ``records``, as one batch, in ``partition`` of a coordinator's ``topic``; or ``marker``, if there is one.

    A batch with a producer is part of its transaction. When it is stored, or cannot be, ``appended`` or ``append_failed`` of
    that coordinator's runtime has to be called.
    """

    append_id: int
    topic: str
    partition: int
    records: tuple[TypedRecord, ...]
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    marker: TransactionMarker | None = None


class EmitEvent:
    """An event for the listeners of a server, such as its log or a trace, that has ``fields`` and follows from ``origin``.

    To make it may cost more than the request that it is about: that is done when the first listener asks for it. Of what kind
    it is, and about what, is known before.
    """

    __slots__ = ("_at_ms", "_event", "_fields", "_late", "_origin", "kind")
    __match_args__ = ("event",)

    def __init__(
        self,
        kind: type[Event],
        at_ms: int,
        origin: Origin,
        fields: Mapping[str, Any],
        late: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self.kind = kind
        self._event: Event | None = None
        self._at_ms = at_ms
        self._origin = origin
        self._fields = fields
        self._late = late

    @classmethod
    def of(cls, event: Event) -> Self:
        """The effect of an ``event`` that is made already."""
        made = cls(type(event), event.at_ms, event.cause, {})
        made._event = event
        return made

    def __repr__(self) -> str:
        return f"EmitEvent({self.event!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmitEvent) and self.event == other.event

    def __hash__(self) -> int:
        return hash(self.event)

    @property
    def event(self) -> Event:
        """The event, the same object each time."""
        event = self._event
        if event is None:
            origin = self._origin
            cause = origin.as_cause() if isinstance(origin, Call) else origin
            late = self._late() if self._late is not None else {}
            event = self._event = self.kind(at_ms=self._at_ms, cause=cause, **self._fields, **late)
        return event

    def about(self, name: str) -> Any:
        """The field ``name`` of the event, None if it has no such field, or a late one and is not made yet."""
        return self._fields.get(name) if self._event is None else getattr(self._event, name, None)


def event_listener(listener: Callable[[Event], None]) -> Callable[[EmitEvent], None]:
    """A listener to what is emitted that has each event made, for one that takes events."""
    return lambda emitted: listener(emitted.event)


Effect = Reply | RawReply | NoReply | CloseConnection | Append | EmitEvent
