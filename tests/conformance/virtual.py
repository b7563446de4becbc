"""Runs groupcoord in process on a virtual clock, which advances only when a story waits, so that minutes pass at once.

Everything of the server but the sockets takes part: frames, connections, processor, node. The loop is one that runs what is
due and then lets time jump to the next timer.
"""

import asyncio
import heapq
import itertools
import random
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from groupcoord.cluster.cluster_core import ClusterCore
from groupcoord.config.broker_config import load
from groupcoord.server.connection import Round, ServerConnection
from groupcoord.server.connection_registry import ConnectionRegistry
from groupcoord.server.serving_loop import ServingLoop, UnexpectedError
from tests.conformance.wire import Hungup, Wire

START_MS = 1_767_225_600_000
"""When every virtual server starts: 2026-01-01, later than any time that the stories make up for their records."""

PORT = 9092


class VirtualTimeLoop:
    """As much of an event loop as the server's shell uses. Time passes in ``advance`` and nowhere else."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self._order = itertools.count()
        self._soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []

    def time(self) -> float:
        return self.now_ms / 1000

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> None:
        self._soon.append((callback, arguments))

    def call_at(self, when: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, (), cast("asyncio.AbstractEventLoop", self))
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """What a handle tells its loop."""

    def settle(self) -> None:
        """Run everything that can run without time passing."""
        while self._soon:
            waiting, self._soon = self._soon, []
            for callback, arguments in waiting:
                callback(*arguments)

    def advance(self, until_ms: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until ``until_ms``, running every timer at its moment, or only until it is ``enough``."""
        self.settle()
        while not enough() and self._timers and _milliseconds(self._timers[0][0]) <= until_ms:
            when, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                self.now_ms = max(self.now_ms, _milliseconds(when))
                handle._run()
                self.settle()
        if not enough():
            self.now_ms = max(self.now_ms, until_ms)


def _milliseconds(when: float) -> int:
    """The first whole millisecond at which it is ``when`` (seconds): a timer never fires early."""
    return -int(-when * 1000 // 1)


class VirtualTransport:
    """What the server's end of a connection reads from and writes to: two lists of bytes."""

    def __init__(self, loop: VirtualTimeLoop, connection: ServerConnection) -> None:
        self.sent = bytearray()
        """What the server wrote and the client has not taken yet."""
        self.closed = False
        self._loop = loop
        self._connection = connection
        self._unread: list[bytes] = []
        self._reading = True

    def take(self, data: bytes) -> None:
        """The client sent ``data``; the server gets it as soon as it reads."""
        self._unread.append(data)
        self._deliver()

    def write(self, data: bytes) -> None:
        self.sent += data

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._connection.connection_lost, None)

    abort = close

    def _deliver(self) -> None:
        while self._unread and self._reading and not self.closed:
            self._connection.data_received(self._unread.pop(0))


class VirtualWire:
    """The client's end of a connection to the server of ``target``."""

    def __init__(self, target: "VirtualTarget", number: int) -> None:
        self._loop = target.loop
        limit = target.node.config.socket_request_max_bytes
        self._connection = ServerConnection(
            number, ("127.0.0.1", 20_000 + number), target.round, target.connections, limit
        )
        self._transport = VirtualTransport(target.loop, self._connection)
        target.connections.reserve("127.0.0.1")
        self._connection.connection_made(cast("asyncio.Transport", self._transport))
        self._closed = False

    def send(self, data: bytes) -> None:
        if self._transport.closed:
            raise Hungup("the server closed the connection")
        self._transport.take(data)
        self._loop.settle()

    def receive(self, within_ms: int) -> bytes | None:
        self._loop.advance(self._loop.now_ms + within_ms, lambda: self._transport.closed or self._has_frame())
        if self._has_frame():
            received = self._transport.sent
            (size,) = struct.unpack_from(">i", received)
            frame = bytes(received[4 : 4 + size])
            del received[: 4 + size]
            return frame
        if self._transport.closed:
            raise Hungup("end of stream")
        return None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._connection.eof_received()
            self._loop.settle()

    def _has_frame(self) -> bool:
        received = self._transport.sent
        return len(received) >= 4 and len(received) >= 4 + int.from_bytes(received[:4])


class CountedChance:
    """Ids that look random and are the same in every run."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def session_id(self) -> int:
        return self._random.randrange(1, 1 << 31)

    def next_int(self, bound: int) -> int:
        return self._random.randrange(bound)


class VirtualTarget:
    """A groupcoord with ``properties``, of its own, from its first moment on; nothing of it is left behind."""

    settle_ms = 80

    def __init__(self, properties: Mapping[str, str], seed: str = "") -> None:
        self.loop = VirtualTimeLoop()
        items = [f"{name}={value}" for name, value in properties.items()]
        self.node = ClusterCore(load(items, dev=False), random=CountedChance(seed), now_ms=START_MS)
        self.node.listening_at("127.0.0.1", PORT)
        loop = cast("asyncio.AbstractEventLoop", self.loop)
        self.connections: ConnectionRegistry[ServerConnection] = ConnectionRegistry(lambda: self.node.config, loop)
        self.round: Round = Round(loop)
        self.serving_loop = ServingLoop(self.node, self.connections, self.round, loop, self.now_ms, ())
        self.serving_loop.wake()
        self._numbers = itertools.count(1)

    @property
    def unexpected_errors(self) -> list[UnexpectedError]:
        """What went wrong in the server that should not have."""
        return self.serving_loop.unexpected_errors

    def connect(self) -> Wire:
        return VirtualWire(self, next(self._numbers))

    def now_ms(self) -> int:
        return self.loop.now_ms

    def wait(self, duration_ms: int) -> None:
        self.loop.advance(self.loop.now_ms + duration_ms)
