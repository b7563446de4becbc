"""Listening sockets, and Acceptor, which accepts connections from them."""

import asyncio
import errno
import itertools
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.server.address_text import host_and_port
from groupcoord.server.connection import Round, ServerConnection
from groupcoord.server.connection_registry import ConnectionRegistry
from groupcoord.server.file_descriptor_limit import SPARE_DESCRIPTORS, descriptors_left

logger = logging.getLogger(__name__)

_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_RETRY_SECONDS = 1.0
_PORT_TRIES = 10
_AT_ONCE = 100  # connections accepted before other tasks run, so that a reconnecting client cannot block the loop


async def bind(host: str, port: int, config: BrokerConfig) -> list[socket.socket]:
    """Listening sockets on one port, for every address of ``host``; ``""`` means all interfaces, port 0 any port.

    Raises OSError.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    addresses = list(dict.fromkeys((family, address) for family, _, _, _, address in found))
    for tries_left in reversed(range(_PORT_TRIES)):
        try:
            return _bind_all(addresses, config)
        except OSError as problem:
            # The port chosen for the first address may be in use on the second one.
            if port or problem.errno != errno.EADDRINUSE or not tries_left:
                raise
    raise AssertionError


def _bind_all(
    addresses: Sequence[tuple[socket.AddressFamily, tuple[Any, ...]]], config: BrokerConfig
) -> list[socket.socket]:
    listening: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, address in addresses:
            port = listening[0].getsockname()[1] if listening else address[1]
            try:
                listening.append(_listen(family, (address[0], port, *address[2:]), config))
            except OSError as problem:
                if problem.errno not in _NO_SUCH_ADDRESS:
                    raise
                missing = problem  # a machine without IPv6 has the name localhost for it all the same
        if not listening and missing:
            raise missing
    except BaseException:
        for opened in listening:
            opened.close()
        raise
    return listening


def _listen(family: socket.AddressFamily, address: tuple[Any, ...], config: BrokerConfig) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003 - its only argument
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if config.socket_receive_buffer_bytes != -1:  # accepted sockets inherit it
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        sock.bind(address)
        sock.listen(config.socket_listen_backlog_size)
    except BaseException:
        sock.close()
        raise
    return sock


class Acceptor:
    """Accepts connections while the limits allow.

    ``files_to_come`` returns how many file descriptors the data directory may still need: they are left free.
    """

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        connections: ConnectionRegistry[ServerConnection],
        serving: Round,
        files_to_come: Callable[[], int] = lambda: 0,
    ) -> None:
        self._config = config
        self._files_to_come = files_to_come
        self._connections = connections
        self._serving = serving
        self._numbers = itertools.count(1)
        self._short_of_resources = False

    async def accept_from(self, listening: socket.socket, broker: int = 0, listener: int = 0) -> None:
        """Accept connections for that listener of that broker, both counted from 0, until cancelled."""
        while True:
            await _readable(listening)
            while self._connections.full:
                await self._connections.one_closed(_RETRY_SECONDS)
            try:
                accepted = self._accept_some(listening)
            except OSError as problem:
                # Out of file descriptors, or nearly. Clients wait; log it once, and try again when a connection has
                # closed.
                if not self._short_of_resources:
                    self._short_of_resources = True
                    count = len(self._connections.open)
                    logger.error("cannot accept more than the %d connections there are: %s", count, problem.strerror)
                await self._connections.one_closed(_RETRY_SECONDS)
                continue
            taking_in = asyncio.gather(
                *[self._take_in(sock, address[0], address[1], broker, listener) for sock, address in accepted]
            )
            try:
                await asyncio.shield(taking_in)
            except asyncio.CancelledError:
                await taking_in  # so that a shutdown finds all connections
                raise

    def _accept_some(self, listening: socket.socket) -> list[tuple[socket.socket, tuple[Any, ...]]]:
        """The connections that can be accepted now, with their addresses. Raises OSError if not even one was accepted."""
        accepted: list[tuple[socket.socket, tuple[Any, ...]]] = []
        while len(accepted) < _AT_ONCE and not self._connections.full:
            try:
                self._check_descriptors(listening)
                sock, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                break
            except OSError:
                if not accepted:
                    raise
                break
            if self._short_of_resources:
                self._short_of_resources = False
                logger.info("accepting connections again")
            limit = self._connections.limit_reached(address[0])
            if limit is None:
                self._connections.reserve(address[0])
                accepted.append((sock, address))
            else:
                logger.warning("closing a connection from %s: it has %d already, its limit", address[0], limit)
                sock.close()
        return accepted

    def _check_descriptors(self, listening: socket.socket) -> None:
        """Raises OSError if another connection would take a descriptor that is needed to serve the others."""
        left = descriptors_left(listening.fileno())
        if left is not None and left <= SPARE_DESCRIPTORS + self._files_to_come():
            raise OSError(errno.EMFILE, f"{left} file descriptors are left, and they are kept for files")

    async def _take_in(self, sock: socket.socket, ip: str, port: int, broker: int, listener: int) -> None:
        """Create a ServerConnection for an accepted socket."""
        config = self._config()
        try:
            sock.setblocking(False)  # noqa: FBT003 - its only argument
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # As Kafka does. Otherwise the last part of a long response would wait for a delayed ACK, 40 ms.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if config.socket_send_buffer_bytes != -1:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
            most_bytes = config.socket_request_max_bytes
            connection = ServerConnection(
                next(self._numbers), (ip, port), self._serving, self._connections, most_bytes, broker, listener
            )
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, sock)
        except Exception as problem:
            sock.close()
            self._connections.release(ip)
            if not isinstance(problem, OSError):
                raise
            logger.debug("%s left while it was taken in: %s", host_and_port(ip, port), problem)


async def _readable(listening: socket.socket) -> None:
    """Wait until a client connects.

    The loop's ``sock_accept`` loses a connection if it is cancelled after accepting it.
    """
    loop = asyncio.get_running_loop()
    knocked = asyncio.Event()
    loop.add_reader(listening, knocked.set)
    try:
        await knocked.wait()
    finally:
        loop.remove_reader(listening)
