"""The node as a cluster serves it: who waits for its state is told, and members without a connection are answered."""

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
    """``node`` for a server, with an ear for what happens in it.

    ``on_activity`` is called when something was handled; ``on_answers`` when ``deliver`` has something to do.
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
        """(group, member id) → the connection on which that member was heard last."""

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
        """Let the node handle ``request``; ``answered`` is called by ``deliver``, never from in here."""
        self._waiting[call.connection_id, call.correlation_id] = answered
        return self.handle(call, request, now_ms)

    def forget(self, connection_id: int) -> None:
        """Nobody listens on that connection any more."""
        for key in [key for key in self._waiting if key[0] == connection_id]:
            del self._waiting[key]

    def close_connection(self) -> None:
        """All connections are closed: whoever waits for an answer is told so."""
        self._answers.extend((answered, None) for answered in self._waiting.values())
        self._waiting.clear()
        if self._answers:
            self._on_answers()

    def deliver(self) -> None:
        """Tell members what they were answered, and what comes of it, until there is nothing more to tell."""
        while self._answers:
            answered, response = self._answers.popleft()
            answered(response)

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:  # noqa: ARG002 - a layer's signature
        """``effects`` without those for members in this process, who will be told by ``deliver``."""
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
    """A call by somebody in this process, of the API whose request class that is, in its newest version unless told."""
    api = API_BY_REQUEST[request]
    newest = api.max_version if version is None else version
    return Call(connection_id, correlation_id, api, newest, client_id, _IN_PROCESS_HOST, broker)


class MemberConnection(Protocol):
    """A member's connection to a cluster: an InProcessConnection or a TcpConnection."""

    @property
    def client_id(self) -> str:
        """What the member calls itself."""

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request`` to a broker, the first one unless told, in the newest version unless told.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``.
        """

    def ask_coordinator(self, group: str, request: Any, answered: OnResponse, *, version: int | None = None) -> None:
        """Send ``request`` to the broker that coordinates ``group``; see ``ask``."""

    def close(self) -> None:
        """Nobody listens any more, and nobody is told."""


class TransportHost(Protocol):
    """Where lines end: the cluster."""

    @property
    def transport(self) -> InProcessTransport:
        """The node."""

    @property
    def is_up(self) -> bool:
        """Does it listen? If not, whoever asks finds the connection closed."""

    def now_ms(self) -> int:
        """How late it is on the cluster's clock."""

    def execute_effects(self, effects: list[Effect]) -> None:
        """Answer others, too."""

    def number_of(self, broker_id: int) -> int:
        """The number of a broker, counted from 0."""

    def coordinator_of(self, group: str) -> int:
        """The id of the broker that coordinates ``group``."""

    def soon(self, function: Callable[[], None]) -> None:
        """Call it when what is under way is done."""


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
        """Send ``request`` to a broker, the first one unless told, in the newest version unless told.

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
        """Nobody listens any more, and nobody is told."""
        self._closed = True
        self._host.transport.forget(self.number)


def _as_read(call: Call, request: Any) -> Any:
    """``request`` as a broker reads it that was sent it in an older version: without what that version cannot say."""
    if not call.api.serves(call.version):
        raise ValueError(f"{call.api.name}: there is no version {call.version}")
    frame = encode_request(call.api, call.version, call.correlation_id, call.client_id, request)
    return parse_request(frame[4:]).message
