"""How members in this process talk to the node: without sockets, through everything else, rules and trace included."""

from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from groupcoord.core.effects import Call, Effect
from groupcoord.protocol.framing import encode_request, parse_request
from groupcoord.testing.served import Answered, EmulatedNode, call_for


class MemberLine(Protocol):
    """What a member has to a broker: :class:`Line`, or :class:`~groupcoord.testing.socket_lines.SocketLine`."""

    @property
    def client_id(self) -> str:
        """What the member calls itself."""

    def ask(
        self, request: Any, answered: Answered, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request`` to a broker, the first one unless told, in the newest version unless told.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``.
        """

    def ask_coordinator(self, group: str, request: Any, answered: Answered, *, version: int | None = None) -> None:
        """Send ``request`` to the broker that coordinates ``group``; see ``ask``."""

    def close(self) -> None:
        """Nobody listens any more, and nobody is told."""


class Exchange(Protocol):
    """Where lines end: the cluster."""

    @property
    def served(self) -> EmulatedNode:
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


class Line:
    """A connection without a socket; requests on it do not wait for each other."""

    def __init__(self, exchange: Exchange, client_id: str) -> None:
        self.client_id = client_id
        self.number = exchange.served.connection()
        self._exchange = exchange
        self._correlation_ids = count(1)
        self._closed = False

    def ask(
        self, request: Any, answered: Answered, *, version: int | None = None, broker_id: int | None = None
    ) -> None:
        """Send ``request`` to a broker, the first one unless told, in the newest version unless told.

        ``answered`` is called with the response, or with None if the connection was closed. Raises RuntimeError after
        ``close``, and ValueError for a version that there is not.
        """
        if self._closed:
            raise RuntimeError(f"{self.client_id} has vanished: it sends nothing any more")
        exchange = self._exchange

        def hear(response: Any) -> None:
            if not self._closed:  # it may have been closed while the answer was on its way
                answered(response)

        if not exchange.is_up:
            exchange.soon(lambda: hear(None))
            return
        broker = 0 if broker_id is None else exchange.number_of(broker_id)
        call = call_for(type(request), self.number, next(self._correlation_ids), self.client_id, version, broker)
        if version is not None:
            request = _as_read(call, request)
        exchange.execute_effects(exchange.served.ask(call, request, exchange.now_ms(), hear))

    def ask_coordinator(self, group: str, request: Any, answered: Answered, *, version: int | None = None) -> None:
        """Send ``request`` to the broker that coordinates ``group``; see ``ask``."""
        self.ask(request, answered, version=version, broker_id=self._exchange.coordinator_of(group))

    def close(self) -> None:
        """Nobody listens any more, and nobody is told."""
        self._closed = True
        self._exchange.served.forget(self.number)


def _as_read(call: Call, request: Any) -> Any:
    """``request`` as a broker reads it that was sent it in an older version: without what that version cannot say."""
    if not call.api.serves(call.version):
        raise ValueError(f"{call.api.name}: there is no version {call.version}")
    frame = encode_request(call.api, call.version, call.correlation_id, call.client_id, request)
    return parse_request(frame[4:]).message
