"""The server of the live page of ``groupcoord proxy --page``, which shows the proxy's trace. It is read-only, and serves only
this machine."""

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
from groupcoord.server.address_text import host_and_port
from groupcoord.server.listener import bind
from groupcoord.testing.trace import Trace


class WatchedTrace:
    """The proxy's trace as a StreamedCluster: it is streamed until ``ending`` is set."""

    run = 1
    """The proxy's trace is never reset."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ending = asyncio.Event()

    def on_trace(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` for every new entry; returns a function that removes the listener."""
        return self.trace.on_entry(listener)


def page_app(watched: WatchedTrace, html: str) -> FastAPI:
    """The application that serves the page ``html``, the trace as server-sent events, and explanations of generations and
    epochs."""
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
    """Serve the page at ``host`` and ``port`` (0: any free port) while the block runs; yields its URL. Raises OSError."""
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
