"""A server in this process with one line: for programs and tests that want a broker while a block runs."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from groupcoord.config.settings import load
from groupcoord.core.events import Event
from groupcoord.node.node import Node
from groupcoord.server.chance import SystemChance
from groupcoord.server.clock import wall_clock
from groupcoord.server.server import Server


@asynccontextmanager
async def running(
    *,
    topics: Mapping[str, int] | None = None,
    config: Mapping[str, object] | None = None,
    dev: bool = True,
    host: str = "127.0.0.1",
    port: int = 0,
    listeners: Iterable[Callable[[Event], None]] = (),
) -> AsyncIterator[Server]:
    """A broker at ``server.address`` until the block ends.

    ``topics`` are names with numbers of partitions, ``config`` are Kafka's properties, ``dev`` takes the defaults for quick
    tests (groups form at once), ``listeners`` are told every event. Raises ConfigError, ValueError for a topic that Kafka
    would refuse, OSError if it cannot listen there; and, at the end of the block, an ExceptionGroup of what went wrong in
    the server that should not have.
    """
    now_ms = wall_clock()
    items = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in (config or {}).items()
    ]
    node = Node(load(items, dev=dev), chance=SystemChance(), now_ms=now_ms())
    for name, count in (topics or {}).items():
        node.create_topic(name, count, now_ms())
    async with Server(node, host, port, now_ms=now_ms, listeners=listeners) as server:
        yield server
    if server.unexpected_errors:
        raise ExceptionGroup("errors in the server", [unexpected.error for unexpected in server.unexpected_errors])
