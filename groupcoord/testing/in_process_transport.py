"""Connections of members in the same process: without sockets, but through everything else, faults and trace included."""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from groupcoord.cluster.layer import Layer, ServedCluster
from groupcoord.core.effects import Append, Call, Effect, EmitEvent, Reply
from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.protocol.framing import encode_request, parse_request

OnResponse = Callable[[Any], None]
"""Called with the response, or with None if the connection was closed instead."""

_IN_PROCESS_HOST = "/127.0.0.1"
_FIRST_IN_PROCESS = -1_000
"""Members in this process have numbers of connections below that: a server gives none of them to a socket."""


class InProcessTransport(Layer):
    """The outermost layer: takes out the answers to members in this process.

    ``on_activity`` is called after anything was handled; ``on_answers`` when ``deliver`` has something to do.
    """

    def __init__(
        self, inner: ServedCluster, *, on_activity: Callable[[], None], on_answers: Callable[[], None]
    ) -> None:
        super().__init__(inner)
        self._on_activity = on_activity
        self._on_answers = on_answers
        self._connection_ids = count(_FIRST_IN_PROCESS, -1)
        self._waiting: dict[tuple[int, int], OnResponse] = {}
        self._answers: deque[tuple[OnResponse, Any]] = deque()
        self.spoke: dict[tuple[str, str], int] = {}
        """(group, member id) → the connection on which that member sent its last request."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """What follows from ``request``, without what is for members in this process."""
        member_id = getattr(request, "member_id", None)
        if member_id and call.connection_id >= 0 and hasattr(request, "group_id"):
            self.spoke[request.group_id, member_id] = call.connection_id
        return super().handle(call, request, now_ms)

    # Members in this process.

    def connection(self) -> int:
        """The number of a new connection that has no socket."""
        return next(self._connection_ids)

    def ask(self, call: Call, request: Any, now_ms: int, answered: OnResponse) -> list[Effect]:
        """Handle ``request``; ``deliver`` calls ``answered`` with the response, this method never does."""
        self._waiting[call.connection_id, call.correlation_id] = answered
        return self.handle(call, request, now_ms)

    def forget(self, connection_id: int) -> None:
        """Drop the answers to requests of that connection."""
        for key in [key for key in self._waiting if key[0] == connection_id]:
            del self._waiting[key]

    def close_connections(self) -> None:
        """Close all connections: each request that waits for an answer gets None."""
        self._answers.extend((answered, None) for answered in self._waiting.values())
        self._waiting.clear()
        if self._answers:
            self._on_answers()

    def deliver(self) -> None:
        """Give members their answers, those to requests that they send meanwhile included."""
        while self._answers:
            answered, response = self._answers.popleft()
            answered(response)

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:  # noqa: ARG002 - a layer's signature
        """``effects`` without those for members in this process, which ``deliver`` gives to them."""
        others: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Append | EmitEvent) and effect.call.connection_id <= _FIRST_IN_PROCESS:
                answered = self._waiting.pop((effect.call.connection_id, effect.call.correlation_id), None)
                if answered is not None:
                    self._answers.append((answered, effect.response if isinstance(effect, Reply) else None))
            else:
                others.append(effect)
        if self._answers:
            self._on_answers()
        self._on_activity()
        return others


def call_for(
    request: type, connection_id: int, correlation_id: int, client_id: str, version: int | None = None, broker: int = 0
) -> Call:
    """A call from this process, of the API with that class of requests; ``version`` is the newest unless given."""
    api = API_BY_REQUEST[request]
    newest = api.max_version if version is None else version
    return Call(connection_id, correlation_id, api, newest, client_id, _IN_PROCESS_HOST, broker)


class MemberConnection(Protocol):
    """A member's connection to a cluster: an InProcessConnection or a TcpConnection."""

    @property
    def client_id(self) -> str:
        """The member's client id."""

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request``, by default to the first broker and in the newest version.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``.
        """

    def ask_coordinator(self, group: str, request: Any, answered: OnResponse, *, version: int | None = None) -> None:
        """Send ``request`` to the broker that coordinates ``group``; see ``ask``."""

    def close(self) -> None:
        """Close the connection; no ``answered`` is called any more."""


class TransportHost(Protocol):
    """The cluster that an InProcessConnection is connected to."""

    @property
    def transport(self) -> InProcessTransport:
        """The transport of the cluster."""

    @property
    def is_up(self) -> bool:
        """Does the cluster listen? If not, requests find the connection closed."""

    def now_ms(self) -> int:
        """The time on the cluster's clock (ms)."""

    def execute_effects(self, effects: list[Effect]) -> None:
        """Execute the effects that are not for members in this process."""

    def number_of(self, broker_id: int) -> int:
        """The number of a broker, counted from 0."""

    def coordinator_of(self, group: str) -> int:
        """The id of the broker that coordinates ``group``."""

    def soon(self, function: Callable[[], None]) -> None:
        """Call it in the next round of the loop."""


class InProcessConnection:
    """A connection without a socket; requests on it do not wait for each other."""

    def __init__(self, host: TransportHost, client_id: str) -> None:
        self.client_id = client_id
        self.number = host.transport.connection()
        self._host = host
        self._correlation_ids = count(1)
        self._closed = False

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request``, by default to the first broker and in the newest version.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``, and ValueError for a version that there is not.
        """
        if self._closed:
            raise RuntimeError(f"{self.client_id} has vanished: it sends nothing any more")
        host = self._host

        def hear(response: Any) -> None:
            if not self._closed:  # it may have been closed while the answer was on its way
                answered(response)

        if not host.is_up:
            host.soon(lambda: hear(None))
            return
        broker = 0 if broker_id is None else host.number_of(broker_id)
        call = call_for(type(request), self.number, next(self._correlation_ids), self.client_id, version, broker)
        if version is not None:
            request = _as_read(call, request)
        host.execute_effects(host.transport.ask(call, request, host.now_ms(), hear))

    def ask_coordinator(self, group: str, request: Any, answered: OnResponse, *, version: int | None = None) -> None:
        """Send ``request`` to the broker that coordinates ``group``; see ``ask``."""
        self.ask(request, answered, version=version, broker_id=self._host.coordinator_of(group))

    def close(self) -> None:
        """Close the connection; no ``answered`` is called any more."""
        self._closed = True
        self._host.transport.forget(self.number)


def _as_read(call: Call, request: Any) -> Any:
    """``request`` as a broker reads it from an older version: without the fields that version does not have."""
    if not call.api.serves(call.version):
        raise ValueError(f"{call.api.name}: there is no version {call.version}")
    frame = encode_request(call.api, call.version, call.correlation_id, call.client_id, request)
    return parse_request(frame[4:]).message
