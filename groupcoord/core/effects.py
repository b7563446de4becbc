"""The input and output of handlers: a Call, and the effects Reply, Append, EmitEvent and so on.

They are plain values. A handler decides and returns effects; the server or the simulation executes them in order. Terms that
are used throughout:

- **call**: a request of a connection, waiting for its response;
- **effect**: what is to be done: send a response, append records, emit an event, close a connection;
- **append**: records of a coordinator on their way to its log; the responses that depend on them wait until they are stored;
- **gate**: a callback that decides whether an append is stored, held or failed;
- **layer**: something between server and cluster that sees each call and its effects: faults, the trace;
- **origin**: the cause of an effect: a request, a timer or an administrator's action;
- **shard**: the state of the groups, or transactional ids, of one partition of a coordinator's log.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from groupcoord.core.events import Cause, Event, Requested
from groupcoord.protocol.apis import Api


class Call(NamedTuple):
    """A request of a connection, to which a Reply refers. A delayed JoinGroup is a stored Call, answered by a later Reply.

    ``client_host`` is an address as Java prints it, with a leading slash: ``/127.0.0.1``. ``broker`` and ``listener`` are those
    that received the request, both counted from 0.
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
        """The request as the cause of an event."""
        return Requested(
            self.api.name, self.version, self.client_id, self.client_host, self.connection_id, self.correlation_id
        )


Origin = Call | Cause
"""The origin of an effect. A Call stands for its request; it is converted to Requested only when that is needed."""


NO_CONNECTION = -1
"""The ``connection_id`` of a call that was answered but still counts as waiting."""


class Reply(NamedTuple):
    """Respond to ``call`` with ``response``, in the version of the request. ``origin`` is the cause of the
    response, such as a timer; for a delayed JoinGroup it is not the request."""

    call: Call
    response: Any
    origin: Origin | None = None


class NoReply(NamedTuple):
    """End ``call`` without a response: a Produce with acks=0."""

    call: Call
    origin: Origin | None = None


class RawReply(NamedTuple):
    """Respond to ``call`` with the bytes ``data``, length included. If it ``hangs_up``, close the
    connection after that.

    Only injected faults use it.
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
"""A record with a name that is too long to be encoded; its append fails with UNKNOWN_SERVER_ERROR."""


NOT_ENCODED = LogRecord(key=b"", value=None)
"""Placeholder for the bytes of a record that was read."""


class TypedRecord(NamedTuple):
    """A record of a coordinator topic: its ``key``, the ``value`` in the coordinator's state (None: a tombstone), and the bytes
    to write, which a record that was read does not have."""

    key: Any
    value: Any
    encoded: LogRecord = NOT_ENCODED


NO_PRODUCER = -1
"""The producer id of non-transactional records."""


class TransactionMarker(NamedTuple):
    """A transaction marker (commit or abort).

    ``coordinator_epoch`` is the leader epoch of its partition of ``__transaction_state``; ``transaction_version`` is 2 where
    each transaction has an epoch of its own (KIP-890), and the marker's epoch is larger than that of its records.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int = 0


class Append(NamedTuple):
    """Append ``records`` as one batch to ``partition`` of a coordinator ``topic``; or ``marker``, if there is one.

    A batch with a producer id is transactional. When it is stored, or has failed, ``appended`` or ``append_failed`` of that
    coordinator's runtime has to be called.
    """

    append_id: int
    topic: str
    partition: int
    records: tuple[TypedRecord, ...]
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    marker: TransactionMarker | None = None


class EmitEvent:
    """Emit an event with ``fields`` and ``origin`` to the listeners of a server, such as its log or a trace.

    Creating the event can cost more than its request, so it is created when the first listener asks for it. Its type and fields
    are known before.
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
        """The effect for an existing ``event``."""
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
        """The event, created once."""
        event = self._event
        if event is None:
            origin = self._origin
            cause = origin.as_cause() if isinstance(origin, Call) else origin
            late = self._late() if self._late is not None else {}
            event = self._event = self.kind(at_ms=self._at_ms, cause=cause, **self._fields, **late)
        return event

    def about(self, name: str) -> Any:
        """The field ``name`` of the event; None if it does not exist, or is a late field of an event that was not created."""
        return self._fields.get(name) if self._event is None else getattr(self._event, name, None)


def event_listener(listener: Callable[[Event], None]) -> Callable[[EmitEvent], None]:
    """A listener of EmitEvent that creates each event and passes it to ``listener``."""
    return lambda emitted: listener(emitted.event)


Effect = Reply | RawReply | NoReply | CloseConnection | Append | EmitEvent
