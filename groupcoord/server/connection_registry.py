"""Who is connected: the limits on how many, and the end of those on which nothing moves.

Source: ``SocketServer.ConnectionQuotas`` and ``Selector.IdleExpiryManager``.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from groupcoord.config.broker_config import BrokerConfig, connection_overrides

if TYPE_CHECKING:
    from groupcoord.server.connection import ServerConnection

logger = logging.getLogger(__name__)

_overrides = lru_cache(maxsize=4)(connection_overrides)

# Deviation (bounded-memory): see broker/topic_config.py
MAX_UNREAD_BYTES = 256 << 20
"""So much may wait for all peers together; beyond that, who has not read for the longest time is cut off."""

UNREAD_GRACE_SECONDS = 1.0
"""So long more may wait: in one round of a busy server hundreds of long answers are given, before anybody could read."""


class ConnectionRegistry:
    """The open connections of one server. ``config`` is asked each time, for some limits can be changed while it runs."""

    def __init__(self, config: Callable[[], BrokerConfig], loop: asyncio.AbstractEventLoop) -> None:
        self.open: dict[int, ServerConnection] = {}
        self.unread = UnreadAnswers(loop)
        self._config = config
        self._loop = loop
        self._taken = 0
        self._per_ip: dict[str, int] = {}
        self._one_closed = asyncio.Event()
        self._idle_timer: asyncio.TimerHandle | None = None

    @property
    def full(self) -> bool:
        """Are all of ``max.connections`` taken? Then nobody is accepted until one of them goes, as in Kafka."""
        return self._taken >= self._config().max_connections

    def too_many_of(self, ip: str) -> int | None:
        """The limit of connections from ``ip``, if they have reached it; a further one is closed at once, as in Kafka."""
        config = self._config()
        limit = _overrides(config.max_connections_per_ip_overrides).get(ip, config.max_connections_per_ip)
        return limit if self._per_ip.get(ip, 0) >= limit else None

    def take_place(self, ip: str) -> None:
        """A connection from ``ip`` is accepted; it has its place from now until ``give_back``."""
        self._taken += 1
        self._per_ip[ip] = self._per_ip.get(ip, 0) + 1

    def give_back(self, ip: str) -> None:
        """That connection is gone."""
        self._taken -= 1
        left = self._per_ip[ip] - 1
        if left:
            self._per_ip[ip] = left
        else:
            del self._per_ip[ip]
        self._one_closed.set()

    def add(self, connection: "ServerConnection") -> None:
        """``connection``, whose place is taken, is open."""
        self.open[connection.number] = connection
        if self._idle_timer is None:
            self._set_idle_timer()

    def remove(self, connection: "ServerConnection") -> None:
        """``connection`` is gone, and so is its place."""
        del self.open[connection.number]
        self.give_back(connection.ip)

    async def one_closed(self, timeout_seconds: float) -> None:
        """Wait until a connection goes, or for so long."""
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
        """One timer for all: it is set for the moment the longest idle one is due.

        Looking at every connection then is cheaper than to keep an order that every byte received would change.
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


class UnreadAnswers:
    """How many bytes wait for whom; who has waited longest comes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: int = MAX_UNREAD_BYTES) -> None:
        self._loop = loop
        self._most_bytes = most_bytes
        self._waiting: dict[ServerConnection, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.bytes = 0
        """What waits in all."""

    def add(self, connection: "ServerConnection", size: int) -> None:
        """The peer of ``connection`` does not read on, and so many bytes wait for it."""
        self.remove(connection)
        self._waiting[connection] = size
        self.bytes += size
        if self.bytes > self._most_bytes and self._timer is None:
            self._timer = self._loop.call_at(self._loop.time() + UNREAD_GRACE_SECONDS, self._cut_off)

    def remove(self, connection: "ServerConnection") -> None:
        """It has read, or is gone."""
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
