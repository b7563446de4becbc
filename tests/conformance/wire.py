"""The plain sockets and frames with which a story's actors send requests.

Deliberately plain blocking sockets and no client library, so that a story can send any request at any moment, keep one
unanswered, send half a frame, or drop the connection.
"""

import socket
import struct
import time
from typing import Protocol

# The longest that any answer which a story expects may take; the real broker's first answers on a cold JVM are the slowest.
PATIENCE_MS = 15_000


class Hungup(Exception):
    """The server closed the connection."""


class Wire(Protocol):
    """One connection to the server under test."""

    def send(self, data: bytes) -> None:
        """Send raw bytes. Raises Hungup."""

    def receive(self, within_ms: int) -> bytes | None:
        """The next frame without its length, or None when none came in time. Raises Hungup."""

    def close(self) -> None:
        """Drop the connection without a word."""


class Target(Protocol):
    """A server under test, and its clock."""

    # How long "no answer" is observed after a request that should stay unanswered for now.
    settle_ms: int

    def connect(self) -> Wire:
        """A new connection."""

    def now_ms(self) -> int:
        """The time, in milliseconds since 1970, on the clock that the server uses."""

    def wait(self, duration_ms: int) -> None:
        """Let ``duration_ms`` pass."""


class SocketWire:
    """A TCP connection; blocking, one frame at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), PATIENCE_MS / 1000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()

    def send(self, data: bytes) -> None:
        self._socket.settimeout(PATIENCE_MS / 1000)
        try:
            self._socket.sendall(data)
        except OSError as problem:
            raise Hungup(str(problem)) from problem

    def receive(self, within_ms: int) -> bytes | None:
        deadline = time.monotonic() + within_ms / 1000
        while (frame := self._take()) is None:
            self._socket.settimeout(max(0.0, deadline - time.monotonic()))  # 0: what is there is received, no more
            try:
                data = self._socket.recv(1 << 20)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError as problem:
                raise Hungup(str(problem)) from problem
            if not data:
                raise Hungup("end of stream")
            self._received += data
        return frame

    def _take(self) -> bytes | None:
        if len(self._received) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._received)
        if len(self._received) < 4 + size:
            return None
        frame = bytes(self._received[4 : 4 + size])
        del self._received[: 4 + size]
        return frame

    def close(self) -> None:
        self._socket.close()


class SocketTarget:
    """A server at ``host:port`` on this machine, hence with this machine's clock."""

    def __init__(self, host: str, port: int, settle_ms: int = 80) -> None:
        self.host, self.port, self.settle_ms = host, port, settle_ms

    @classmethod
    def at(cls, bootstrap: str) -> "SocketTarget":
        """``HOST:PORT`` as text."""
        host, _, port = bootstrap.rpartition(":")
        return cls(host, int(port))

    def connect(self) -> Wire:
        return SocketWire(self.host, self.port)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000)
