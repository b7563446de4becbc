"""A server in this process with one line: for programs and tests that want a broker while a block runs."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from groupcoord.broker.storage_backend import IN_MEMORY_STORAGE, StorageBackend
from groupcoord.cluster.assemble import assemble
from groupcoord.config.broker_config import as_items, load
from groupcoord.core.events import Event
from groupcoord.server.server import Server
from groupcoord.server.system import SystemRandomSource, wall_clock


@asynccontextmanager
async def running(
    *,
    topics: Mapping[str, int] | None = None,
    config: Mapping[str, object] | None = None,
    dev: bool = True,
    host: str = "127.0.0.1",
    port: int = 0,
    data_dir: Path | None = None,
    listeners: Iterable[Callable[[Event], None]] = (),
    brokers: int = 1,
    racks: Sequence[str] = (),
) -> AsyncIterator[Server]:
    """A broker at ``server.address`` until the block ends, or several at ``server.addresses``.

    ``topics`` are names with numbers of partitions, ``config`` are Kafka's properties, ``dev`` takes the defaults for quick
    tests (groups form at once), ``listeners`` are told every event. With ``data_dir``, what is in that directory is there at
    the start, topics among them, and is kept in it; that is for one broker only. ``racks`` are those of the ``brokers``, in
    turn. Raises ConfigError, ValueError for brokers that cannot be or a topic that Kafka would refuse, OSError if it cannot
    listen there, StorageError for a directory that cannot be used; and, at the end of the block, an ExceptionGroup of what
    went wrong in the server that should not have.
    """
    now_ms = wall_clock()
    broker_config = load(as_items(config or {}), dev=dev, brokers=brokers)
    with ExitStack() as stack:
        storage: StorageBackend = IN_MEMORY_STORAGE
        files_to_come: Callable[[], int] = int  # 0
        if data_dir is not None:
            if brokers > 1:
                raise ValueError("data_dir is for one broker only")
            from groupcoord.storage.data_directory import DataDirectory  # noqa: PLC0415 - not on every system

            storage = directory = DataDirectory(
                data_dir, broker_config, new_uuid=SystemRandomSource().uuid, now_ms=now_ms()
            )
            stack.callback(directory.close)
            broker_config = directory.config
            files_to_come = directory.files_to_come
        assembly = assemble(
            broker_config,
            random=SystemRandomSource(),
            now_ms=now_ms(),
            topics=(topics or {}).items(),
            storage=storage,
            brokers=brokers,
            racks=racks,
        )
        async with Server(
            assembly.served,
            host,
            port,
            now_ms=now_ms,
            listeners=listeners,
            brokers=assembly.brokers,
            files_to_come=files_to_come,
        ) as server:
            yield server
    if server.unexpected_errors:
        raise ExceptionGroup("errors in the server", [unexpected.error for unexpected in server.unexpected_errors])
