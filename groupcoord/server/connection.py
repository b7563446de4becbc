"""One client connection (asyncio protocol): decodes requests one at a time, and writes responses in order.

While a request is in flight the next ones wait in the buffer, as in Kafka, which mutes the channel (``SocketServer``). Clients
rely on it: they match responses to requests by order (aiokafka and kafka-python raise CorrelationIdError otherwise), and an
idempotent producer with five batches in flight needs them handled in the order in which it sent them.

A connection with several buffered requests goes to the back of the queue after each one, so that all connections get their turn
(class Round).

Memory is bounded: a client that sends ahead of its responses, or does not read them, is not read from. A long response with
records is read from the log chunk by chunk as the client takes it; all other unread responses share one memory limit
(UnreadAnswers). A request takes no more memory than has been received, whatever its announced length; Kafka allocates all of it
at once.

A heartbeat and its response usually differ from the previous ones in the correlation id only, so the last short request and
response of each connection are cached. They are immutable, so that one object can be used twice.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from groupcoord.broker.log_segment import SegmentDeletedError
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from groupcoord.protocol.framing import FrameBuffer, encode_response, parse_request, response_parts
from groupcoord.server.address_text import host_and_port, java_host_text
from groupcoord.server.connection_registry import ConnectionRegistry

SHORT_BYTES = 256
"""Longer frames are not cached, so that a connection does not hold its last batch in memory."""

_new = tuple.__new__
_FETCH = ApiKey.FETCH
_INT32 = struct.Struct(">i")


class RequestCache:
    """``parse_request`` for one connection, with a cache of its last short request."""

    __slots__ = ("_api_and_version", "_broker", "_client_host", "_listener", "_number", "_parsed", "_rest")

    def __init__(self, number: int, client_host: str, broker: int = 0, listener: int = 0) -> None:
        self._number = number
        self._client_host = client_host
        self._broker = broker
        self._listener = listener
        self._api_and_version: bytes | None = None
        self._rest: bytes | None = None  # the bytes after the correlation id
        self._parsed: tuple[Any, int, str | None, Any] = (None, -1, None, None)

    def read(self, frame: bytes) -> tuple[Call, Any]:
        """The call and the message in ``frame``. Raises WireError."""
        if frame[8:] == self._rest and frame[:4] == self._api_and_version:
            api, version, client_id, message = self._parsed
            (correlation_id,) = _INT32.unpack_from(frame, 4)
        else:
            api, version, correlation_id, client_id, message = parse_request(frame)
            if len(frame) <= SHORT_BYTES:
                self._api_and_version, self._rest = frame[:4], frame[8:]
                self._parsed = api, version, client_id, message
        # Bypasses the constructor of the NamedTuple, which is written in Python: half the time for every request.
        call = self._number, correlation_id, api, version, client_id, self._client_host, self._broker, self._listener
        return _new(Call, call), message


class ResponseCache:
    """``encode_response`` for one connection, with a cache of its last short response."""

    __slots__ = ("_api", "_response", "_rest", "_size", "_version")

    def __init__(self) -> None:
        self._api: Any = None
        self._version = -1
        self._response: Any = None
        self._size = b""
        self._rest = b""  # the bytes after the correlation id

    def write(self, call: Call, response: Any) -> bytes | list[LazyBytes]:
        """The frame with the response to ``call``, in parts if some are read later. Raises the errors of the encoder."""
        _, correlation_id, api, version, _, _, _, _ = call
        if response is self._response and version == self._version and api is self._api:
            return self._size + _INT32.pack(correlation_id) + self._rest
        if api.key is _FETCH:
            parts = response_parts(api, version, correlation_id, response)
            copied = [part for part in parts if isinstance(part, bytes)]
            if len(copied) < len(parts):
                return parts
            data = b"".join(copied)
        else:
            data = encode_response(api, version, correlation_id, response)
        if len(data) <= SHORT_BYTES:
            self._api, self._version, self._response = api, version, response
            self._size, self._rest = data[:4], data[8:]
        return data


class Round:
    """The current round of the event loop, or the next one: the connections to serve in it, and those whose responses are
    written at its end. The serving loop sets ``run``, which is called for each round.

    Connections queue here, and the serving loop serves the queues. Each connection is in one queue at most, and one request of
    it is served at a time: it is in ``fresh`` if it was idle and a short request came in, in ``backlog`` if it has sent
    requests ahead. A None in a queue stands for the due timers: they fire after the requests that were queued before them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop_time = loop.time
        """The loop's clock (seconds)."""
        self.began_at = loop.time()
        """When the current round began, on the loop's clock."""
        self.fresh: deque[ServerConnection | None] = deque()
        self.backlog: deque[ServerConnection | None] = deque()
        self.unflushed: list[ServerConnection] = []
        """Connections with responses that are not written yet."""
        self.is_due = False
        """Is the next round scheduled?"""
        self.run: Callable[[], None]
        self._loop = loop

    def schedule(self) -> None:
        """Start a round when the loop has read the available data."""
        if not self.is_due:
            self.is_due = True
            self._loop.call_soon(self.run)

    def serve(self, connection: "ServerConnection") -> None:
        """Queue ``connection`` for its next buffered request, unless it is queued or has a request in flight."""
        if connection.in_flight is None and not connection.in_line:
            connection.in_line = True
            self.backlog.append(connection)
            self.schedule()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` after the other callbacks that are ready."""
        self._loop.call_soon(callback)


logger = logging.getLogger(__name__)

READ_AHEAD_BYTES = 65_536
"""How many bytes may wait behind a request in flight or queued before reading stops, beside those that came with it."""

FRESH_BYTES = 4_096
"""More data than that is not a single heartbeat, commit or fetch, but many requests, or a batch."""

ANSWERS_BYTES = 65_536
"""Responses to requests that came together are written together, up to this size."""

TURN_BYTES = 1 << 18
"""How much of a long response is written at once to a client that keeps up, before other connections are served."""


CHUNK_BYTES = 131_072
"""How much of a long response is read from the log at once. A client that does not read costs that much memory, beside the
transport's buffer (64 KiB, its high-water mark)."""


class Software(NamedTuple):
    """The name and version of a client library, from ApiVersions v3+ (KIP-511)."""

    name: str = "unknown"
    version: str = "unknown"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class ServerConnection(asyncio.Protocol):
    """Flow control and framing of one connection; the serving loop handles its requests.

    ``number`` identifies the connection, ``address`` is the client's (IP, port), ``max_request_bytes`` limits a request, and
    ``broker`` and ``listener`` are those to which it is connected, counted from 0.
    """

    __slots__ = (
        "_answers",
        "_answers_size",
        "_closing",
        "_ended",
        "_frames",
        "_full",
        "_read_paused",
        "_registry",
        "_requests",
        "_responses",
        "_rest",
        "_round",
        "_transport",
        "_write_paused",
        "active_at",
        "broker",
        "client_host",
        "in_flight",
        "in_line",
        "ip",
        "number",
        "peer",
        "request",
        "software",
    )

    def __init__(
        self,
        number: int,
        address: tuple[str, int],
        serving: Round,
        registry: "ConnectionRegistry[ServerConnection]",
        max_request_bytes: int,
        broker: int = 0,
        listener: int = 0,
    ) -> None:
        self.number = number
        self.ip = address[0]
        self.peer = host_and_port(*address)
        self.client_host = java_host_text(address[0])
        self.software = Software()
        self.in_flight: Call | None = None
        self.request: Any = None
        """The request in flight, for the log if it fails."""
        self.in_line = False
        """Is it in one of the round's queues?"""
        self.active_at = serving.loop_time()
        """When bytes were last read or written, on the loop's clock (seconds)."""
        self._round = serving
        self._registry = registry
        self._frames = FrameBuffer(max_request_bytes)
        self.broker = broker
        self._requests = RequestCache(number, self.client_host, broker, listener)
        self._responses = ResponseCache()
        self._answers: list[bytes] = []
        self._answers_size = 0
        self._transport: asyncio.Transport
        self._rest: Iterator[bytes] | None = None  # of a long response
        self._read_paused = False
        self._full = False  # the transport's buffer is full
        self._write_paused = False  # it is full, or there is a rest of a long response
        self._ended = False
        self._closing = False

    def __repr__(self) -> str:
        flight = f" in flight: {self.in_flight.api.name}" if self.in_flight else ""
        return f"<Connection {self.number} {self.peer}{flight}>"

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast("asyncio.Transport", transport)
        self._registry.add(self)

    def data_received(self, data: bytes) -> None:
        """Data was received."""
        self._frames.feed(data)
        serving = self._round
        if self.in_flight is None and not self.in_line and not self._write_paused:
            self.in_line = True
            (serving.fresh if len(data) <= FRESH_BYTES else serving.backlog).append(self)
            if not serving.is_due:
                serving.schedule()
            return
        self.active_at = serving.loop_time()
        if len(self._frames) > READ_AHEAD_BYTES and not self._read_paused and not self._closing:
            self._read_paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """The client has closed its side; its requests are still answered before the connection closes."""
        self._ended = True
        self._round.serve(self)
        return True

    def pause_writing(self) -> None:
        """The client does not read its responses: serve none of its requests until it does."""
        self._full = self._write_paused = True
        self._registry.unread.add(self, self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client has read most of what was written."""
        self._full = False
        self.active_at = self._round.loop_time()
        self._registry.unread.remove(self)
        if self._rest is None:
            self._write_paused = False
            self._round.serve(self)
        else:
            self._send_rest()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection was closed."""
        self._drop()
        self._registry.remove(self)

    # What the serving loop calls.

    def next_call(self) -> Call | None:
        """The next call, now in flight, if its request is complete. Raises WireError.

        The serving loop has taken the connection out of its queue before.
        """
        self.in_line = False
        if self.in_flight is not None or self._write_paused or self._closing:
            return None
        self.active_at = self._round.began_at
        frame = self._frames.next_frame()
        if self._read_paused and (frame is None or len(self._frames) <= READ_AHEAD_BYTES):
            self._read_paused = False
            self._transport.resume_reading()
        if frame is None:
            if self._ended:
                self.close()
            return None
        self.in_flight, self.request = self._requests.read(frame)
        return self.in_flight

    def answer(self, call: Call, response: Any) -> None:
        """Respond to the call in flight, and allow the next request. Raises the errors of the encoder.

        Responses are collected until the end of the round, and written together.
        """
        if self._closing:
            return
        data = self._responses.write(call, response)
        if not isinstance(data, bytes):
            self.flush()
            self.in_flight = self.request = None
            self._rest = in_chunks(data)
            self._write_paused = True
            if not self._full:
                self._send_rest()
            return
        self.in_flight = self.request = None
        answers = self._answers
        if self._frames or self._ended:
            self.in_line = True
            self._round.backlog.append(self)
        if not answers:
            self._round.unflushed.append(self)
        answers.append(data)
        self._answers_size += len(data)
        if self._answers_size > ANSWERS_BYTES:
            self.flush()

    def answer_bytes(self, data: bytes) -> None:
        """Respond to the call in flight with these bytes instead of an encoded response, and allow the next request."""
        if self._closing:
            return
        self._answers.append(data)
        self.flush()
        self.settle()

    def settle(self) -> None:
        """End the call in flight without a response; the next request is served."""
        self.in_flight = self.request = None
        self.in_line = True
        self._round.backlog.append(self)

    def flush(self) -> None:
        """Write the collected responses."""
        answers = self._answers
        if not answers:
            return
        data = answers[0] if len(answers) == 1 else b"".join(answers)
        answers.clear()
        self._answers_size = 0
        self.active_at = self._round.began_at
        self._transport.write(data)

    def close(self) -> None:
        """Close when the responses so far are written. Nothing more is read."""
        if self._closing:
            return
        self.flush()
        self._closing = True
        if self._rest is None:
            self._transport.close()
        elif not self._read_paused:
            self._transport.pause_reading()

    def abort(self) -> None:
        """Close at once; unwritten data is lost."""
        self._drop()
        self._transport.abort()

    # Internals.

    def _send_rest(self) -> None:
        """Write as much of a long response as the transport takes; serve the next request when all of it is written."""
        if self._rest is None:  # aborted before this turn came
            return
        self.active_at = self._round.loop_time()
        written = 0
        try:
            for piece in self._rest:
                self._transport.write(piece)
                written += len(piece)
                if self._full:
                    return
                if written >= TURN_BYTES:
                    self._round.call_soon(self._send_rest)
                    return
        except (
            OSError,
            BatchError,
            SegmentDeletedError,
        ) as problem:  # too late for an error response: its length is sent
            logger.warning("closing %s: the rest of its answer cannot be read: %s", self.peer, problem)
            self.abort()
            return
        self._rest = None
        if self._closing:
            self._transport.close()
            return
        self._write_paused = self._full
        self._round.serve(self)

    def _drop(self) -> None:
        """Drop all unwritten data."""
        self._closing = True
        self._answers.clear()
        self._rest = None
        self._registry.unread.remove(self)


def in_chunks(parts: Iterable[LazyBytes], chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """``parts`` joined, in chunks of ``chunk_bytes``. Raises the errors of reading the parts."""
    chunk: list[bytes] = []
    missing = chunk_bytes
    for part in parts:
        start, size = 0, len(part)
        while start < size:
            taken = part[start : start + missing]
            chunk.append(taken)
            start += len(taken)
            missing -= len(taken)
            if not missing:
                yield b"".join(chunk)
                chunk.clear()
                missing = chunk_bytes
    if chunk:
        yield b"".join(chunk)
