"""A running server and clients of it over real sockets, on either event loop."""

import asyncio
import errno
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from groupcoord.core.effects import Call, Effect
from groupcoord.protocol.apis import Api
from groupcoord.protocol.framing import parse_response
from groupcoord.protocol.messages import HeartbeatResponse
from groupcoord.server.server import Server
from tests.server.support import HEARTBEAT, FakeCluster, frame, heartbeat

PATIENCE_SECONDS = 20.0

T = TypeVar("T")
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Run(Protocol):
    """Runs one story to its end on the event loop of a test, but not for ever: a long one may take ``patience_s``."""

    def __call__(self, story: Coroutine[Any, Any, T], *, patience_s: float = PATIENCE_SECONDS) -> T: ...


def runner(loop_factory: LoopFactory) -> Run:
    """Runs stories on loops of ``loop_factory``."""

    def run(story: Coroutine[Any, Any, T], *, patience_s: float = PATIENCE_SECONDS) -> T:
        async def patiently() -> T:
            async with asyncio.timeout(patience_s):
                return await story

        with asyncio.Runner(loop_factory=loop_factory) as one:
            return one.run(patiently())

    return run


@asynccontextmanager
async def running(node: FakeCluster | None = None, **options: Any) -> AsyncIterator[Server]:
    """A server until the block ends, in which nothing may have gone wrong unexpectedly."""
    async with Server(node or FakeCluster(), **options) as server:
        yield server
    assert server.unexpected_errors == []


class Client:
    """One connection, as a client sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, server: Server, broker: int = 0, listener: str | None = None) -> "Client":
        """A connection to broker ``broker``, counted from 0, by that listener, or the first."""
        addresses = server.addresses if listener is None else server.listener_addresses[listener]
        port = int(addresses[broker].rpartition(":")[2]) if broker or listener else server.port
        return cls(*await asyncio.open_connection(server.host, port))

    def send(self, api: Api, message: Any, *, correlation_id: int = 1) -> None:
        self.writer.write(frame(api, message, correlation_id=correlation_id))

    async def answer(self, api: Api) -> tuple[int, Any]:
        """(correlation id, message) of the next answer."""
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return parse_response(api, api.max_version, await self.reader.readexactly(size))

    async def ended(self) -> bool:
        """Is there nothing more to read, and never will be? Waits for it."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def alive(self) -> bool:
        """Is a heartbeat answered?"""
        self.send(HEARTBEAT, heartbeat())
        _, answer = await self.answer(HEARTBEAT)
        return isinstance(answer, HeartbeatResponse) and answer.error_code == 0

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)

    def reset(self) -> None:
        """Vanish without a goodbye."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


async def with_its_ports(start: Callable[[], Awaitable[object]]) -> None:
    """``start`` what listens at ports that were free for a moment; again, if a connection of another process has one."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await start()
            except OSError as problem:
                if problem.errno != errno.EADDRINUSE:
                    raise
                await asyncio.sleep(0.1)
            else:
                return


def counted(node: FakeCluster, calls: int) -> asyncio.Event:
    """Set when ``node`` has been called so often."""
    reached = asyncio.Event()
    handle = node.handle

    def counting(call: Call, request: Any, now_ms: int) -> list[Effect]:
        effects = handle(call, request, now_ms)
        if len(node.calls) == calls:
            reached.set()
        return effects

    node.handle = counting  # type: ignore[method-assign]
    return reached
