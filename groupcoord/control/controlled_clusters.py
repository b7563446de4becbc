"""The clusters that the control API controls, by name; all run in one process, each on a port of its own."""

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
"""The name of the first cluster, which the paths at the root are about."""


class ControlledCluster(Cluster):
    """A Cluster with a ``name``. ``rules`` are fault rules that are there from the start and again after each reset.
    ``settings`` are the arguments of Cluster; raises what Cluster raises."""

    _nothing_happened = "nothing"

    def __init__(self, name: str, *, rules: Sequence[NamedRule] = (), **settings: Any) -> None:
        super().__init__(**settings)
        self.name = name
        self.host: str = self._settings["host"]
        """The address on which it listens."""
        self.mode: ClockName = self._settings["mode"].value
        """``real``, ``manual`` or ``fast``."""
        self.speed: float | None = self._settings["speed"] if self.mode == "fast" else None
        """How many times as fast as the wall clock a ``fast`` clock runs; None for other clocks."""
        self.run = 0
        """1 after the start, and 1 more with each reset. Trace entries are numbered from 1 again in each run."""
        self.appends: list[AppendRule] = []
        """All append rules that were added since the start or reset; paths name a rule by its position, counted from 1."""
        self.changing = asyncio.Lock()
        """Held while a request advances the clock, or stops, starts or resets the cluster: one at a time."""
        self.ending = asyncio.Event()
        """Set when the cluster ends; every request that waits for something then returns."""
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
        """As Cluster.reset, and the fault rules of the start are there again."""
        await super().reset(rules=rules)
        self._begin()
        self._tell_of_entry()

    async def end(self) -> list[Exception]:
        """Stop for good; returns the unexpected errors of the server that were not reported before."""
        return [*self._problems, *await self._engine.end()][self._told :]

    async def problems(self) -> list[str]:
        """What ``check`` would raise, in words: errors of the server, each reported once, and rules that never acted."""
        found: list[str] = []
        try:
            await self.check(rules=False)
        except ExceptionGroup as errors:
            found += map(_in_words, errors.exceptions)
        found += self.faults.unused()
        found += [f"nothing was appended that this rule is for: {rule}" for rule in self.append_rules if not rule.uses]
        return found

    @property
    def is_up(self) -> bool:
        """Does the cluster listen? Not after ``stop``."""
        return self._engine.is_up

    @property
    def listener_addresses(self) -> dict[str, list[str]]:
        """The addresses of each listener, by the listener's name."""
        return self._engine.server.listener_addresses

    def group_names(self) -> list[str]:
        """The names of all groups."""
        return self._engine.group_names()

    def transactional_ids(self) -> list[str]:
        """All transactional ids."""
        return self._engine.transactional_ids()

    def pending(self) -> list[str]:
        """What groups and transactions wait for, in words."""
        return wait_reasons(self._engine)

    def topic_names(self) -> list[str]:
        """The names of all topics, Kafka's internal ones last."""
        return sorted(self._partition_counts(), key=lambda name: (name.startswith("__"), name))

    def on_trace(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when the trace gets an entry or starts again; returns a function that removes the listener."""
        self._trace_listeners.add(listener)
        return lambda: self._trace_listeners.discard(listener)

    def _tell_of_entry(self) -> None:
        for listener in tuple(self._trace_listeners):
            listener()

    def watch_storage(self, stop: Callable[[], None]) -> None:
        """If there is a data directory: log what its recovery found and when disk space gets short, and call ``stop`` if its
        disk fails."""
        directory = self._engine.data_directory
        if directory is not None:
            for finding in directory.findings:
                logger.warning("%s", finding)
            directory.on_failure, directory.on_shortage = stop, logger.warning

    @property
    def storage_failure(self) -> str | None:
        """How the disk of the data directory has failed; None if it has not, or without a data directory."""
        directory = None if self._running is None else self._running.data_directory
        return None if directory is None else directory.failure


class ControlledClusters:
    """All controlled clusters, the ``default`` one first."""

    def __init__(self, default: ControlledCluster, *, host: str = "127.0.0.1") -> None:
        self.host = host
        """The address on which all clusters listen: that of the first one."""
        self._clusters = {default.name: default}

    def __iter__(self) -> Iterator[ControlledCluster]:
        return iter(self._clusters.values())

    def __getitem__(self, name: str) -> ControlledCluster:
        """The cluster of that name. Raises LookupError, which suggests the most similar name."""
        try:
            return self._clusters[name]
        except KeyError:
            raise LookupError(f"there is no broker {name!r}{suggestion(name, self._clusters)}") from None

    def new_name(self) -> str:
        """A name that no cluster has yet."""
        return next(
            name for number in range(2, len(self._clusters) + 3) if (name := f"broker-{number}") not in self._clusters
        )

    async def add(self, cluster: ControlledCluster) -> None:
        """Start ``cluster``. Raises ValueError if the name is taken, and OSError if the port is in use."""
        if cluster.name in self._clusters:
            raise ValueError(f"there is a broker {cluster.name!r} already")
        self._clusters[cluster.name] = cluster
        try:
            await cluster.__aenter__()
        except BaseException:
            del self._clusters[cluster.name]
            raise

    async def remove(self, name: str) -> list[str]:
        """End that cluster and remove it; returns its ``problems``.

        Raises LookupError if it does not exist, and ValueError if it is the first one.
        """
        cluster = self[name]
        if name == DEFAULT:
            raise ValueError("the first broker ends with the process; POST /reset makes it a fresh one")
        del self._clusters[name]
        cluster.ending.set()
        async with cluster.changing:
            problems = await cluster.problems()
            return problems + [_in_words(error) for error in await cluster.end()]

    def end_waits(self) -> None:
        """End every request that waits for something, because the process is about to end."""
        for cluster in self:
            cluster.ending.set()

    async def end(self) -> list[Exception]:
        """End all clusters; returns the unexpected errors of their servers."""
        return [error for cluster in self for error in await cluster.end()]


def _in_words(error: Exception) -> str:
    return f"the server failed: {type(error).__name__}: {error}"


def taken(error: OSError) -> str:
    """The text of an ``error`` of binding the port."""
    return f"cannot listen on {error.filename}: {error.strerror}"
