"""The live page of ``groupcoord proxy --page``: what passes the proxy, as it happens. It is for looking at, on this machine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.control.access import AccessControl
from groupcoord.control.routes.page import PATH
from groupcoord.control.serving import HttpServer
from groupcoord.control.trace_selection import TraceSelection
from groupcoord.control.trace_stream import TraceStream
from groupcoord.server.listener import bind
from groupcoord.server.operating_system import host_and_port
from groupcoord.testing.trace import Trace


class WatchedTrace:
    """A trace that is streamed until ``ending``."""

    run = 1
    """It begins once."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ending = asyncio.Event()

    def on_trace(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` with every new entry; returns a function that ends this."""
        return self.trace.on_entry(listener)


def page_app(watched: WatchedTrace, html: str) -> FastAPI:
    """The page ``html``, and what it asks for: the trace as server-sent events, and why a generation or an epoch began."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(AccessControl, token=None)

    @app.get(PATH)
    async def show_page() -> Response:
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    @app.get(f"{PATH}bytes/{{seq}}")
    async def message_bytes(seq: int) -> None:  # noqa: ARG001 - of no entry are they kept
        return None

    @app.get("/trace/stream")
    async def stream(request: Request) -> Response:
        return TraceStream(watched, TraceSelection((), None, None, None, ()), request.headers.get("last-event-id"))

    @app.get("/trace/why")
    async def why(group: str, generation: int | None = None, epoch: int | None = None) -> Response:
        try:
            return PlainTextResponse(watched.trace.why(group, generation=generation, epoch=epoch))
        except (LookupError, ValueError) as unknown:
            return PlainTextResponse(str(unknown), status_code=404)

    return app


@contextlib.asynccontextmanager
async def page_server(trace: Trace, html: str, host: str, port: int) -> AsyncIterator[str]:
    """Serve the page at ``host`` and ``port`` (0 picks one) while the block runs; gives its URL. Raises OSError."""
    try:
        sockets = await bind(host, port, BrokerConfig.of())
    except OSError as problem:
        problem.filename = host_and_port(host, port)
        raise
    watched = WatchedTrace(trace)
    server = HttpServer(page_app(watched, html))
    serving = asyncio.ensure_future(server.serve(list(sockets)))
    try:
        yield f"http://{host_and_port(host, sockets[0].getsockname()[1])}{PATH}"
    finally:
        watched.ending.set()
        server.should_exit = True
        await serving
