"""Connects group members of a test to a cluster in the same process, without sockets. Their requests go through all layers:
faults and trace see them, too."""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from groupcoord.assignors import TopicPartition
from groupcoord.cluster.layer import Layer, ServedCluster
from groupcoord.core.effects import Append, Call, Effect, EmitEvent, Reply
from groupcoord.protocol.apis.find_coordinator import GROUP

OnResponse = Callable[[Any], None]
"""Called with the response, or with None if the connection was closed instead."""

_FIRST_IN_PROCESS = -1_000
"""Connection numbers of members in this process are up to this one; sockets never get such numbers."""


class InProcessTransport(Layer):
    """The outermost layer, which intercepts the responses to members in this process.

    ``on_activity`` is called after anything was handled; ``on_answers`` when ``deliver`` has responses to deliver.
    """

    def __init__(
        self, inner: ServedCluster, *, on_activity: Callable[[], None], on_answers: Callable[[], None]
    ) -> None:
        super().__init__(inner)
        self._on_activity = on_activity
        self._on_answers = on_answers
        self._connection_ids = count(_FIRST_IN_PROCESS, -1)
        self._waiting: dict[tuple[int, int], tuple[OnResponse, int]] = {}
        self._answers: deque[tuple[OnResponse, Any]] = deque()
        self.spoke: dict[tuple[str, str], int] = {}
        """(group, member id) → the connection on which that member sent its last request."""

    def handle(self, call: Call, request: Any, now_ms: int) -> list[Effect]:
        """The effects of ``request``, without responses to members in this process."""
        member_id = getattr(request, "member_id", None)
        if member_id and call.connection_id >= 0 and hasattr(request, "group_id"):
            self.spoke[request.group_id, member_id] = call.connection_id
        return super().handle(call, request, now_ms)

    # Members in this process.

    def connection(self) -> int:
        """The number of a new connection without a socket."""
        return next(self._connection_ids)

    def ask(self, call: Call, request: Any, now_ms: int, answered: OnResponse) -> list[Effect]:
        """Handle ``request``. ``answered`` is called with the response by ``deliver``, never by this method."""
        self._waiting[call.connection_id, call.correlation_id] = answered, call.broker
        return self.handle(call, request, now_ms)

    def forget(self, connection_id: int) -> None:
        """Drop the responses to requests of that connection."""
        for key in [key for key in self._waiting if key[0] == connection_id]:
            del self._waiting[key]

    def close_connections(self, broker: int | None = None) -> None:
        """Close all connections, or those to that broker, counted from 0: each pending request gets None as its response."""
        closed = [key for key, (_, asked) in self._waiting.items() if broker in (None, asked)]
        self._answers.extend((self._waiting.pop(key)[0], None) for key in closed)
        if self._answers:
            self._on_answers()

    def deliver(self) -> None:
        """Give members their responses, including those to requests that they send meanwhile."""
        while self._answers:
            answered, response = self._answers.popleft()
            answered(response)

    def outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:  # noqa: ARG002 - a layer's signature
        """``effects`` without the responses to members in this process, which ``deliver`` gives to them."""
        others: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Append | EmitEvent) and effect.call.connection_id <= _FIRST_IN_PROCESS:
                waiting = self._waiting.pop((effect.call.connection_id, effect.call.correlation_id), None)
                if waiting is not None:
                    self._answers.append((waiting[0], effect.response if isinstance(effect, Reply) else None))
            else:
                others.append(effect)
        if self._answers:
            self._on_answers()
        self._on_activity()
        return others


class MemberConnection(Protocol):
    """The interface of a member's connection to a cluster: an engine.InProcessConnection or a TcpConnection."""

    @property
    def client_id(self) -> str:
        """The member's client id."""

    @property
    def hears(self) -> tuple[int, int] | None:
        """(connection, correlation id) of the request while ``answered`` is called, by which the trace finds the response.

        None at other times, and for sockets.
        """

    def ask(
        self, request: Any, answered: OnResponse, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request``, by default to the first broker and in the newest version.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``.
        """

    def ask_coordinator(
        self, key: str, request: Any, answered: OnResponse, *, version: int | None = None, key_type: int = GROUP
    ) -> None:
        """Send ``request`` to the coordinator of ``key``, a group or what ``key_type`` says; see ``ask``."""

    def ask_leader(
        self, partition: TopicPartition, request: Any, answered: OnResponse, *, version: int | None = None
    ) -> None:
        """Send ``request`` to the leader of ``partition``, or to the first broker if there is none; see ``ask``."""

    def close(self) -> None:
        """Close the connection; no ``answered`` is called afterwards."""
