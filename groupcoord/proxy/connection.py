"""A client's connection and the one to its broker: frames in both directions, in order, with bounded buffers.

A client that sends far ahead is not read from while its broker does not take more, or while ``in_flight`` of its requests have
no answer yet; a broker is not read from while the client does not take more.
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
from groupcoord.server.operating_system import host_and_port, java_host_text

LONGEST_FRAME_BYTES = 256 * 1024 * 1024
"""Longer frames close the connection: each has to be whole in memory. Kafka's default for requests is 100 MiB; an answer to
Fetch has 50 MiB unless a client asks for more."""
READ_AHEAD_BYTES = 65_536
"""What of further requests may wait behind those in flight before reading stops."""
_INT32 = struct.Struct(">i")
_TLS_HANDSHAKE, _TLS_ALERT = b"\x16\x03", b"\x15\x03"
_CONNECT_SECONDS = 30.0


class Exchange:
    """A request and what becomes of it. ``call`` is None for one that cannot be read; ``answer`` is a frame with its length."""

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
        """What to call a request that cannot be read."""
        self.raw: bytes | None = None
        """The answer of the broker, without its length."""
        self.response: Any = None
        """The message in it, if it can be read."""
        self.answer = b""
        self.is_sent = self.is_done = False


class Owner(Protocol):
    """What connections tell what happens."""

    in_flight: int

    def opened(self, connection: "ClientConnection") -> None:
        """A client has connected."""

    def closed(self, connection: "ClientConnection", reason: str) -> None:
        """A connection is gone."""

    def broker_reached(self, connection: "ClientConnection") -> None:
        """The broker has accepted the connection for a client."""

    def broker_unreachable(self, connection: "ClientConnection", reason: str) -> None:
        """The broker has not accepted it."""

    def request(self, connection: "ClientConnection", frame: bytes) -> None:
        """A client asks."""

    def response(self, connection: "ClientConnection", frame: bytes) -> None:
        """A broker answers."""


class ClientConnection(asyncio.Protocol):
    """The side of the client. ``broker`` is the (host, port) that is connected to for it."""

    def __init__(self, owner: Owner, number: int, broker: tuple[str, int]) -> None:
        self.owner, self.number, self.broker = owner, number, broker
        self.exchanges: deque[Exchange] = deque()
        """In the order of the requests; answered in that order."""
        self.sent: deque[Exchange] = deque()
        """Those that the broker has to answer."""
        self.peer = self.client_host = self.local_host = ""
        self.reason = ""
        self._frames = FrameBuffer(LONGEST_FRAME_BYTES)
        self._upstream: BrokerConnection
        self._connecting: asyncio.Task[None]
        self._transport: asyncio.Transport
        self._is_paused = True  # nothing is read before the broker is there
        self._is_connected = self._broker_is_full = False
        self._begun = self._has_ended = self._is_closed = False

    # What the transport calls.

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
        """The client sends."""
        if not self._begun:
            self._begun = True
            if data.startswith(_TLS_HANDSHAKE):
                self.close("it speaks TLS; the proxy speaks plain text (security.protocol PLAINTEXT or SASL_PLAINTEXT)")
                return
        self._frames.feed(data)
        self._take_requests()

    def eof_received(self) -> bool:
        """The client sends no more: the broker is told, and its answers are still passed on."""
        self._has_ended = True
        self._upstream.end()
        return True

    def pause_writing(self) -> None:
        """The client does not read its answers."""
        self._upstream.pause_reading()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._upstream.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._is_closed = True
        self._connecting.cancel()
        if self._is_connected:
            self._upstream.close()
        self.owner.closed(self, self.reason or (str(exc) if exc else ""))

    # What the broker's side calls.

    def broker_connected(self, upstream: "BrokerConnection") -> None:
        """The broker can be written to."""
        self._upstream, self._is_connected = upstream, True
        if self._is_closed:
            upstream.close()

    def broker_receives(self, *, is_full: bool) -> None:
        """Does the broker take no more for now?"""
        self._broker_is_full = is_full
        self._take_requests()

    def broker_sent(self, frame: bytes) -> None:
        """An answer came."""
        self.owner.response(self, frame)

    def broker_left(self, reason: str) -> None:
        """The broker closed its connection: so is the client's, once what was answered is written."""
        if not self._is_closed:
            self.close("" if self._has_ended else reason)

    # What the proxy calls.

    def send(self, exchange: Exchange, *, awaits_answer: bool) -> None:
        """Send a request to the broker."""
        if awaits_answer:
            self.sent.append(exchange)
        self._upstream.write(exchange.frame)
        exchange.frame, exchange.is_sent = b"", True

    def finish(self, exchange: Exchange, answer: bytes) -> None:
        """``exchange`` is done: write ``answer`` (nothing if it is empty) when those before it are done, too."""
        exchange.answer, exchange.is_done = answer, True
        ready = []
        while self.exchanges and self.exchanges[0].is_done:
            ready.append(self.exchanges.popleft().answer)
        if ready:
            self._transport.write(b"".join(ready))
            self._take_requests()

    def find(self, call: Call, *, to_send: bool = False) -> Exchange | None:
        """The exchange of a call that is not done yet, or still ``to_send``; the oldest, if a client uses an id twice."""
        for exchange in self.exchanges:
            if exchange.correlation_id == call.correlation_id and not (
                exchange.is_sent if to_send else exchange.is_done
            ):
                return exchange
        return None

    def close(self, reason: str) -> None:
        """Close, once what is written has gone out."""
        self._is_closed = True
        self.reason = self.reason or reason
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
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
        """Handle requests that are there whole, as long as the broker takes them, and read more if there is room."""
        try:
            for frame in self._requests():
                self.owner.request(self, frame)
        except WireError as problem:
            self.close(str(problem))
            return
        if not self._is_closed:
            # A few requests ahead are read, too: otherwise it would not show that a client has left.
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
    """The side of the broker."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._frames = FrameBuffer(LONGEST_FRAME_BYTES)
        self._transport: asyncio.Transport
        self._begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The broker has accepted."""
        self._transport = cast("asyncio.Transport", transport)
        self._client.broker_connected(self)

    def data_received(self, data: bytes) -> None:
        """The broker answers."""
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
        """The broker is gone."""
        self._client.broker_left(f"the broker closed the connection{f': {exc}' if exc else ''}")

    def write(self, frame: bytes) -> None:
        """Send a frame."""
        self._transport.write(_INT32.pack(len(frame)) + frame)

    def end(self) -> None:
        """Send no more."""
        self._transport.write_eof()

    def pause_reading(self) -> None:
        """Take no more answers for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take answers again."""
        self._transport.resume_reading()

    def close(self) -> None:
        """The client is gone."""
        self._transport.abort()
