"""The server of a cluster: a listening port for each broker and listener, startup, signals, shutdown."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, TracebackType
from typing import Self

from groupcoord.broker.broker_registry import BrokerRegistry
from groupcoord.cluster.layer import ServedCluster
from groupcoord.config.listeners import LAST_PORT
from groupcoord.core.effects import Effect, EmitEvent
from groupcoord.server.address_text import host_and_port
from groupcoord.server.background_worker import BackgroundWorker
from groupcoord.server.clock_and_random_ids import NowMs, SecondsUntil
from groupcoord.server.connection import Round, ServerConnection
from groupcoord.server.connection_registry import ConnectionRegistry
from groupcoord.server.listener import Acceptor, bind
from groupcoord.server.serving_loop import ServingLoop, UnexpectedError
from groupcoord.wall_clock import wall_clock

logger = logging.getLogger(__name__)

GRACE_SECONDS = 2.0
"""How long a shutdown waits for clients to read their responses."""


class Server:
    """Serves ``cluster`` at ``host`` and ``port`` (0: any free port), in the running event loop.

    ``async with Server(cluster) as server`` starts it and stops it; ``serve`` does both, and ends on signals. ``now_ms`` is the
    clock: the wall clock, unless a test has its own; ``seconds_until`` then tells how long to wait for a time on it, and if it
    returns None, ``wake`` has to be called whenever the clock has moved. ``listeners`` are called with every emitted event, and
    can look at its type and fields before the event is created.

    Further listeners in ``listeners=`` of the configuration are served at their addresses, or at any port if that is 0;
    ``host`` and ``port`` are those of the first one. A cluster of several brokers passes its ``brokers``: each listens on a
    port of its own, the second on the next port after the first one's and so on, or on any ports. ``on_connection`` is called
    with each connection that opens (True) or closes (False). ``files_to_come`` returns how many file descriptors the data
    directory may still need.
    """

    def __init__(
        self,
        cluster: ServedCluster,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        now_ms: NowMs | None = None,
        listeners: Iterable[Callable[[EmitEvent], None]] = (),
        seconds_until: SecondsUntil | None = None,
        brokers: BrokerRegistry | None = None,
        on_connection: Callable[[ServerConnection, bool], None] | None = None,
        files_to_come: Callable[[], int] = lambda: 0,
    ) -> None:
        self.cluster = cluster
        self.host = host
        self.port = port
        self._now_ms = now_ms or wall_clock()
        self._listeners = tuple(listeners)
        self._seconds_until = seconds_until
        self._brokers = brokers
        self._on_connection = on_connection
        self._files_to_come = files_to_come
        self._places: dict[
            tuple[int, int], tuple[str, int]
        ] = {}  # addresses by broker and listener; kept for a restart
        self._sockets: list[tuple[int, int, socket.socket]] = []  # (broker, listener, socket)
        self._accepting: dict[socket.socket, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._closed: set[int] = set()
        """The brokers, counted from 0, that are not listening."""
        self._stop = asyncio.Event()
        self._signal: signal.Signals | None = None
        self._connections: ConnectionRegistry[ServerConnection]
        self._serving_loop: ServingLoop
        self._acceptor: Acceptor
        self._worker: BackgroundWorker

    @property
    def address(self) -> str:
        """``host:port``, the bootstrap server for clients; known once the server is started."""
        return host_and_port(self.host, self.port)

    @property
    def addresses(self) -> list[str]:
        """``host:port`` of every broker's first listener, in order; known once the server is started."""
        return [host_and_port(*place) for (_, listener), place in self._places.items() if not listener]

    @property
    def listener_addresses(self) -> dict[str, list[str]]:
        """The ``addresses`` of each listener by its name, in the order of ``listeners``; known once the server is started."""
        return {
            endpoint.listener: [host_and_port(*place) for (_, at), place in self._places.items() if at == listener]
            for listener, endpoint in enumerate(self.cluster.config.served)
        }

    async def serve(self, announce: Callable[["Server"], None]) -> signal.Signals | None:
        """Start, call ``announce`` when connections are accepted, serve until ``stop`` or a signal, shut down.

        Returns the signal: SIGINT or SIGTERM; a second one ends the graceful shutdown at once. Raises OSError if it cannot
        listen.
        """
        with captured_signals(self._signalled):
            await self.startup()
            try:
                announce(self)
                await self._stop.wait()
            finally:
                await self.shutdown()
        return self._signal

    async def startup(self) -> None:
        """Listen and accept. Raises OSError if it cannot listen, ConfigError if the address cannot be advertised."""
        loop = asyncio.get_running_loop()
        try:
            await self._listen(1 if self._brokers is None else len(self._brokers))
        except BaseException:
            self.close_sockets()
            raise
        self._connections = ConnectionRegistry(lambda: self.cluster.config, loop, self._on_connection)
        serving = Round(loop)
        self._serving_loop = ServingLoop(
            self.cluster, self._connections, serving, loop, self._now_ms, self._listeners, self._seconds_until
        )
        self._worker = BackgroundWorker(loop, self._serving_loop.work_done)
        self.cluster.use_worker(self._worker.submit)
        self.cluster.batch_rounds(batches=True)
        self._acceptor = Acceptor(lambda: self.cluster.config, self._connections, serving, self._files_to_come)
        self._begin_accepting()
        self._serving_loop.wake()
        logger.info("serving at %s", ", ".join(host_and_port(*place) for place in self._places.values()))

    async def shutdown(self, *, keep_listening: bool = False) -> None:
        """Stop accepting, let clients read their responses, close all connections.

        With ``keep_listening`` the listening sockets stay open, and new clients wait for the server that will ``take_over``.
        """
        try:
            await self.brokers_closed()
            await self._end_accepting(self._accepting)
        finally:
            if not keep_listening:
                self.close_sockets()
            self.cluster.use_worker(None)
            self.cluster.batch_rounds(batches=False)
            self._worker.stop()
            self._serving_loop.stop()
            self._connections.stop()
            open_connections = self._connections.open
            logger.info("shutting down, connections: %d", len(open_connections))
            for connection in tuple(open_connections.values()):
                connection.close()
        grace = asyncio.get_running_loop().call_later(GRACE_SECONDS, self._abort_connections)
        try:
            while open_connections:
                await self._connections.one_closed(GRACE_SECONDS)
        finally:
            grace.cancel()
        logger.info("stopped")

    def take_over(self, before: "Server") -> None:
        """Listen at the addresses of a server that was shut down, on its sockets if it kept them; call it before
        ``startup``."""
        self.port = before.port
        self._places, self._sockets = before._hand_over()  # noqa: SLF001 - it is of this class

    def _hand_over(self) -> tuple[dict[tuple[int, int], tuple[str, int]], list[tuple[int, int, socket.socket]]]:
        sockets, self._sockets = self._sockets, []
        return self._places, sockets

    async def __aenter__(self) -> Self:
        await self.startup()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown()

    # For code in the same process.

    def stop(self) -> None:
        """End ``serve``."""
        self._stop.set()

    def wake(self) -> None:
        """The clock was moved: fire the due timers now."""
        self._serving_loop.wake()

    def execute_effects(self, effects: Iterable[Effect]) -> None:
        """Execute effects that come from no request, such as of an administrative action."""
        self._serving_loop.execute_effects(effects)

    @property
    def unexpected_errors(self) -> list[UnexpectedError]:
        """The first hundred unexpected exceptions. A test should find none."""
        return self._serving_loop.unexpected_errors

    def is_connected(self, connection_id: int) -> bool:
        """Is the connection with that number open?"""
        return connection_id in self._connections.open

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections.open)

    async def close_broker(self, number: int) -> None:
        """Stop listening for that broker, counted from 0, and abort its connections, as if its process had ended."""
        self._closed.add(number)
        gone = [each for each in self._sockets if each[0] == number]
        await self._end_accepting([listening for _, _, listening in gone])
        for each in gone:
            each[2].close()
            self._sockets.remove(each)
        for connection in tuple(self._connections.open.values()):
            if connection.broker == number:
                connection.abort()

    def close_broker_soon(self, number: int) -> None:
        """``close_broker``, after the responses that are not written yet. ``brokers_closed`` waits for it."""
        closing = asyncio.get_running_loop().create_task(self.close_broker(number))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    @property
    def is_closing_broker(self) -> bool:
        """Is a ``close_broker_soon`` pending?"""
        return bool(self._closing)

    async def brokers_closed(self) -> None:
        """Wait until every pending ``close_broker_soon`` is done."""
        await asyncio.gather(*self._closing)

    async def open_broker(self, number: int) -> None:
        """Listen for that broker again, at its address. Raises OSError if the port is taken."""
        self._closed.discard(number)
        try:
            await self._listen(1 if self._brokers is None else len(self._brokers))
        except OSError:
            self._closed.add(number)
            raise
        self._begin_accepting()

    # The inside of the lifecycle.

    def _begin_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        for broker, listener, listening in self._sockets:
            if listening not in self._accepting:
                task = loop.create_task(self._accept(self._acceptor, broker, listener, listening))
                self._accepting[listening] = task

    async def _end_accepting(self, sockets: Iterable[socket.socket]) -> None:
        ended = [self._accepting.pop(listening) for listening in tuple(sockets) if listening in self._accepting]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    async def _listen(self, brokers: int) -> None:
        """Open the sockets, and tell the cluster their addresses. An OSError has the failed address in ``filename``."""
        firsts = [(self.host, self.port), *((one.host, one.port) for one in self.cluster.config.served[1:])]
        places = self._places or {
            (broker, listener): (host, port and port + broker)
            for broker in range(brokers)
            for listener, (host, port) in enumerate(firsts)
        }
        bound: dict[tuple[int, int], tuple[str, int]] = {}
        for (broker, listener), (host, wanted) in places.items():
            if broker in self._closed:
                bound[broker, listener] = host, wanted
                continue
            try:
                if wanted > LAST_PORT:
                    raise OSError(errno.EADDRNOTAVAIL, f"there is no port above {LAST_PORT}")
                taken_over = (each for each in self._sockets if each[:2] == (broker, listener))
                sockets = [listening for _, _, listening in taken_over]
                if not sockets:
                    sockets = await bind(host, wanted, self.cluster.config)
                    self._sockets += [(broker, listener, listening) for listening in sockets]
            except OSError as problem:
                problem.filename = host_and_port(host, wanted)
                raise
            port = sockets[0].getsockname()[1]
            bound[broker, listener] = host, port
            if self._brokers is None or not broker:
                self.cluster.listening_at(host, port, listener)
            else:
                self._brokers.listening_at(broker, host, port, listener)
        self._places = bound  # all, or unchanged after an error
        self.port = bound[0, 0][1]

    async def _accept(self, acceptor: Acceptor, broker: int, listener: int, listening: socket.socket) -> None:
        try:
            await acceptor.accept_from(listening, broker, listener)
        except Exception as error:
            self._serving_loop.log_unexpected(error, None, None)
            self.stop()
            raise

    def _abort_connections(self) -> None:
        for connection in tuple(self._connections.open.values()):
            connection.abort()

    def close_sockets(self) -> None:
        """Close the listening sockets that were kept open, as no server takes over."""
        for _, _, listening in self._sockets:
            listening.close()
        self._sockets.clear()

    def _signalled(self, received: signal.Signals) -> None:
        if self._signal is not None:
            self._abort_connections()
            return
        self._signal = received
        logger.info("%s received", received.name)
        self.stop()


@contextlib.contextmanager
def captured_signals(signalled: Callable[[signal.Signals], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call ``signalled`` in the running loop; the previous handlers are restored afterwards.

    Only in the main thread, which alone gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def received(number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(signalled, signal.Signals(number))

    before = {number: signal.signal(number, received) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
