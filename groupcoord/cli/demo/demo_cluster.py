"""Starts the cluster of the demo, and with ``--page`` the server of its live page, which stays after the end of the story."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from groupcoord.cli.demo.output import DemoOutput
from groupcoord.cli.demo.story_progress import StoryProgress
from groupcoord.testing.cluster import Cluster

HOST = "127.0.0.1"


async def play_on_cluster(
    play: Callable[[Cluster], Awaitable[int]],
    progress: StoryProgress,
    output: DemoOutput,
    page: str | None,
    *,
    afterwards: Callable[[str], Awaitable[int]] | None = None,
    **settings: Any,
) -> int:
    """Play a story on the cluster with ``settings``; for ``page`` see ``demo_cluster``. Returns its exit code, or if it has
    succeeded that of ``afterwards``, which is called with the address of the cluster.
    """
    try:
        async with demo_cluster(output, page, listeners=[progress.happened], **settings) as (kafka, until_seen):
            try:
                code = await play(kafka)
            finally:
                await progress.end()
            await until_seen()
            return code if code or afterwards is None else await afterwards(kafka.address)
    except ExceptionGroup:
        return 1  # unexpected errors of the server, which the final check has reported


@asynccontextmanager
async def demo_cluster(
    output: DemoOutput, page: str | None, **settings: Any
) -> AsyncIterator[tuple[Cluster, Callable[[], Awaitable[None]]]]:
    """The cluster with ``settings``, and a function to await at the end of the story.

    ``page`` is the HTML of the live page, or None. Its URL is printed on ``output``; the function waits until a signal comes.
    """
    if page is None:
        async with Cluster(**settings) as kafka:
            yield kafka, _nothing
        return
    from groupcoord.control.controlled_clusters import DEFAULT, ControlledCluster, ControlledClusters  # noqa: PLC0415
    from groupcoord.control.serving import http_server  # noqa: PLC0415
    from groupcoord.server.address_text import host_and_port  # noqa: PLC0415
    from groupcoord.server.listener import bind  # noqa: PLC0415
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
    """Return at once, because there is no page."""
