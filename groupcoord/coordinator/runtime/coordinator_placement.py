"""Finds the broker that coordinates a partition: its leader; on every other broker the shard answers NOT_COORDINATOR."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol

from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.coordinator_shard import M
from groupcoord.coordinator.runtime.shard import Shard


class Address(NamedTuple):
    """The advertised address of a broker."""

    node_id: int
    host: str
    port: int


class BrokersView(Protocol):
    """A read-only view of the brokers, and of the leaders of a coordinator's topic."""

    def ids(self) -> Sequence[int]:
        """The ids of all brokers, in a fixed order."""

    def leaders(self, topic: str) -> tuple[int, ...]:
        """The leader of each partition of ``topic``; the same tuple object as long as nothing changes."""

    def address(self, broker_id: int, listener: int = 0) -> Address | None:
        """The address of a broker for clients of a listener (numbered from 0); None for a fenced broker."""


class CoordinatorRouting(Generic[M]):
    """The shards of ``runtime`` per broker: those it leads, and refusing shards for the others."""

    def __init__(self, runtime: CoordinatorRuntime[M], brokers: BrokersView) -> None:
        self._shards = runtime.shards
        self._topic = runtime.topic
        self._brokers = brokers
        self._elsewhere = tuple(runtime.shard_elsewhere(shard.partition) for shard in runtime.shards)
        self._leaders: tuple[int, ...] | None = None
        self._seen: list[tuple[Shard[M], ...]] = []

    def seen_by(self, broker: int) -> tuple[Shard[M], ...]:
        """All shards from the view of broker ``broker`` (numbered from 0)."""
        leaders = self._brokers.leaders(self._topic)
        if leaders is not self._leaders:
            self._leaders = leaders
            self._seen = [self._as_seen_by(broker_id, leaders) for broker_id in self._brokers.ids()]
        return self._seen[broker]

    def _as_seen_by(self, broker_id: int, leaders: tuple[int, ...]) -> tuple[Shard[M], ...]:
        # The shard of a partition that does not exist refuses requests itself.
        return tuple(
            shard if shard.partition >= len(leaders) or leaders[shard.partition] == broker_id else elsewhere
            for shard, elsewhere in zip(self._shards, self._elsewhere, strict=True)
        )

    def coordinator_of(self, partition: int, listener: int = 0) -> Address | None:
        """The address of the leader of ``partition`` for clients of a listener (numbered from 0), or None."""
        leaders = self._brokers.leaders(self._topic)
        return self._brokers.address(leaders[partition], listener) if partition < len(leaders) else None
