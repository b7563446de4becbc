"""Scripted clients and brokers for tests of the proxy."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

from groupcoord.core.events import Event
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request, parse_response
from groupcoord.proxy.proxy import Proxy
from groupcoord.wall_clock import wall_clock

_INT32 = struct.Struct(">i")


async def frame_from(reader: asyncio.StreamReader) -> bytes:
    (size,) = _INT32.unpack(await reader.readexactly(4))
    return await reader.readexactly(size)


def framed(frame: bytes) -> bytes:
    return _INT32.pack(len(frame)) + frame


class Client:
    """A connection to an address, ``host:port``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._correlation_id = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, address: str) -> AsyncIterator["Client"]:
        host, _, port = address.rpartition(":")
        client = cls(*await asyncio.open_connection(host, int(port)))
        try:
            yield client
        finally:
            client.writer.close()
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()

    def send(self, key: ApiKey, version: int, request: Any, client_id: str = "c") -> None:
        self._correlation_id += 1
        self.writer.write(encode_request(APIS[key], version, self._correlation_id, client_id, request))

    async def answer(self, key: ApiKey, version: int) -> Any:
        async with asyncio.timeout(30):
            return parse_response(APIS[key], version, await frame_from(self.reader))[1]

    async def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        self.send(key, version, request)
        return await self.answer(key, version)

    async def is_closed(self) -> bool:
        """Has the other side closed the connection?"""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True


Answers = Callable[[bytes], bytes | None]
"""A request, without its length → what to send, with its length; None closes the connection."""


@contextlib.asynccontextmanager
async def broker(answers: Answers) -> AsyncIterator[tuple[str, int]]:
    """A broker that answers each request as ``answers`` says; yields its address."""

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                while (answer := answers(await frame_from(reader))) is not None:
                    writer.write(answer)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def proxy_to(address: tuple[str, int] | str, tell: Callable[[Event], None] | None = None, **settings: Any) -> Proxy:
    to = address_of(address) if isinstance(address, str) else address
    return Proxy(to, now_ms=wall_clock(), tell=() if tell is None else (tell,), **settings)
