"""The fetch purgatory: fetches wait here until an append satisfies them, they time out, or one of their partitions is deleted.

A waiting fetch holds no data, only its offsets. Source: ``DelayedFetch`` and ``DelayedOperationPurgatory``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from groupcoord.broker.partition_log import LogOffsetMetadata, PartitionLog
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.timers import TimerKey, Timers

# Deviation (bounded-memory): see broker/topic_config.py
MAX_DELAYED_FETCHES = 65_536
"""The fetch of a disconnected client waits on, for weeks if max.wait.ms says so. There can be as many as there can be
connections; beyond that the oldest is answered with what there is. Kafka has no such limit."""

_TOO_MANY = TimerKey("fetch", "purgatory")


@dataclass(frozen=True, slots=True)
class WatchedPartition:
    """One partition of a waiting fetch: its start offset, and how many of its bytes count at most.

    ``committed_only``: only bytes before the last stable offset count.
    """

    log: PartitionLog
    start: LogOffsetMetadata
    max_bytes: int
    committed_only: bool = False

    @property
    def end(self) -> LogOffsetMetadata:
        """The end of what the fetch may read."""
        return self.log.last_stable_position if self.committed_only else self.log.high_watermark_position


@dataclass(frozen=True, slots=True)
class DelayedFetch:
    """A waiting fetch: ``answer`` is called once there are ``min_bytes`` over all its partitions, or when it ``fails``."""

    call: Call
    watched: tuple[WatchedPartition, ...]
    min_bytes: int
    answer: Callable[[HandlerContext], None]
    fails: Callable[[], bool] = lambda: False

    def satisfied(self) -> bool:
        """Is there enough to reply? Also if the fetch reads an older segment than the last, as in Kafka.

        Also if it starts behind the end of what it may read.
        """
        if self.fails():
            return True
        available = 0
        for partition in self.watched:
            start, end = partition.start, partition.end
            if start.offset > end.offset:
                return True
            if start.offset < end.offset:
                if start.segment < end.segment:
                    return True
                available += min(end.byte - start.byte, partition.max_bytes)
        return available >= self.min_bytes


class FetchPurgatory:
    """All waiting fetches."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._delayed: dict[TimerKey, DelayedFetch] = {}
        self._watchers: dict[PartitionLog, dict[TimerKey, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._delayed)

    def watch(self, fetch: DelayedFetch, until_ms: int) -> None:
        """Let ``fetch`` wait until ``until_ms`` at most."""
        self._count += 1
        key = TimerKey("fetch", f"connection {fetch.call.connection_id}", f"fetch {self._count}")
        self._delayed[key] = fetch
        for partition in fetch.watched:
            self._watchers.setdefault(partition.log, {})[key] = None
        self._timers.schedule(key, until_ms, lambda ctx: self._answer(ctx, key))
        if len(self._delayed) > MAX_DELAYED_FETCHES:
            self._timers.schedule(_TOO_MANY, 0, self._let_go)

    def _let_go(self, ctx: HandlerContext) -> None:
        while len(self._delayed) > MAX_DELAYED_FETCHES:
            self._answer(ctx, next(iter(self._delayed)))

    def appended(self, ctx: HandlerContext, log: PartitionLog) -> None:
        """``log`` has grown: answer the fetches that now have enough."""
        for key in tuple(self._watchers.get(log, ())):
            if self._delayed[key].satisfied():
                self._answer(ctx, key)

    def leader_moved(self, ctx: HandlerContext, log: PartitionLog, leader: int) -> None:
        """Broker ``leader`` leads ``log`` now: answer the fetches that fail at other brokers.

        As in Kafka, fetches that wait at the new leader are checked with the next append.
        """
        for key in tuple(self._watchers.get(log, ())):
            if self._delayed[key].call.broker != leader and self._delayed[key].fails():
                self._answer(ctx, key)

    def logs_deleted(self, ctx: HandlerContext, logs: Iterable[PartitionLog]) -> None:
        """``logs`` were deleted: answer every fetch that waits for one of them."""
        for log in logs:
            for key in tuple(self._watchers.get(log, ())):
                self._answer(ctx, key)

    def _answer(self, ctx: HandlerContext, key: TimerKey) -> None:
        fetch: Any = self._delayed.pop(key)
        self._timers.cancel(key)
        for partition in fetch.watched:
            watchers = self._watchers[partition.log]
            del watchers[key]
            if not watchers:
                del self._watchers[partition.log]
        fetch.answer(ctx)
