"""The requests of one member that are under way, and the connections they go over, to each broker one or two.

As in ``groupcoord.client.connections``: requests that wait for other members have a connection of their own, each request has
a limit of time, and with a connection everything fails that is under way there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from groupcoord.client.errors import DisconnectedError
from groupcoord.protocol.messages import HeartbeatRequest
from groupcoord.testing.simulation.network import Connection, Network

GENERAL, PARKING = 0, 1
"""The two connections: of requests that are answered at once, and of those that wait for other members."""

Do = Callable[[], None]
Answered = Callable[[Any], None]
Failed = Callable[[Exception], None]


class _Ask(NamedTuple):
    """A request that waits for its answer."""

    connection: Connection
    due_ms: int
    answered: Answered
    failed: Failed
    beats: bool


class Requests:
    """What is heard is told by ``do``, and failures by ``soon``: at once or later, as the member can."""

    def __init__(self, network: Network, slot: int, do: Callable[[Do], None], soon: Callable[[Do], None]) -> None:
        self._network, self._slot, self._do, self._soon = network, slot, do, soon
        self._connections: dict[tuple[int, int], Connection] = {}
        self._asks: dict[int, _Ask] = {}
        self._correlations: dict[tuple[int, int], int] = {}  # (connection, number) → ticket
        self._sent = 0

    def __bool__(self) -> bool:
        return bool(self._asks)

    @property
    def only_beats(self) -> bool:
        """Is there nothing under way but heartbeats?"""
        return not self._asks or all(ask.beats for ask in self._asks.values())

    def waits_for(self) -> set[tuple[int, int]]:
        """What is waited for: numbers of connections, and of requests there."""
        return {key for key, ticket in self._correlations.items() if ticket in self._asks}

    def next_deadline(self) -> int | None:
        """When the first of them is given up (ms)."""
        return min(ask.due_ms for ask in self._asks.values()) if self._asks else None

    def next_number(self) -> int:
        """The number of one more request."""
        self._sent += 1
        return self._sent

    def working(self, broker: int) -> Connection | None:
        """The connection for heartbeats to that broker, if there is one and it works."""
        connection = self._connections.get((broker, GENERAL))
        # Who loses requests loses answers.
        return None if connection is None or connection.loses_answers else connection

    def ask(
        self,
        ticket: int,
        to: tuple[int, int],
        request: Any,
        due_ms: int,
        answered: Answered,
        failed: Failed,
        *,
        routine: bool,
    ) -> None:
        """Send ``request`` ``to`` a broker, over that of its connections; one of the two is called in the end."""
        connection = self._connections.get(to)
        if connection is None:
            connection = self._connect(*to)
        number = self.next_number()
        self._asks[ticket] = _Ask(connection, due_ms, answered, failed, type(request) is HeartbeatRequest)
        self._correlations[connection.number, number] = ticket
        self._network.send(connection, number, request, routine=routine)

    def abandon(self, ticket: int) -> None:
        """The answer to that is not wanted any more; its connection is of no use then."""
        ask = self._asks.pop(ticket, None)
        if ask is not None:
            self._drop(ask.connection, "an answer was not wanted any more")

    def give_up(self, now_ms: int) -> None:
        """Answers that had to be there by now do not come any more."""
        for ask in [ask for ask in self._asks.values() if ask.due_ms <= now_ms]:
            self._drop(ask.connection, "no answer came in time")

    def leave(self, broker: int, why: str) -> None:
        """That broker is not the one to talk to any more."""
        for connection in [connection for (to, _), connection in self._connections.items() if to == broker]:
            self._drop(connection, why)

    def reset(self) -> None:
        """All connections are gone, and the member notices."""
        for connection in list(self._connections.values()):
            self._drop(connection, "the connection was reset")

    def lose(self, *, requests: bool) -> None:
        """What is sent, or else what is answered, is lost from now on, over connections that there are."""
        for connection in self._connections.values():
            connection.loses_requests |= requests
            connection.loses_answers = True

    def close(self) -> None:
        """Nobody hears anything any more; what was sent is on its way."""
        for connection in self._connections.values():
            connection.closed = True

    def _connect(self, broker: int, lane: int) -> Connection:
        opened = self._network.connect(self._slot, lane, broker, lambda number, said: self._heard(opened, number, said))
        self._connections[broker, lane] = opened
        return opened

    def _heard(self, connection: Connection, number: int, response: Any) -> None:
        def hear() -> None:
            ask = self._asks.pop(self._correlations.pop((connection.number, number)), None)
            if ask is not None:
                ask.answered(response)

        self._do(hear)

    def _drop(self, connection: Connection, why: str) -> None:
        """Close it. Whoever waits for an answer there is told so, in a moment."""
        connection.closed = True
        self._connections = {key: other for key, other in self._connections.items() if other is not connection}
        for ticket in [ticket for ticket, ask in self._asks.items() if ask.connection is connection]:
            self._soon(_failing(self._asks.pop(ticket), why))


def _failing(ask: _Ask, why: str) -> Do:
    return lambda: ask.failed(DisconnectedError(why))
