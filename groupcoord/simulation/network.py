"""The simulated network between members and brokers, with TCP semantics: messages are in order within a connection only.

Messages in flight are lost with their connection, which the member notices at once or not at all. A broker handles the requests
of a connection one by one. Requests that a member has sent before it crashes are still handled. As in
``groupcoord.client.network_client``, requests that wait for other members (JoinGroup, SyncGroup) have their own connection.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from groupcoord.client.client_errors import DisconnectedError
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest
from groupcoord.simulation.event_queue import Callback, EventQueue
from groupcoord.simulation.prng import draw

NORMAL_MAX_DELAY_MS = 20
"""A message takes from 1 ms up to this, unless the plan slows it down."""

GENERAL, PARKING, PRODUCING = 0, 1, 2
"""The connections of a member to a broker: for requests answered at once, for requests that may wait, for its producer."""

_TO_BROKER, _TO_MEMBER = 0, 1
_RANKS = 8
ARRIVES_AT_BROKER, ARRIVES_AT_MEMBER, MEMBER_ACTS, MEMBER_COMMITS = range(4)

HEARTBEAT_REQUESTS = (HeartbeatRequest, ConsumerGroupHeartbeatRequest)

OnResponse = Callable[[Any], None]
OnError = Callable[[Exception], None]


def rank(slot_id: int, kind: int) -> int:
    """The rank of an event of a member in the event queue. Actions of the plan have rank 0 and come first."""
    return _RANKS * (slot_id + 1) + kind


@dataclass(eq=False, slots=True)
class NetworkLink:
    """The state of the network between one member and all brokers."""

    slow_until_ms: int = 0
    max_delay_ms: int = 0
    cut_until_ms: int = 0
    loses: bool = False

    def heal(self) -> None:
        """End all faults of the link."""
        self.slow_until_ms = self.cut_until_ms = 0


@dataclass(eq=False, slots=True)
class SimulatedConnection:
    """One connection of a member to a broker. ``on_response`` is called with the request number and the response."""

    number: int
    slot_id: int
    lane: int
    broker: int
    on_response: Callable[[int, Any], None]
    closed: bool = False
    loses_requests: bool = False
    loses_responses: bool = False
    busy: bool = False
    routine: bool = False
    queue: deque[tuple[int, Any]] = field(default_factory=deque)
    last_at_broker_ms: int = 0
    last_at_member_ms: int = 0
    on_close: Callback = lambda: None
    """Called when the broker has closed it."""


class SimulatedNetwork:
    """Delivers requests to ``on_request`` and responses to connections. ``key`` determines the delays."""

    def __init__(
        self, event_queue: EventQueue, key: int, on_request: Callable[[SimulatedConnection, int, Any], None]
    ) -> None:
        self._event_queue = event_queue
        self._key = key
        self._on_request = on_request
        self._numbers = count(1)
        self.links: dict[int, NetworkLink] = {}

    def connect(
        self, slot_id: int, lane: int, broker: int, on_response: Callable[[int, Any], None]
    ) -> SimulatedConnection:
        """Open a connection."""
        return SimulatedConnection(next(self._numbers), slot_id, lane, broker, on_response)

    def link(self, slot_id: int) -> NetworkLink:
        """The link of the member in that slot."""
        found = self.links.get(slot_id)
        if found is None:
            found = self.links[slot_id] = NetworkLink()
        return found

    def is_normal(self, slot_id: int) -> bool:
        """Is the link of that member neither slow nor cut?"""
        link = self.link(slot_id)
        return link.slow_until_ms <= self._event_queue.now_ms and link.cut_until_ms <= self._event_queue.now_ms

    def cut_until(self, slot_id: int) -> int | None:
        """Until when the link of that member is cut (ms); None if it is not."""
        until_ms = self.link(slot_id).cut_until_ms
        return None if until_ms <= self._event_queue.now_ms else until_ms

    def send(self, connection: SimulatedConnection, number: int, request: Any, *, routine: bool) -> None:
        """Send a request. ``routine``: the member is idle, and the request does not affect other members."""
        at_ms = self._arrival(connection, _TO_BROKER)
        if at_ms is None:
            return
        connection.last_at_broker_ms = at_ms
        connection.routine = routine
        self._event_queue.schedule(
            at_ms,
            rank(connection.slot_id, ARRIVES_AT_BROKER),
            lambda: self._arrive_at_broker(connection, number, request),
            routine=routine,
        )

    def respond(self, connection: SimulatedConnection, number: int, response: Any) -> None:
        """Send a response. The broker then handles the next request of the connection."""
        at_ms = self._arrival(connection, _TO_MEMBER)
        if at_ms is not None:
            connection.last_at_member_ms = at_ms
            self._event_queue.schedule(
                at_ms,
                rank(connection.slot_id, ARRIVES_AT_MEMBER),
                lambda: _arrive_at_member(connection, number, response),
                routine=connection.routine and self.is_normal(connection.slot_id),
            )
        self.turn_to_next(connection)

    def close(self, connection: SimulatedConnection) -> None:
        """The broker closes a connection, and drops its pending requests."""
        connection.loses_requests = True
        connection.queue.clear()
        at_ms = self._arrival(connection, _TO_MEMBER)
        if at_ms is not None:
            self._event_queue.schedule(at_ms, rank(connection.slot_id, ARRIVES_AT_MEMBER), connection.on_close)

    def turn_to_next(self, connection: SimulatedConnection) -> None:
        """The broker is done with a request, and handles the next one of the connection."""
        connection.busy = False
        if connection.queue:
            following, request = connection.queue.popleft()
            connection.busy = True
            self._event_queue.schedule(
                self._event_queue.now_ms,
                rank(connection.slot_id, ARRIVES_AT_BROKER),
                lambda: self._on_request(connection, following, request),
            )

    def normal_times(self, connection: SimulatedConnection, sent_ms: int) -> Iterator[int]:
        """The arrival time of a request sent at ``sent_ms``, then that of its immediate response."""
        arrived_ms = sent_ms + self._delay_ms(connection, _TO_BROKER, sent_ms, NORMAL_MAX_DELAY_MS)
        yield arrived_ms
        yield arrived_ms + self._delay_ms(connection, _TO_MEMBER, arrived_ms, NORMAL_MAX_DELAY_MS)

    def _delay_ms(self, connection: SimulatedConnection, direction: int, now_ms: int, max_ms: int) -> int:
        return 1 + draw(self._key, connection.slot_id, connection.lane, direction, now_ms) % max_ms

    def _arrive_at_broker(self, connection: SimulatedConnection, number: int, request: Any) -> None:
        if connection.loses_requests:
            return
        if connection.busy:
            connection.queue.append((number, request))
            connection.routine = False
            return
        connection.busy = True
        self._on_request(connection, number, request)

    def _arrival(self, connection: SimulatedConnection, direction: int) -> int | None:
        """When a message sent now arrives (ms); None if it is lost."""
        if connection.loses_requests if direction == _TO_BROKER else connection.loses_responses:
            return None
        now_ms = self._event_queue.now_ms
        link = self.link(connection.slot_id)
        max_ms = max(link.max_delay_ms, 1) if now_ms < link.slow_until_ms else NORMAL_MAX_DELAY_MS
        at_ms = now_ms + self._delay_ms(connection, direction, now_ms, max_ms)
        if now_ms < link.cut_until_ms:
            if link.loses:
                # TCP delivers nothing after a lost segment.
                connection.loses_requests = connection.loses_responses = True
                return None
            at_ms += link.cut_until_ms - now_ms
        return max(at_ms, connection.last_at_broker_ms if direction == _TO_BROKER else connection.last_at_member_ms)


def _arrive_at_member(connection: SimulatedConnection, number: int, response: Any) -> None:
    if not connection.closed and not connection.loses_responses:
        connection.on_response(number, response)


class _PendingRequest(NamedTuple):
    connection: SimulatedConnection
    due_ms: int
    on_response: OnResponse
    on_error: OnError
    is_heartbeat: bool


class PendingRequests:
    """The requests in flight of one member, and its connections.

    Responses are handled through the member's ``run``, and errors through its ``run_later``. If a connection fails, so do
    all its requests.
    """

    def __init__(
        self,
        network: SimulatedNetwork,
        slot_id: int,
        run: Callable[[Callback], None],
        run_later: Callable[[Callback], None],
    ) -> None:
        self._network, self._slot_id, self._run, self._run_later = network, slot_id, run, run_later
        self._connections: dict[tuple[int, int], SimulatedConnection] = {}  # (broker, lane) → connection
        self._pending: dict[int, _PendingRequest] = {}  # by ticket
        self._tickets: dict[tuple[int, int], int] = {}  # (connection number, request number) → ticket
        self._sent = 0

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def only_heartbeats(self) -> bool:
        """Are only heartbeats in flight?"""
        return not self._pending or all(pending.is_heartbeat for pending in self._pending.values())

    def awaited(self) -> set[tuple[int, int]]:
        """(connection number, request number) of each request in flight."""
        return {key for key, ticket in self._tickets.items() if ticket in self._pending}

    def next_deadline(self) -> int | None:
        """When the next request times out (ms)."""
        return min(pending.due_ms for pending in self._pending.values()) if self._pending else None

    def next_number(self) -> int:
        """The number of the next request."""
        self._sent += 1
        return self._sent

    def working_connection(self, broker: int) -> SimulatedConnection | None:
        """The connection for heartbeats to that broker, if there is one and it loses no messages."""
        connection = self._connections.get((broker, GENERAL))
        # A connection that loses requests also loses responses.
        return None if connection is None or connection.loses_responses else connection

    def send(
        self,
        ticket: int,
        to: tuple[int, int],
        request: Any,
        due_ms: int,
        on_response: OnResponse,
        on_error: OnError,
        *,
        routine: bool,
    ) -> None:
        """Send ``request`` ``to`` (broker, lane), then call ``on_response`` or ``on_error``, unless it is abandoned."""
        connection, number = self._connection(to), self.next_number()
        is_heartbeat = type(request) in HEARTBEAT_REQUESTS
        self._pending[ticket] = _PendingRequest(connection, due_ms, on_response, on_error, is_heartbeat)
        self._tickets[connection.number, number] = ticket
        self._network.send(connection, number, request, routine=routine)

    def tell(self, to: tuple[int, int], request: Any) -> None:
        """Send ``request``, which has no response, ``to`` (broker, lane)."""
        self._network.send(self._connection(to), self.next_number(), request, routine=False)

    def abandon(self, ticket: int) -> None:
        """Drop a request, and close its connection, because later responses would wait behind its response."""
        pending = self._pending.pop(ticket, None)
        if pending is not None:
            self._close(pending.connection, "a request was abandoned")

    def expire(self, now_ms: int) -> None:
        """Close the connections of requests that have timed out."""
        for pending in [pending for pending in self._pending.values() if pending.due_ms <= now_ms]:
            self._close(pending.connection, "no response came in time")

    def disconnect(self, broker: int, reason: str) -> None:
        """Close the connections to that broker."""
        for connection in [connection for (to, _), connection in self._connections.items() if to == broker]:
            self._close(connection, reason)

    def broker_restarts(self, broker: int) -> None:
        """Close the connections to that broker, which drops its unhandled requests."""
        for (to, _), connection in self._connections.items():
            connection.loses_requests |= to == broker
        self.disconnect(broker, "the broker restarts")

    def reset(self) -> None:
        """Close all connections."""
        for connection in list(self._connections.values()):
            self._close(connection, "the connection was reset")

    def lose(self, *, requests: bool) -> None:
        """Let the current connections lose all responses and, with ``requests``, all requests; the member does not notice."""
        for connection in self._connections.values():
            connection.loses_requests |= requests
            connection.loses_responses = True

    def crash(self) -> None:
        """Ignore all responses. Requests in flight still arrive."""
        for connection in self._connections.values():
            connection.closed = True

    def _connection(self, to: tuple[int, int]) -> SimulatedConnection:
        found = self._connections.get(to)
        return self._connect(*to) if found is None else found

    def _connect(self, broker: int, lane: int) -> SimulatedConnection:
        opened = self._network.connect(
            self._slot_id, lane, broker, lambda number, response: self._received(opened, number, response)
        )
        opened.on_close = lambda: self._run(lambda: self._close(opened, "the broker closed the connection"))
        self._connections[broker, lane] = opened
        return opened

    def _received(self, connection: SimulatedConnection, number: int, response: Any) -> None:
        def receive() -> None:
            pending = self._pending.pop(self._tickets.pop((connection.number, number)), None)
            if pending is not None:
                pending.on_response(response)

        self._run(receive)

    def _close(self, connection: SimulatedConnection, reason: str) -> None:
        connection.closed = True
        self._connections = {key: other for key, other in self._connections.items() if other is not connection}
        for ticket in [ticket for ticket, pending in self._pending.items() if pending.connection is connection]:
            self._run_later(_failing(self._pending.pop(ticket), reason))


def _failing(pending: _PendingRequest, reason: str) -> Callback:
    return lambda: pending.on_error(DisconnectedError(reason))
