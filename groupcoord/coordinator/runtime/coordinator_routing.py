"""Which broker coordinates what: the one that leads the partition; every other answers NOT_COORDINATOR."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol

from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.coordinator_shard import M
from groupcoord.coordinator.runtime.shard import Shard


class Address(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int


class BrokersView(Protocol):
    """Which brokers there are, and which of them lead a coordinator's topic, read-only."""

    def ids(self) -> Sequence[int]:
        """The ids of all brokers, the first one's first; they do not change."""

    def leaders(self, topic: str) -> tuple[int, ...]:
        """For each partition of ``topic`` the id of its leader; the same tuple as long as nothing changes."""

    def address(self, broker_id: int, listener: int = 0) -> Address | None:
        """Where clients of that listener, counted from 0, find the broker of that id; None if nowhere: it may be fenced."""


class CoordinatorRouting(Generic[M]):
    """The shards of ``runtime`` as each of ``brokers`` sees them: its own, and in place of others one that refuses."""

    def __init__(self, runtime: CoordinatorRuntime[M], brokers: BrokersView) -> None:
        self._shards = runtime.shards
        self._topic = runtime.topic
        self._brokers = brokers
        self._elsewhere = tuple(runtime.shard_elsewhere(shard.partition) for shard in runtime.shards)
        self._leaders: tuple[int, ...] | None = None
        self._seen: list[tuple[Shard[M], ...]] = []

    def seen_by(self, broker: int) -> tuple[Shard[M], ...]:
        """All shards, as broker ``broker`` (counted from 0) sees them."""
        leaders = self._brokers.leaders(self._topic)
        if leaders is not self._leaders:
            self._leaders = leaders
            self._seen = [self._as_seen_by(broker_id, leaders) for broker_id in self._brokers.ids()]
        return self._seen[broker]

    def _as_seen_by(self, broker_id: int, leaders: tuple[int, ...]) -> tuple[Shard[M], ...]:
        # A shard whose partition does not exist refuses by itself.
        return tuple(
            shard if shard.partition >= len(leaders) or leaders[shard.partition] == broker_id else elsewhere
            for shard, elsewhere in zip(self._shards, self._elsewhere, strict=True)
        )

    def coordinator_of(self, partition: int, listener: int = 0) -> Address | None:
        """The broker that leads ``partition``, if one does that is there, for clients of that listener, counted from 0."""
        leaders = self._brokers.leaders(self._topic)
        return self._brokers.address(leaders[partition], listener) if partition < len(leaders) else None
