"""The cluster of the demo; with ``--page`` beside a page that shows it while it lives, and stays when the show is over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from groupcoord.cli.demo.output import DemoOutput
from groupcoord.testing.cluster import Cluster

HOST = "127.0.0.1"


@asynccontextmanager
async def demo_cluster(
    output: DemoOutput, page: str | None, **settings: Any
) -> AsyncIterator[tuple[Cluster, Callable[[], Awaitable[None]]]]:
    """The cluster with ``settings``, and what is to be awaited when the show is over.

    ``page`` is the HTML of a live page, whose URL is told on ``output``; it stays until a signal comes. None: there is none.
    """
    if page is None:
        async with Cluster(**settings) as kafka:
            yield kafka, _nothing
        return
    from groupcoord.control.controlled_cluster import DEFAULT, ControlledCluster, ControlledClusters  # noqa: PLC0415
    from groupcoord.control.serving import http_server  # noqa: PLC0415
    from groupcoord.server.listener import bind  # noqa: PLC0415
    from groupcoord.server.operating_system import host_and_port  # noqa: PLC0415
    from groupcoord.server.server import captured_signals  # noqa: PLC0415

    async with ControlledCluster(DEFAULT, detailed_trace=True, **settings) as kafka:
        sockets = await bind(HOST, 0, kafka.core.config)
        async with http_server(ControlledClusters(kafka), sockets, None, page):
            url = f"http://{host_and_port(HOST, sockets[0].getsockname()[1])}/page/"
            output.title("The page", f"{url} shows what follows while it happens.")

            async def until_signal() -> None:
                output.title("The page stays", f"{url} shows all of it, at any moment. Ctrl-C ends it.")
                ended = asyncio.Event()
                with captured_signals(lambda _: ended.set()):
                    await ended.wait()

            yield kafka, until_signal


async def _nothing() -> None:
    """Nobody looks at a page."""
