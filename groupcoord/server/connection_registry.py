"""The open connections: limits on their number, on idle time, and on the answers that wait in memory for their peers.

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
"""How many bytes of answers may wait for all peers together; beyond that, the peer that has not read for the longest time is
cut off. Each connection has at most one answer that waits (or what came together, up to ``ANSWERS_BYTES``), because nothing
more of a peer is served until it reads; and of an answer with records no more than a chunk is in memory. So this limit is for
what is left: hundreds of peers that ask for a large Metadata, say, and never read it. Kafka has no such limit, and runs out
of memory."""

UNREAD_GRACE_SECONDS = 1.0
"""How much longer they may wait: one round of a busy server writes hundreds of long answers before any peer could read."""


class OpenConnection(Protocol):
    """What the registry knows of a connection; ``active_at`` is when bytes last moved, on the loop's clock (seconds)."""

    active_at: float
    number: int
    ip: str
    peer: str

    def abort(self) -> None:
        """Close at once."""


C = TypeVar("C", bound=OpenConnection)


class ConnectionRegistry(Generic[C]):
    """The open connections of one server.

    ``config`` is called each time, because some limits can change while the server runs. ``on_change`` is told of each
    connection that is open now (True) or gone (False).
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
        """The limit of connections from ``ip`` if it is reached; a further one is closed at once, as in Kafka."""
        config = self._config()
        limit = _overrides(config.max_connections_per_ip_overrides).get(ip, config.max_connections_per_ip)
        return limit if self._per_ip.get(ip, 0) >= limit else None

    def reserve(self, ip: str) -> None:
        """Count an accepted connection from ``ip``, until ``release``."""
        self._reserved += 1
        self._per_ip[ip] = self._per_ip.get(ip, 0) + 1

    def release(self, ip: str) -> None:
        """A connection from ``ip`` is gone."""
        self._reserved -= 1
        left = self._per_ip[ip] - 1
        if left:
            self._per_ip[ip] = left
        else:
            del self._per_ip[ip]
        self._one_closed.set()

    def add(self, connection: C) -> None:
        """``connection``, which was counted by ``reserve``, is open."""
        self.open[connection.number] = connection
        if self._idle_timer is None:
            self._set_idle_timer()
        if self._on_change is not None:
            self._on_change(connection, True)  # noqa: FBT003 - says which of two
        logger.debug("%s connected", connection.peer)

    def remove(self, connection: C) -> None:
        """``connection`` is gone. A call of it that is still in flight will not be answered, as in Kafka."""
        del self.open[connection.number]
        self.release(connection.ip)
        if self._on_change is not None:
            self._on_change(connection, False)  # noqa: FBT003 - says which of two
        logger.debug("%s disconnected", connection.peer)

    async def one_closed(self, timeout_seconds: float) -> None:
        """Wait until a connection closes, or for so long."""
        self._one_closed.clear()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._one_closed.wait()
        except TimeoutError:
            pass

    def stop(self) -> None:
        """No timer fires any more."""
        self.unread.stop()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _set_idle_timer(self) -> None:
        """Set one timer for all connections, for the moment when the longest idle one is due.

        Looking at every connection then is cheaper than keeping an order that every received byte would change.
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
                logger.info("closing %s: nothing moved for %g s", connection.peer, max_idle_seconds)
                connection.active_at = now  # until the transport has said goodbye
                connection.abort()
        self._set_idle_timer()


class UnreadAnswers(Generic[C]):
    """How many bytes wait for which connection; the one that has waited longest comes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: int = MAX_UNREAD_BYTES) -> None:
        self._loop = loop
        self._most_bytes = most_bytes
        self._waiting: dict[C, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.bytes = 0
        """The sum of what waits."""

    def add(self, connection: C, size: int) -> None:
        """The peer of ``connection`` does not read, and so many bytes wait for it."""
        self.remove(connection)
        self._waiting[connection] = size
        self.bytes += size
        if self.bytes > self._most_bytes and self._timer is None:
            self._timer = self._loop.call_at(self._loop.time() + UNREAD_GRACE_SECONDS, self._cut_off)

    def remove(self, connection: C) -> None:
        """The peer has read, or the connection is gone."""
        self.bytes -= self._waiting.pop(connection, 0)

    def stop(self) -> None:
        """No timer fires any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._timer = None
        while self.bytes > self._most_bytes:
            longest = next(iter(self._waiting))
            logger.warning(
                "closing %s, which does not read: %d bytes of answers wait, and more than %d may not",
                longest.peer,
                self.bytes,
                self._most_bytes,
            )
            self.remove(longest)
            longest.abort()
