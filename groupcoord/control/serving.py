"""Serves the control API with uvicorn, in the event loop of its broker, until a signal comes."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import uvicorn
from fastapi import FastAPI

from groupcoord.control.app import create_app
from groupcoord.control.controlled_clusters import ControlledCluster, ControlledClusters
from groupcoord.server.address_text import host_and_port
from groupcoord.server.listener import bind
from groupcoord.server.server import captured_signals

logger = logging.getLogger(__name__)

GRACE_S = 1
"""How long a shutdown waits for responses in progress (seconds); requests that wait for something are answered at once."""


class HttpServer(uvicorn.Server):
    """uvicorn's server without signal handlers: its owner ends it with ``should_exit``."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,  # the application logs errors itself
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


@contextlib.asynccontextmanager
async def http_server(
    clusters: ControlledClusters, sockets: Sequence[socket.socket], token: str | None, page: str | None = None
) -> AsyncIterator[None]:
    """Serve the control API of ``clusters`` on ``sockets`` while the block runs; its end ends all requests that wait."""
    server = HttpServer(create_app(clusters, token=token, page=page))
    serving = asyncio.ensure_future(server.serve(list(sockets)))
    try:
        yield
    finally:
        clusters.end_waits()
        server.should_exit = True
        await serving


async def serve(
    cluster: ControlledCluster,
    host: str,
    port: int,
    *,
    token: str | None,
    page: str | None = None,
    announce: Callable[[str], None],
) -> signal.Signals | None:
    """Start ``cluster`` and its control API, with the live ``page`` if one is given; call ``announce`` with the URL; serve
    until a signal comes or the disk fails; then end the cluster.

    Returns the signal. Raises OSError, with the address in ``filename``, if the port cannot be bound, and what the start of a
    Cluster raises.
    """
    ended = asyncio.Event()
    received: list[signal.Signals] = []

    def signalled(number: signal.Signals) -> None:
        received.append(number)
        logger.info("%s received", number.name)
        ended.set()

    with captured_signals(signalled):
        clusters = ControlledClusters(cluster, host=cluster.host)
        await cluster.__aenter__()
        try:
            cluster.watch_storage(ended.set)
            try:
                sockets = await bind(host, port, cluster.core.config)
            except OSError as problem:
                problem.filename = host_and_port(host, port)
                raise
            async with http_server(clusters, sockets, token, page):
                announce(f"http://{host_and_port(host, sockets[0].getsockname()[1])}")
                await ended.wait()
        finally:
            await clusters.end()
    return received[0] if received else None
