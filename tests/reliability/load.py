"""Clients that keep a server busy until it is killed, and their books: what was answered, and what was still on its way.

A client is a generator of requests, so that all of them live in one thread: ``yield`` sends some, each with what is to be done
with its answer, and comes back when all are answered. What it never hears of stays on its way.
"""

import selectors
import socket
import struct
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from groupcoord.protocol.framing import FrameBuffer, parse_response
from tests.reliability.talk import API_OF, Address, frame_of, version_of


class Ask(NamedTuple):
    """A request, what is done with its answer, and its version, if it is not the one that is spoken otherwise."""

    request: Any
    then: Callable[[Any], None]
    version: int | None = None

    @property
    def spoken(self) -> int:
        """The version."""
        return version_of(API_OF[type(self.request)]) if self.version is None else self.version


Asking = Generator[Sequence[Ask], None, None]


class Line:
    """The connection of one client."""

    def __init__(self, asking: Asking, address: Address) -> None:
        self.socket = socket.create_connection(address, 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.ended = False
        self._asking = asking
        self._frames = FrameBuffer(1 << 30)
        self._open: dict[int, Ask] = {}
        self._correlation_id = 0
        self._go_on()

    def receive(self) -> None:
        """Take what came in; when all is answered, ask on."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return
        self._frames.feed(data)
        for frame in self._frames.frames():
            (correlation_id,) = struct.unpack_from(">i", frame)
            ask = self._open.pop(correlation_id)
            ask.then(parse_response(API_OF[type(ask.request)], ask.spoken, frame)[1])
        if not self._open:
            self._go_on()

    def drain(self) -> None:
        """The server is dead: take what it had still sent, and send nothing more."""
        self._asking.close()
        while not self.ended:
            self.receive()
        self.socket.close()

    def _go_on(self) -> None:
        data = b""
        try:
            asks = next(self._asking)
        except StopIteration:
            return
        for ask in asks:
            self._correlation_id += 1
            self._open[self._correlation_id] = ask
            data += frame_of(ask.request, ask.spoken, self._correlation_id)
        try:
            self.socket.setblocking(True)
            self.socket.sendall(data)
            self.socket.setblocking(False)
        except OSError:
            self.ended = True


class Load:
    """Clients at work on one server."""

    def __init__(self, lives: Sequence[Asking], address: Address) -> None:
        self._lines = [Line(life, address) for life in lives]

    def run(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Let them ask for so long, or until it is ``enough``."""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for line in self._lines:
                if not line.ended:
                    selector.register(line.socket, selectors.EVENT_READ, line)
            while selector.get_map() and not enough() and (left := until - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    key.data.receive()
                    if key.data.ended:
                        selector.unregister(key.fileobj)

    def end(self) -> None:
        """The server is dead."""
        for line in self._lines:
            line.socket.setblocking(True)
            line.drain()
