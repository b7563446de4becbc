"""Proxy, which forwards frames between clients and brokers, and traces, records and changes them. It listens on a port for each
broker that a response names.

It has the same layers as a cluster (``cluster.assemble``): fault injection, and tracing around it. Requests are always
forwarded byte for byte; so are responses, unless a fault rule changes them or they contain addresses of brokers.
"""

import asyncio
import itertools
import logging
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

from groupcoord.cluster.layer import Layer, ServedCluster
from groupcoord.config.listeners import LAST_PORT
from groupcoord.core.effects import Call, CloseConnection, Effect, NoReply, RawReply, Reply
from groupcoord.core.events import Event, Requested
from groupcoord.dissect.message_schemas import api_name
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.framing import (
    REQUEST_HEADER,
    encode_response,
    parse_request,
    parse_response,
)
from groupcoord.proxy.address_rewriting import limited, share_codec, with_local_addresses
from groupcoord.proxy.connection import ClientConnection, Exchange
from groupcoord.proxy.forwarding_cluster import ForwardingCluster, expects_answer
from groupcoord.proxy.group_observer import GroupObserver
from groupcoord.proxy.recording import RecordedFrame
from groupcoord.server.address_text import host_and_port
from groupcoord.server.clock_and_random_ids import NowMs
from groupcoord.testing.faults.api import Faults
from groupcoord.testing.faults.matching import TopicResolver
from groupcoord.testing.trace.events import NO_GENERATION, RAW, RequestReceived, ResponseSent
from groupcoord.testing.trace.tracing_layer import TracingLayer

logger = logging.getLogger(__name__)

IN_FLIGHT = 64
"""The most requests of one connection without a response; most clients have 5 at most."""
GRACE_SECONDS = 3.0
_INT32 = struct.Struct(">i")
_UNSUPPORTED_VERSION = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_NO_NODE = -1
_BACKLOG = 128
_SHARE_APIS = {"ShareFetch": ApiKey.SHARE_FETCH, "ShareAcknowledge": ApiKey.SHARE_ACKNOWLEDGE}


class UnparsedRequest(NamedTuple):
    """The fields in the header of a request whose body cannot be parsed."""

    api: str
    version: int
    client_id: str | None


class _Listener(NamedTuple):
    """A port on which the proxy listens for a broker."""

    address: tuple[str, int]
    listening: socket.socket


class Proxy:
    """A proxy to the cluster at ``to``, a (host, port). Used as an async context manager, or with ``start`` and ``stop``.

    It listens at ``host`` and ``port``, and for each further broker at the next free port; at any free ports if ``port`` is 0.
    ``tell`` are called with every event, ``record`` with every frame. ``faults`` are fault rules to apply; the requests of a
    connection are then forwarded one by one, so that a held request delays later ones, as in a broker.
    """

    def __init__(
        self,
        to: tuple[str, int],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        now_ms: NowMs,
        tell: Iterable[Callable[[Event], None]] = (),
        record: Callable[[RecordedFrame], None] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.to, self.host, self.port = to, host, port
        self._now_ms = now_ms
        self._listeners_of_events = tuple(tell)
        self._record = record
        self._observer = GroupObserver()
        self._forwarding = ForwardingCluster(self._send, self._observer)
        self._layers: list[Layer] = []
        self._served: ServedCluster = self._forwarding
        self.in_flight = IN_FLIGHT
        if faults is not None:
            self.in_flight = 1
            layer = faults.layer(self._served, broker=0, topics=TopicResolver(self._observer.topic_names.get))
            layer.execute_effects = self._apply
            self._add(layer)
        self._tracing = TracingLayer(self._served, self._tell, topic_name=self._observer.topic_names.get)
        self._add(self._tracing)
        self._ports: dict[tuple[str, int], _Listener] = {}
        self._nodes: dict[tuple[str, int], int] = {}
        self._connections: dict[int, ClientConnection] = {}
        self._numbers = itertools.count(1)
        self._away: set[tuple[str, int]] = set()
        self._servers: list[asyncio.Task[asyncio.Server]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._no_connections = asyncio.Event()

    def _add(self, layer: Layer) -> None:
        self._layers.append(layer)
        self._served = layer

    @property
    def address(self) -> str:
        """The bootstrap server for clients: ``host:port``."""
        return host_and_port(self.host, self.port)

    @property
    def brokers(self) -> dict[str, str]:
        """Address of a known broker → the address where the proxy listens for it, as ``host:port``."""
        return {host_and_port(*to): host_and_port(*listener.address) for to, listener in self._ports.items()}

    async def start(self) -> None:
        """Start to listen. Raises OSError."""
        self.port = self._listen_for(self.to, self.port)[1]

    async def stop(self) -> None:
        """Close all connections, and stop listening."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
        for server in await asyncio.gather(*self._servers):
            server.close()
        for connection in list(self._connections.values()):
            connection.close("the proxy stops")
        if self._connections:
            try:
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._no_connections.wait()
            except TimeoutError:
                for connection in list(self._connections.values()):
                    connection.abort()
                await self._no_connections.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # Ports.

    def _local(self, connection: ClientConnection, host: str, port: int, node: int) -> tuple[str, int]:
        """The address at which a client of ``connection`` reaches the broker at ``host`` and ``port``."""
        broker = host, port
        self._nodes[broker] = node
        known = self._ports.get(broker)
        if known is None:
            _, here = self._listen_for(broker, self.port + len(self._ports))
            logger.info(
                "broker %d at %s: listening on %s", node, host_and_port(*broker), host_and_port(self.host, here)
            )
        else:
            here = known.address[1]
        return connection.local_host, here

    def _listen_for(self, broker: tuple[str, int], port: int) -> tuple[str, int]:
        """Listen at ``port`` or, for a further broker, at the next free port. Raises OSError."""
        while True:
            try:
                listening = _bound(self.host, port)
                break
            except OSError:
                if not self._ports or port >= LAST_PORT:
                    raise
                port += 1
        address = listening.getsockname()[:2]
        self._ports[broker] = _Listener(address, listening)

        def connected() -> ClientConnection:
            return ClientConnection(self, next(self._numbers), broker)

        loop = asyncio.get_running_loop()
        self._servers.append(loop.create_task(loop.create_server(connected, sock=listening)))
        return self.host, address[1]

    # Called by connections.

    def opened(self, connection: ClientConnection) -> None:
        """A client has connected."""
        self._connections[connection.number] = connection
        self._no_connections.clear()
        self._tracing.connection_opened(connection.number, connection.client_host, self._now_ms())

    def closed(self, connection: ClientConnection, reason: str) -> None:
        """A client's connection was closed."""
        self._connections.pop(connection.number, None)
        if not self._connections:
            self._no_connections.set()
        self._tracing.connection_closed(connection.number, connection.client_host, self._now_ms(), reason)
        if reason and not self._is_stopping:
            logger.info("connection %d of %s is closed: %s", connection.number, connection.peer, reason)

    def broker_reached(self, connection: ClientConnection) -> None:
        """The broker has accepted a connection."""
        if connection.broker in self._away:
            self._away.discard(connection.broker)
            logger.warning("the broker at %s is back", host_and_port(*connection.broker))

    def broker_unreachable(self, connection: ClientConnection, reason: str) -> None:
        """A broker does not accept connections; logged once until it accepts them again."""
        if connection.broker not in self._away:
            self._away.add(connection.broker)
            broker = host_and_port(*connection.broker)
            logger.warning(
                "the broker at %s cannot be reached (%s): its clients are disconnected until it is back", broker, reason
            )

    def request(self, connection: ClientConnection, frame: bytes) -> None:
        """A request frame has come from a client."""
        now_ms = self._now_ms()
        self._recorded(connection, "client", frame, now_ms)
        try:
            asked = parse_request(frame)
        except WireError:
            self._unreadable(connection, frame, now_ms)
            return
        exchange = Exchange(frame, now_ms, asked.correlation_id)
        call = Call(
            connection.number,
            asked.correlation_id,
            asked.api,
            asked.version,
            asked.client_id,
            connection.client_host,
            self._nodes.get(connection.broker, _NO_NODE),
        )
        exchange.call, exchange.request = call, asked.message
        connection.exchanges.append(exchange)
        self._apply(self._served.handle(call, asked.message, now_ms))

    def response(self, connection: ClientConnection, frame: bytes) -> None:
        """A response frame has come from a broker."""
        now_ms = self._now_ms()
        self._recorded(connection, "broker", frame, now_ms)
        exchange = _answered_by(connection, frame)
        if exchange is None:
            connection.broker_left("the broker sent a response to no request")
            return
        exchange.raw = frame
        call = exchange.call
        if call is None:
            self._pass_on(connection, exchange, now_ms)
            return
        try:
            exchange.response = _message(call, frame)
        except WireError as problem:
            logger.warning("a response to %s v%d is forwarded unread: %s", call.api.name, call.version, problem)
            self._apply(self._outgoing([RawReply(call, _INT32.pack(len(frame)) + frame)], now_ms))
            return
        effects = self._forwarding.answered(call, exchange.request, exchange.response, now_ms)
        self._apply(self._outgoing(effects, now_ms))

    # Requests of unknown APIs and versions, and frames that are not requests, such as raw SASL tokens.

    def _unreadable(self, connection: ClientConnection, frame: bytes, now_ms: int) -> None:
        exchange = Exchange(frame, now_ms, None)
        exchange.name = UnparsedRequest("unreadable bytes", _NO_NODE, None)
        try:
            header = REQUEST_HEADER.decode(frame)
            name = api_name(header.request_api_key)
        except WireError:
            pass
        else:
            exchange.correlation_id = header.correlation_id
            exchange.name = UnparsedRequest(name, header.request_api_version, header.client_id)
        connection.exchanges.append(exchange)
        self._tell(RequestReceived(**self._fields(connection, exchange, now_ms), details={"bytes": len(frame)}))
        connection.send(exchange, awaits_answer=True)

    def _pass_on(self, connection: ClientConnection, exchange: Exchange, now_ms: int) -> None:
        frame = exchange.raw or b""
        if exchange.name.api in _SHARE_APIS:
            frame = self._share_answer(connection, exchange.name, frame)
        took_ms = now_ms - exchange.at_ms
        fields = self._fields(connection, exchange, now_ms)
        self._tell(ResponseSent(**fields, error=RAW, took_ms=took_ms, details={"bytes": len(frame)}))
        connection.finish(exchange, _INT32.pack(len(frame)) + frame)

    def _share_answer(self, connection: ClientConnection, name: UnparsedRequest, frame: bytes) -> bytes:
        """The frame of a ShareFetch or ShareAcknowledge response, with rewritten addresses if a leader has moved."""
        try:
            codec = share_codec(_SHARE_APIS[name.api], name.version)
            response = codec.decode(frame, 5)  # after the correlation id and the empty tagged fields
        except WireError as problem:
            logger.warning("a response to %s v%d is forwarded unread: %s", name.api, name.version, problem)
            return frame
        moved = with_local_addresses(response, lambda *broker: self._local(connection, *broker))
        return frame if moved is response else frame[:5] + codec.encode(moved)

    def _fields(self, connection: ClientConnection, exchange: Exchange, now_ms: int) -> dict[str, Any]:
        name, number = exchange.name, connection.number
        correlation_id = -1 if exchange.correlation_id is None else exchange.correlation_id
        return {
            "at_ms": now_ms,
            "cause": Requested(name.api, name.version, name.client_id, connection.client_host, number, correlation_id),
            "api": name.api,
            "version": name.version,
            "client_id": name.client_id,
            "client_host": connection.client_host,
            "connection_id": number,
            "correlation_id": correlation_id,
            "group": "",
            "member": "",
            "instance_id": None,
            "generation": NO_GENERATION,
        }

    # Effects.

    def _send(self, call: Call) -> None:
        for connection, exchange in self._found(call, to_send=True):
            connection.send(exchange, awaits_answer=expects_answer(call, exchange.request))

    def _found(self, call: Call, *, to_send: bool = False) -> Iterator[tuple[ClientConnection, Exchange]]:
        """The connection and the exchange of ``call``; empty if the client has disconnected."""
        connection = self._connections.get(call.connection_id)
        exchange = connection and connection.find(call, to_send=to_send)
        if connection and exchange:
            yield connection, exchange

    def _outgoing(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        for layer in self._layers:
            effects = layer.outgoing(effects, now_ms)
        return effects

    def _apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if not isinstance(effect, Reply | RawReply | NoReply | CloseConnection):
                continue  # an event, which the tracing layer has reported
            for connection, exchange in self._found(effect.call):
                self._finish(connection, exchange, effect)
        self._set_timer()

    def _finish(
        self, connection: ClientConnection, exchange: Exchange, effect: Reply | RawReply | NoReply | CloseConnection
    ) -> None:
        match effect:
            case Reply(call, response):
                connection.finish(exchange, self._answer(connection, exchange, call, response))
            case RawReply(_, data, hangs_up):
                connection.finish(exchange, data)
                if hangs_up:
                    connection.close("a rule says so")
            case NoReply():
                connection.finish(exchange, b"")
            case _:
                connection.close(effect.reason)

    def _answer(self, connection: ClientConnection, exchange: Exchange, call: Call, response: Any) -> bytes:
        """The frame of a response, with its length: the broker's own bytes if nothing has to be changed."""
        changed = limited(response) if call.api.key == ApiKey.API_VERSIONS else response
        changed = with_local_addresses(changed, lambda *broker: self._local(connection, *broker))
        if changed is exchange.response and exchange.raw is not None:
            return _INT32.pack(len(exchange.raw)) + exchange.raw
        return encode_response(call.api, call.version, call.correlation_id, changed)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners_of_events:
            listener(event)

    def _recorded(self, connection: ClientConnection, sender: Any, frame: bytes, now_ms: int) -> None:
        if self._record is not None:
            broker = host_and_port(*connection.broker)
            self._record(RecordedFrame(now_ms, connection.number, broker, sender, frame))

    # Timers, for fault rules that delay.

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._served.next_deadline()
        if deadline is not None and not self._is_stopping:
            seconds = max(deadline - self._now_ms(), 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._apply(self._served.expire(self._now_ms()))


def _bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - its only argument
    except OSError:
        listening.close()
        raise
    return listening


def _answered_by(connection: ClientConnection, frame: bytes) -> Exchange | None:
    """The exchange to which the response ``frame`` belongs: the oldest with its correlation id, or without a known one. Older
    ones, such as a Produce with acks=0, get no response, and are dropped."""
    number = int.from_bytes(frame[:4], signed=True)
    while connection.sent:
        exchange = connection.sent.popleft()
        if exchange.correlation_id in (None, number):
            return exchange
    return None


def _message(call: Call, frame: bytes) -> Any:
    """The message in a response frame. Raises WireError."""
    version = call.version
    if call.api.key == ApiKey.API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION:
        version = 0
    return parse_response(call.api, version, frame)[1]
