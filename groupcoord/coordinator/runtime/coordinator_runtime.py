"""CoordinatorRuntime: the shards of one coordinator's topic; looks them up by key, flushes, loads and unloads them."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic

from groupcoord.coordinator.runtime.append_queue import AppendSettings
from groupcoord.coordinator.runtime.coordinator_shard import M
from groupcoord.coordinator.runtime.shard import MachineFactory, Shard, ShardState
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, Effect
from groupcoord.core.java_hash_order import partition_for
from groupcoord.core.timers import Timers
from groupcoord.protocol.errors import ErrorCode


class CoordinatorRuntime(Generic[M]):
    """The ``partitions`` shards of ``topic``; the hash of a key selects its shard."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        timers: Timers,
        new_machine: MachineFactory[M],
        settings: AppendSettings,
    ) -> None:
        self.topic = topic
        next_append_id = count(1).__next__
        self._new_shard: Callable[[int], Shard[M]] = lambda partition: Shard(
            topic, partition, timers, new_machine, settings, next_append_id
        )
        self.shards = tuple(map(self._new_shard, range(partitions)))
        self.open_shards: list[Shard[M]] = []
        """Shards with batches that wait for ``flush``."""
        self.deleted: set[int] = set()
        """Partitions that were deleted, and are not there again."""
        for shard in self.shards:
            shard.on_open = self.open_shards.append

    def shard_of(self, key: str) -> Shard[M]:
        """The shard of ``key``, by its hash."""
        return self.shards[partition_for(key, len(self.shards))]

    def machines(self) -> Iterator[M]:
        """The state machines that may have state, without creating those of partitions that never had any."""
        return (shard.machine for shard in self.shards if not shard.is_empty)

    # --- appends

    def flush(self, ctx: HandlerContext) -> None:
        """Append the open batch of each shard."""
        shards = self.open_shards[:]
        self.open_shards.clear()
        for shard in shards:
            shard.flush(ctx)

    def appended(self, append: Append, now_ms: int) -> list[Effect]:
        """``append`` is stored: complete its waiting writes."""
        return self.shards[append.partition].appended(append.append_id, now_ms)

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> list[Effect]:
        """``append`` failed with ``error``: undo and fail its writes."""
        return self.shards[append.partition].append_failed(append.append_id, error, now_ms)

    # --- loading and unloading

    def load(self, partition: int, ctx: HandlerContext) -> ShardLoader[M]:
        """Begin to load ``partition``: the caller reads its log and passes the records to the loader."""
        self.deleted.discard(partition)
        return ShardLoader(self.shards[partition], ctx)

    def resign(self, partition: int, ctx: HandlerContext) -> None:
        """Unload ``partition``: another broker leads it, until ``load``."""
        self.deleted.discard(partition)
        self.shards[partition].unload(ctx, f"another broker has partition {partition} of {self.topic}")

    def topic_deleted(self, ctx: HandlerContext) -> None:
        """The topic was deleted: unload all shards; see ``topic_created``."""
        for shard in self.shards:
            self.deleted.add(shard.partition)
            shard.unload(ctx, f"there is no partition {shard.partition} of {self.topic}")

    def topic_created(self, partitions: int) -> None:
        """The topic has ``partitions`` partitions now: activate their deleted shards, with empty state."""
        for partition in sorted(self.deleted):
            if partition < partitions:
                self.deleted.discard(partition)
                shard = self.shards[partition]
                shard.activate(shard.new_machine(), 0)

    def shard_elsewhere(self, partition: int) -> Shard[M]:
        """A shard that refuses every request, because another broker leads ``partition``."""
        shard = self._new_shard(partition)
        shard.deactivate(ShardState.UNLOADED, f"another broker has partition {partition} of {self.topic}")
        return shard
