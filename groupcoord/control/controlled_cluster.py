"""The clusters that are controlled over HTTP, by their names: each with a port of its own, all in one process."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from groupcoord.control.models import ClockName
from groupcoord.testing.append_rules import AppendRule
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.faults.matching import suggestion
from groupcoord.testing.faults.rule_file import NamedRule
from groupcoord.testing.wait_reasons import wait_reasons

logger = logging.getLogger(__name__)

DEFAULT = "default"
"""The name of the first one, which the paths at the root speak of."""


class ControlledCluster(Cluster):
    """A cluster with a ``name``. ``rules`` are fault rules that it begins with, also after a reset; ``settings`` are those of
    Cluster, and its errors, too."""

    def __init__(self, name: str, *, rules: Sequence[NamedRule] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.name = name
        self.host: str = self._settings["host"]
        """Where it listens."""
        self.mode: ClockName = self._settings["mode"].value
        """``real``, ``manual`` or ``fast``."""
        self.speed: float | None = self._settings["speed"] if self.mode == "fast" else None
        """How many times as fast as the wall clock its clock runs, if it is fast."""
        self.run = 0
        """How often it was begun: 1, and 1 more with each reset. Numbers of entries of its trace begin anew with each."""
        self.appends: list[AppendRule] = []
        """All rules for appends since it began; the number of a rule in paths is its place, counted from 1."""
        self.changing = asyncio.Lock()
        """Held by who moves its time, or stops, starts or resets it: one after the other."""
        self.ending = asyncio.Event()
        """Set when it ends: what waits for something of it then waits no longer."""
        self._rules = rules
        self._trace_listeners: set[Callable[[], None]] = set()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._begin()
        return self

    def _begin(self) -> None:
        self.run += 1
        self.appends = []
        self.faults.add_named(self._rules)
        self.trace.on_entry(self._tell_of_entry)

    async def reset(self, *, rules: bool = False) -> None:
        """As of Cluster; the rules that it began with are there again."""
        await super().reset(rules=rules)
        self._begin()
        self._tell_of_entry()

    async def end(self) -> list[Exception]:
        """Stop for good; returns what went wrong in the server that should not have and was not told yet."""
        return [*self._problems, *await self._engine.end()][self._told :]

    async def problems(self) -> list[str]:
        """What ``check`` would raise, in words: errors of the server, which are told once, and rules that never acted."""
        found = []
        try:
            await self.check(rules=False)
        except ExceptionGroup as errors:
            found += [f"the server failed: {type(error).__name__}: {error}" for error in errors.exceptions]
        found += self.faults.unused()
        found += [f"nothing was appended that this rule is for: {rule}" for rule in self.append_rules if not rule.uses]
        return found

    @property
    def is_up(self) -> bool:
        """Does it listen? Not after ``stop``."""
        return self._engine.is_up

    @property
    def listener_addresses(self) -> dict[str, list[str]]:
        """The addresses of each listener by its name."""
        return self._engine.server.listener_addresses

    def group_names(self) -> list[str]:
        """All groups."""
        return self._engine.group_names()

    def transactional_ids(self) -> list[str]:
        """All transactional ids."""
        return self._engine.transactional_ids()

    def pending(self) -> list[str]:
        """What its groups and transactions wait for, in words."""
        return wait_reasons(self._engine)

    def topic_names(self) -> list[str]:
        """All topics, those of Kafka itself last."""
        return sorted(self._partition_counts(), key=lambda name: (name.startswith("__"), name))

    def on_trace(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when the trace has a new entry, or begins anew; returns a function that ends this."""
        self._trace_listeners.add(listener)
        return lambda: self._trace_listeners.discard(listener)

    def _tell_of_entry(self) -> None:
        for listener in tuple(self._trace_listeners):
            listener()

    def watch_storage(self, stop: Callable[[], None]) -> None:
        """If there is a data directory: log what was found there and what is short, and call ``stop`` if its disk fails."""
        directory = self._engine.data_directory
        if directory is not None:
            for finding in directory.findings:
                logger.warning("%s", finding)
            directory.on_failure, directory.on_shortage = stop, logger.warning

    @property
    def storage_failure(self) -> str | None:
        """How the disk of the data directory has failed; None if it has not, or there is none."""
        directory = None if self._running is None else self._running.data_directory
        return None if directory is None else directory.failure


class ControlledClusters:
    """All of them, the ``default`` one first."""

    def __init__(self, default: ControlledCluster, *, host: str = "127.0.0.1") -> None:
        self.host = host
        """Where further ones listen: the address of the first one."""
        self._clusters = {default.name: default}

    def __iter__(self) -> Iterator[ControlledCluster]:
        return iter(self._clusters.values())

    def __getitem__(self, name: str) -> ControlledCluster:
        """Raises LookupError, which names the nearest."""
        try:
            return self._clusters[name]
        except KeyError:
            raise LookupError(f"there is no broker {name!r}{suggestion(name, self._clusters)}") from None

    def new_name(self) -> str:
        """A name that no cluster has."""
        return next(
            name for number in range(2, len(self._clusters) + 3) if (name := f"broker-{number}") not in self._clusters
        )

    async def add(self, cluster: ControlledCluster) -> None:
        """Start ``cluster``. Raises ValueError if the name is taken, and OSError if the port is."""
        if cluster.name in self._clusters:
            raise ValueError(f"there is a broker {cluster.name!r} already")
        self._clusters[cluster.name] = cluster
        try:
            await cluster.__aenter__()
        except BaseException:
            del self._clusters[cluster.name]
            raise

    async def remove(self, name: str) -> list[Exception]:
        """End that cluster, and forget it; returns what went wrong in its server. Raises LookupError, ValueError."""
        cluster = self[name]
        if name == DEFAULT:
            raise ValueError("the first broker ends with the process; POST /reset makes it a fresh one")
        del self._clusters[name]
        cluster.ending.set()
        async with cluster.changing:
            return await cluster.end()

    def end_waits(self) -> None:
        """The process is about to end: nobody waits for anything any more."""
        for cluster in self:
            cluster.ending.set()

    async def end(self) -> list[Exception]:
        """End all of them; returns what went wrong in their servers."""
        return [error for cluster in self for error in await cluster.end()]


def taken(error: OSError) -> str:
    """In words, why it cannot listen where it should."""
    return f"cannot listen on {error.filename}: {error.strerror}"
