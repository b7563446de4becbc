"""Writes the coordinators' appends to their logs (``CoordinatorPartitionWriter``). A gate can hold or fail them, for tests.

In Kafka a coordinator's append is complete when all in-sync replicas have it, which may take long; or the write fails. Here it
is complete at once unless followers are behind (see ``broker/high_watermarks.py``); with a gate a test makes any append slow
(it is held) or lets it fail. The appends of a partition keep their order: those behind a held append are held, too, and fail
with it, because they build on it.

One difference: Kafka writes the records to the leader's log first and then waits for the other replicas. Here a held append is
written when it is released. Clients cannot see this, as nobody reads beyond the high watermark. If the coordinator moves
meanwhile, the append is lost, as in Kafka if the new leader did not have it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Protocol

from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.shard import Shard
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Append, Effect
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode

STORE: Final = "store"
"""Write the append, after those before it in its partition."""
HOLD: Final = "hold"
"""Hold the append until ``release`` or ``fail`` is called, as if other replicas did not have it yet."""

_WRITE: Final = "write"
"""Internal: the leader's disk is slow, and the append is written after a delay."""

AppendDecision = Literal["store", "hold"] | ErrorCode
"""An ErrorCode is the error of the log, as from a broker's log; errors.py has what a client gets instead.

Kafka translates UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_FETCH_SIZE and NETWORK_EXCEPTION. Others are passed on unchanged.
"""

_Decision = AppendDecision | Literal["write"]


class AppendGate(Protocol):
    """A callback that decides about each append."""

    def __call__(self, append: Append, now_ms: int, /) -> AppendDecision:
        """The decision about ``append``; the keys of its records tell the groups."""


class CoordinatorPartitionWriter:
    """Writes appends to the log. ``gate`` can be set and removed at any time; None: everything is written at once.

    ``carry`` executes the effects of ``release`` and ``fail`` as those of a request.
    """

    def __init__(
        self,
        broker: Broker,
        runtimes: Iterable[CoordinatorRuntime[Any]],
        carry: Callable[[list[Effect], int], list[Effect]],
    ) -> None:
        self.gate: AppendGate | None = None
        self._broker, self._carry = broker, carry
        self._runtimes = {runtime.topic: runtime for runtime in runtimes}
        self._waiting: dict[tuple[str, int], list[tuple[Append, _Decision]]] = {}

    def submit(self, append: Append, now_ms: int) -> list[Effect]:
        """Write ``append``, or do as the gate decides. Appends among the effects must be submitted after the earlier ones."""
        if not self._shard(append).awaits(append.append_id):
            return []  # an earlier append of the same call has failed
        gate = self.gate
        if gate is None and not self._waiting and not self._broker.disks:
            return self._store(append, now_ms)
        decision: _Decision = STORE if gate is None else gate(append, now_ms)
        if isinstance(decision, ErrorCode):
            return self._failed(append, decision, now_ms)
        if decision == STORE and self._writes(append, now_ms):
            decision = _WRITE
        ahead = self._queue(append.topic, append.partition)
        if decision == STORE and not ahead:
            return self._store(append, now_ms)
        self._waiting[append.topic, append.partition] = [*ahead, (append, decision)]
        self._shard(append).append_held(append.append_id)
        return []

    def held(self) -> Iterator[Append]:
        """The appends that are not written yet, in order within each partition."""
        for topic, partition in list(self._waiting):
            for append, _ in self._queue(topic, partition):
                yield append

    def is_under_way(self, append: Append) -> bool:
        """Is the append being written to a slow disk, and not held by the gate? Raises KeyError if it is not held."""
        return self._queue(append.topic, append.partition)[self._place(append)][1] == _WRITE

    def release(self, append: Append, now_ms: int) -> list[Effect]:
        """Write a held append, after those before it. Raises KeyError if it is not held."""
        queue = self._queue(append.topic, append.partition)
        queue[self._place(append)] = append, STORE
        effects: list[Effect] = []
        while queue and queue[0][1] == STORE:
            first, _ = queue.pop(0)
            effects += self._store(first, now_ms)
            queue = self._queue(append.topic, append.partition)
        return self._carry(effects, now_ms)

    def fail(self, append: Append, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Fail a held append with ``error``, and those behind it. Raises KeyError if it is not held."""
        del self._queue(append.topic, append.partition)[self._place(append) :]
        self._queue(append.topic, append.partition)
        return self._carry(self._failed(append, error, now_ms), now_ms)

    def _writes(self, append: Append, now_ms: int) -> bool:
        """Start the write to a slow disk, if the disk is slow; returns whether it is."""
        leader = self._broker.topics[append.topic].metadata.leaders[append.partition]
        if not self._broker.disks.takes_time(leader):
            return False

        def written(later: HandlerContext) -> None:
            if self._shard(append).awaits(append.append_id):
                later.effects += self.release(append, later.now_ms)

        self._broker.disks.write(now_ms, leader, f"{append.topic}-{append.partition}", written)
        return True

    def _queue(self, topic: str, partition: int) -> list[tuple[Append, _Decision]]:
        """The appends that wait in ``partition``, without those whose coordinator has moved or stopped."""
        queue = self._waiting.get((topic, partition), [])
        queue[:] = [entry for entry in queue if self._shard(entry[0]).awaits(entry[0].append_id)]
        if not queue:
            self._waiting.pop((topic, partition), None)
        return queue

    def _place(self, append: Append) -> int:
        for place, (held, _) in enumerate(self._queue(append.topic, append.partition)):
            if held.append_id == append.append_id:
                return place
        raise KeyError(f"append {append.append_id} is not held")

    def _store(self, append: Append, now_ms: int) -> list[Effect]:
        topic, partition, marker = append.topic, append.partition, append.marker
        try:
            if marker is not None:
                stored = self._broker.append_marker(topic, partition, marker, now_ms)
            else:
                records = [encoded for _, _, encoded in append.records]
                stored = self._broker.append_to(
                    topic,
                    partition,
                    records,
                    now_ms,
                    producer_id=append.producer_id,
                    producer_epoch=append.producer_epoch,
                )
        except BatchError as problem:
            return self._failed(append, problem.error, now_ms)
        log = self._broker.existing_log(topic, partition)
        if log.high_watermark < log.log_end_offset:
            self._wait_for_followers(append, log)
            return stored
        return stored + self._runtimes[append.topic].appended(append, now_ms)

    def _wait_for_followers(self, append: Append, log: PartitionLog) -> None:
        """Complete ``append``, the last one in ``log``, when all in-sync replicas have it."""

        def replicated(ctx: HandlerContext, error: ErrorCode) -> None:
            if self._shard(append).awaits(append.append_id):
                if error is ErrorCode.NONE:
                    ctx.effects += self._runtimes[append.topic].appended(append, ctx.now_ms)
                else:
                    ctx.effects += self._failed(append, error, ctx.now_ms)

        self._shard(append).append_held(append.append_id)
        self._broker.high_watermarks.wait(log, log.log_end_offset, replicated)

    def _failed(self, append: Append, error: ErrorCode, now_ms: int) -> list[Effect]:
        return self._runtimes[append.topic].append_failed(append, error, now_ms)

    def _shard(self, append: Append) -> Shard[Any]:
        return self._runtimes[append.topic].shards[append.partition]
