"""The proxy's connections, one to a client and one to its broker: they pass frames in order, with bounded buffers.

Back pressure: nothing is read from a client while its broker accepts no more data, or while ``in_flight`` of its requests have
no response yet; nothing is read from a broker while the client accepts no more data.
"""

import asyncio
import os
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol, cast

from groupcoord.core.effects import Call
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.framing import FrameBuffer
from groupcoord.server.address_text import host_and_port, java_host_text

LONGEST_FRAME_BYTES = 256 * 1024 * 1024
"""The longest frame; longer ones close the connection, because each is kept in memory. Kafka's default for requests is
100 MiB; a Fetch response has 50 MiB unless a client asks for more."""
READ_AHEAD_BYTES = 65_536
"""How many bytes of further requests are read ahead of those in flight."""
_INT32 = struct.Struct(">i")
_TLS_HANDSHAKE, _TLS_ALERT = b"\x16\x03", b"\x15\x03"
_CONNECT_SECONDS = 30.0


class Exchange:
    """A request and its response. ``call`` is None if the request cannot be parsed; ``answer`` is the frame for the client,
    with its length."""

    __slots__ = (
        "answer",
        "at_ms",
        "call",
        "correlation_id",
        "frame",
        "is_done",
        "is_sent",
        "name",
        "raw",
        "request",
        "response",
    )

    def __init__(self, frame: bytes, at_ms: int, correlation_id: int | None) -> None:
        self.frame = frame
        self.at_ms = at_ms
        self.correlation_id = correlation_id
        self.call: Call | None = None
        self.request: Any = None
        self.name: Any = None
        """The UnparsedRequest if the request cannot be parsed; else None."""
        self.raw: bytes | None = None
        """The response frame of the broker, without its length."""
        self.response: Any = None
        """The message in the response frame, if it can be parsed."""
        self.answer = b""
        self.is_sent = self.is_done = False


class Owner(Protocol):
    """The interface of the proxy that connections call."""

    in_flight: int

    def opened(self, connection: "ClientConnection") -> None:
        """A client has connected."""

    def closed(self, connection: "ClientConnection", reason: str) -> None:
        """A client's connection was closed."""

    def broker_reached(self, connection: "ClientConnection") -> None:
        """The broker has accepted the connection for a client."""

    def broker_unreachable(self, connection: "ClientConnection", reason: str) -> None:
        """The broker has not accepted the connection."""

    def request(self, connection: "ClientConnection", frame: bytes) -> None:
        """A request frame has come from a client."""

    def response(self, connection: "ClientConnection", frame: bytes) -> None:
        """A response frame has come from a broker."""


class ClientConnection(asyncio.Protocol):
    """The connection to a client. ``broker`` is the (host, port) to which its requests are forwarded."""

    def __init__(self, owner: Owner, number: int, broker: tuple[str, int]) -> None:
        self.owner, self.number, self.broker = owner, number, broker
        self.exchanges: deque[Exchange] = deque()
        """The open exchanges, in the order of the requests, which is also the order of the responses."""
        self.sent: deque[Exchange] = deque()
        """The exchanges for which a response of the broker is pending."""
        self.peer = self.client_host = self.local_host = ""
        self.reason = ""
        self._frames = FrameBuffer(LONGEST_FRAME_BYTES)
        self._upstream: BrokerConnection
        self._connecting: asyncio.Task[None]
        self._transport: asyncio.Transport
        self._is_paused = True  # nothing is read before the broker is connected
        self._is_connected = self._broker_is_full = False
        self._begun = self._has_ended = self._is_closed = False

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: connect to the broker for it."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.pause_reading()
        host, port, *_ = transport.get_extra_info("peername")
        self.peer, self.client_host = host_and_port(host, port), java_host_text(host)
        self.local_host = transport.get_extra_info("sockname")[0]
        self.owner.opened(self)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        """The client has sent data."""
        if not self._begun:
            self._begun = True
            if data.startswith(_TLS_HANDSHAKE):
                self.close("it speaks TLS; the proxy speaks plain text (security.protocol PLAINTEXT or SASL_PLAINTEXT)")
                return
        self._frames.feed(data)
        self._take_requests()

    def eof_received(self) -> bool:
        """The client sends no more: half-close the broker's connection; its responses are still forwarded."""
        self._has_ended = True
        self._upstream.write_eof()
        return True

    def pause_writing(self) -> None:
        """The client does not read its responses."""
        self._upstream.pause_reading()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._upstream.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client's connection is closed."""
        self._is_closed = True
        self._connecting.cancel()
        if self._is_connected:
            self._upstream.close()
        self.owner.closed(self, self.reason or (str(exc) if exc else ""))

    # Called by the broker's connection.

    def broker_connected(self, upstream: "BrokerConnection") -> None:
        """The broker has accepted the connection."""
        self._upstream, self._is_connected = upstream, True
        if self._is_closed:
            upstream.close()

    def broker_receives(self, *, is_full: bool) -> None:
        """The broker accepts no more data for now (``is_full``), or again."""
        self._broker_is_full = is_full
        self._take_requests()

    def broker_sent(self, frame: bytes) -> None:
        """A response frame has come."""
        self.owner.response(self, frame)

    def broker_left(self, reason: str) -> None:
        """The broker has closed its connection: close the client's, after pending responses are written."""
        if not self._is_closed:
            self.close("" if self._has_ended else reason)

    # Called by the proxy.

    def send(self, exchange: Exchange, *, awaits_answer: bool) -> None:
        """Send a request to the broker."""
        if awaits_answer:
            self.sent.append(exchange)
        self._upstream.write(exchange.frame)
        exchange.frame, exchange.is_sent = b"", True

    def finish(self, exchange: Exchange, answer: bytes) -> None:
        """Complete ``exchange`` with ``answer`` (empty: none), which is written when all earlier exchanges are complete."""
        exchange.answer, exchange.is_done = answer, True
        ready = []
        while self.exchanges and self.exchanges[0].is_done:
            ready.append(self.exchanges.popleft().answer)
        if ready:
            self._transport.write(b"".join(ready))
            self._take_requests()

    def find(self, call: Call, *, to_send: bool = False) -> Exchange | None:
        """The exchange of ``call`` that is not complete, or not sent yet (``to_send``); the oldest, if a client uses a
        correlation id twice."""
        for exchange in self.exchanges:
            if exchange.correlation_id == call.correlation_id and not (
                exchange.is_sent if to_send else exchange.is_done
            ):
                return exchange
        return None

    def close(self, reason: str) -> None:
        """Close the connection after written data is sent."""
        self._is_closed = True
        self.reason = self.reason or reason
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    # Internals.

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        host, port = self.broker
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.create_connection(lambda: BrokerConnection(self), host, port)
        except OSError as problem:  # TimeoutError is one, too
            known = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror
            reason = known or f"no answer within {_CONNECT_SECONDS:g} s"
            self.owner.broker_unreachable(self, reason)
            self.close(f"its broker cannot be reached: {reason}")
            return
        self.owner.broker_reached(self)
        self._take_requests()

    def _take_requests(self) -> None:
        """Handle complete requests while the broker accepts them, and read more if there is room."""
        try:
            for frame in self._requests():
                self.owner.request(self, frame)
        except WireError as problem:
            self.close(str(problem))
            return
        if not self._is_closed:
            # Some bytes are read ahead, because otherwise a closed client would not be noticed.
            pauses = self._is_full() and (self._broker_is_full or len(self._frames) > READ_AHEAD_BYTES)
            if pauses is not self._is_paused:
                self._is_paused = pauses
                (self._transport.pause_reading if pauses else self._transport.resume_reading)()

    def _requests(self) -> Iterator[bytes]:
        while not self._is_full() and not self._is_closed:
            frame = self._frames.next_frame()
            if frame is None:
                return
            yield frame

    def _is_full(self) -> bool:
        return not self._is_connected or self._broker_is_full or len(self.exchanges) >= self.owner.in_flight


class BrokerConnection(asyncio.Protocol):
    """The connection to the broker of one client."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._frames = FrameBuffer(LONGEST_FRAME_BYTES)
        self._transport: asyncio.Transport
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The broker has accepted the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._client.broker_connected(self)

    def data_received(self, data: bytes) -> None:
        """The broker has sent data."""
        if not self._begun:
            self._begun = True
            if data.startswith(_TLS_ALERT):
                self._client.broker_left("the broker speaks TLS, which the proxy does not")
                return
        self._frames.feed(data)
        try:
            for frame in self._frames.frames():
                self._client.broker_sent(frame)
        except WireError as problem:
            self._client.broker_left(f"the broker broke the protocol: {problem}")

    def pause_writing(self) -> None:
        """The broker does not read."""
        self._client.broker_receives(is_full=True)

    def resume_writing(self) -> None:
        """The broker reads again."""
        self._client.broker_receives(is_full=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The broker's connection is closed."""
        self._client.broker_left(f"the broker closed the connection{f': {exc}' if exc else ''}")

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        self._transport.write(_INT32.pack(len(frame)) + frame)

    def write_eof(self) -> None:
        """Half-close: send no more."""
        self._transport.write_eof()

    def pause_reading(self) -> None:
        """Read no more responses for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read responses again."""
        self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection at once, because the client's is closed."""
        self._transport.abort()
