"""The open connections, with limits on their number, their idle time, and the memory of responses that clients do not read.

Source: ``SocketServer.ConnectionQuotas`` and ``Selector.IdleExpiryManager``.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from groupcoord.config.broker_config import BrokerConfig, connection_overrides

logger = logging.getLogger(__name__)

_overrides = lru_cache(maxsize=4)(connection_overrides)

# Deviation (bounded-memory): see broker/topic_config.py
MAX_UNREAD_BYTES = 256 << 20
"""How many bytes of responses may wait for all clients together; beyond that, the connection that has not read for longest is
closed. Each connection has at most one waiting response (or several that came together, up to ``ANSWERS_BYTES``), because no
other request of it is served meanwhile; and of a response with records only a chunk is in memory. So the limit is for the rest:
hundreds of clients that request a large Metadata, say, and never read it. Kafka has no such limit, and runs out of memory."""

UNREAD_GRACE_SECONDS = 1.0
"""How long the limit may be exceeded before a connection is closed: a busy server writes hundreds of long responses in one
round, before any client can read."""


class OpenConnection(Protocol):
    """The parts of a connection that the registry uses; ``active_at`` is its last activity on the loop's clock (seconds)."""

    active_at: float
    number: int
    ip: str
    peer: str

    def abort(self) -> None:
        """Close at once."""


C = TypeVar("C", bound=OpenConnection)


class ConnectionRegistry(Generic[C]):
    """The open connections of one server.

    ``config`` is called each time, because some limits can change at run time. ``on_change`` is called with each connection
    that opens (True) or closes (False).
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        loop: asyncio.AbstractEventLoop,
        on_change: Callable[[C, bool], None] | None = None,
    ) -> None:
        self.open: dict[int, C] = {}
        self.unread: UnreadAnswers[C] = UnreadAnswers(loop)
        self._config = config
        self._loop = loop
        self._on_change = on_change
        self._reserved = 0
        self._per_ip: dict[str, int] = {}
        self._one_closed = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def full(self) -> bool:
        """Is ``max.connections`` reached? Then no connection is accepted until one closes, as in Kafka."""
        return self._reserved >= self._config().max_connections

    def limit_reached(self, ip: str) -> int | None:
        """The limit of connections from ``ip`` if it is reached; another one is closed at once, as in Kafka."""
        config = self._config()
        limit = _overrides(config.max_connections_per_ip_overrides).get(ip, config.max_connections_per_ip)
        return limit if self._per_ip.get(ip, 0) >= limit else None

    def reserve(self, ip: str) -> None:
        """Count an accepted connection from ``ip``, until ``release``."""
        self._reserved += 1
        self._per_ip[ip] = self._per_ip.get(ip, 0) + 1

    def release(self, ip: str) -> None:
        """A connection from ``ip`` was closed."""
        self._reserved -= 1
        left = self._per_ip[ip] - 1
        if left:
            self._per_ip[ip] = left
        else:
            del self._per_ip[ip]
        self._one_closed.set()

    def add(self, connection: C) -> None:
        """Add an open connection, which was counted by ``reserve``."""
        self.open[connection.number] = connection
        if self._idle_timer is None:
            self._set_idle_timer()
        if self._on_change is not None:
            self._on_change(connection, True)  # noqa: FBT003 - says which of two
        logger.debug("%s connected", connection.peer)

    def remove(self, connection: C) -> None:
        """Remove a closed connection. A request in flight will not be answered, as in Kafka."""
        del self.open[connection.number]
        self.release(connection.ip)
        if self._on_change is not None:
            self._on_change(connection, False)  # noqa: FBT003 - says which of two
        logger.debug("%s disconnected", connection.peer)

    async def one_closed(self, timeout_seconds: float) -> None:
        """Wait until a connection closes, or until the timeout."""
        self._one_closed.clear()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._one_closed.wait()
        except TimeoutError:
            pass

    def stop(self) -> None:
        """Cancel the timers."""
        self.unread.stop()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _set_idle_timer(self) -> None:
        """Set one timer for all connections, for the time when the longest idle one is due.

        Checking all connections then is cheaper than an order that every received byte would change.
        """
        max_idle_ms = self._config().connections_max_idle_ms
        self._idle_timer = None
        if self.open and max_idle_ms >= 0:
            oldest = min(connection.active_at for connection in self.open.values())
            self._idle_timer = self._loop.call_at(oldest + max_idle_ms / 1000, self._close_idle)

    def _close_idle(self) -> None:
        max_idle_seconds = self._config().connections_max_idle_ms / 1000
        now = self._loop.time()
        for connection in tuple(self.open.values()):
            if now - connection.active_at >= max_idle_seconds:
                logger.info("closing %s: idle for %g s", connection.peer, max_idle_seconds)
                connection.active_at = now  # not again before the transport has closed
                connection.abort()
        self._set_idle_timer()


class UnreadAnswers(Generic[C]):
    """The bytes that wait for each connection; the one that has waited longest is first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: int = MAX_UNREAD_BYTES) -> None:
        self._loop = loop
        self._most_bytes = most_bytes
        self._waiting: dict[C, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.bytes = 0
        """The sum of waiting bytes."""

    def add(self, connection: C, size: int) -> None:
        """The client of ``connection`` does not read, and ``size`` bytes wait for it."""
        self.remove(connection)
        self._waiting[connection] = size
        self.bytes += size
        if self.bytes > self._most_bytes and self._timer is None:
            self._timer = self._loop.call_at(self._loop.time() + UNREAD_GRACE_SECONDS, self._cut_off)

    def remove(self, connection: C) -> None:
        """The client has read, or the connection was closed."""
        self.bytes -= self._waiting.pop(connection, 0)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._timer = None
        while self.bytes > self._most_bytes:
            longest = next(iter(self._waiting))
            logger.warning(
                "closing %s, which does not read: %d bytes of responses wait for all clients, the limit is %d",
                longest.peer,
                self.bytes,
                self._most_bytes,
            )
            self.remove(longest)
            longest.abort()
