"""groupcoord in this process, in a thread and an event loop of its own, so that clients may block as they like."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from groupcoord.server.running import running
from groupcoord.server.server import Server
from tests.clients.support import PATIENCE_S

# Short enough to wait for, long enough that a busy machine does not make the living look dead.
CONFIG = {"group.min.session.timeout.ms": 1500}


@contextmanager
def groupcoord(config: Mapping[str, object] = CONFIG, *, dev: bool = True) -> Iterator[Server]:
    """A server until the block ends. Raises then what went wrong in it, if nobody did before."""
    with serving(config=config, dev=dev) as (server, _):
        yield server


@contextmanager
def serving(**options: Any) -> Iterator[tuple[Server, asyncio.AbstractEventLoop]]:
    """A server with these ``options``, and its loop."""
    started: Future[tuple[Server, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def serve() -> None:
        end = asyncio.Event()
        async with running(**options) as server:
            started.set_result((server, asyncio.get_running_loop(), end))
            await end.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as failure:
            (ended if started.done() else started).set_exception(failure)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="groupcoord", daemon=True)
    thread.start()
    server, loop, end = started.result(PATIENCE_S)
    try:
        yield server, loop
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(PATIENCE_S)
    ended.result(0)
