"""Who is connected: the limits on how many, and the end of those on which nothing moves.

Source: ``SocketServer.ConnectionQuotas`` and ``Selector.IdleExpiryManager``.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from groupcoord.config.settings import BrokerConfig, connection_overrides
from groupcoord.server.unread import Unread

if TYPE_CHECKING:
    from groupcoord.server.connection import Connection

logger = logging.getLogger(__name__)

_overrides = lru_cache(maxsize=4)(connection_overrides)


class Connections:
    """The open connections of one server. ``config`` is asked each time, for some limits can be changed while it runs."""

    def __init__(self, config: Callable[[], BrokerConfig], loop: asyncio.AbstractEventLoop) -> None:
        self.open: dict[int, Connection] = {}
        self.unread = Unread(loop)
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

    def add(self, connection: "Connection") -> None:
        """``connection``, whose place is taken, is open."""
        self.open[connection.number] = connection
        if self._idle_timer is None:
            self._set_idle_timer()

    def remove(self, connection: "Connection") -> None:
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
