"""Which broker coordinates which groups, where there are several: the one that leads their partition of ``__consumer_offsets``.

Every broker sees the shards that are its own, and in the place of each other one a shard that refuses whoever asks.
Source: ``CoordinatorRuntime``, of which each broker has one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from groupcoord.coordinator.availability import Unavailable
from groupcoord.coordinator.shard import Shard
from groupcoord.protocol.errors import ErrorCode


class Address(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int


class BrokersView(Protocol):
    """Which brokers there are, and which of them have ``__consumer_offsets``, read-only."""

    def ids(self) -> Sequence[int]:
        """The ids of all brokers, the first one's first; they do not change."""

    def offsets_leaders(self) -> tuple[int, ...]:
        """Of each partition of ``__consumer_offsets`` the id of its leader; the same tuple as long as nothing changes."""

    def address(self, broker_id: int) -> Address:
        """Where the broker of that id is."""


class Places:
    """The shards as each of ``brokers`` sees them; ``new_shard`` makes one that stands for those of others."""

    def __init__(self, shards: Sequence[Shard], brokers: BrokersView, new_shard: Callable[[int], Shard]) -> None:
        self._shards = shards
        self._brokers = brokers
        self._elsewhere = tuple(new_shard(shard.partition) for shard in shards)
        for shard in self._elsewhere:
            why = f"another broker has partition {shard.partition} of __consumer_offsets"
            shard.groups = Unavailable(ErrorCode.NOT_COORDINATOR, why)
        self._leaders: tuple[int, ...] | None = None
        self._seen: list[tuple[Shard, ...]] = []

    def seen_by(self, broker: int) -> tuple[Shard, ...]:
        """All shards, as broker ``broker`` (counted from 0) sees them."""
        leaders = self._brokers.offsets_leaders()
        if leaders is not self._leaders:
            self._leaders = leaders
            self._seen = [self._as_seen_by(broker_id, leaders) for broker_id in self._brokers.ids()]
        return self._seen[broker]

    def _as_seen_by(self, broker_id: int, leaders: tuple[int, ...]) -> tuple[Shard, ...]:
        # A shard whose partition is nowhere refuses by itself.
        return tuple(
            shard if shard.partition >= len(leaders) or leaders[shard.partition] == broker_id else elsewhere
            for shard, elsewhere in zip(self._shards, self._elsewhere, strict=True)
        )

    def coordinator_of(self, partition: int) -> Address | None:
        """The broker that coordinates the groups of ``partition``, if there is one."""
        leaders = self._brokers.offsets_leaders()
        return self._brokers.address(leaders[partition]) if partition < len(leaders) else None
