"""Decides of each append of the coordinator whether it is stored, held or failed; without rules it is stored at once.

Kafka writes to its own disk at once and answers when the other replicas have it too, which may take long; or the write fails.
So it is here where followers are behind (see ``broker/followers.py``); a gate stands for all of that where a test wants it.
Appends of one partition are stored in their order: what comes behind an append that is held is held, too, and if that fails, so
does it, because it builds on it.

In Kafka a record is in the leader's log while other replicas do not have it; what a gate holds is in the log when it is
released. No client can see that: nobody may fetch beyond the high watermark. If the coordinator moves meanwhile, the record is
lost, as in Kafka when the new leader is a replica that did not have it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Protocol

from groupcoord.broker.broker import Broker
from groupcoord.broker.partition_log import PartitionLog
from groupcoord.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from groupcoord.coordinator.runtime.shard import Shard
from groupcoord.core.effects import Append, Effect
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.batches.record_batch import BatchError
from groupcoord.protocol.errors import ErrorCode

STORE: Final = "store"
"""Let the append be stored now, or as soon as what is before it in its partition is."""
HOLD: Final = "hold"
"""Let the append wait until ``release`` or ``fail`` is called, as if other replicas did not have it yet."""

_WRITE: Final = "write"
"""The disk of the leader is slow: the append is stored when its time is over."""

AppendDecision = Literal["store", "hold"] | ErrorCode
"""An ErrorCode is the error of the log, as a broker's log would say it; what a client is told instead is in errors.py.

Those that Kafka has a translation for are UNKNOWN_TOPIC_OR_PARTITION, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER,
KAFKA_STORAGE_ERROR, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_FETCH_SIZE and NETWORK_EXCEPTION. Others go as they are.
"""

_Decision = AppendDecision | Literal["write"]


class AppendGate(Protocol):
    """Decides about each append."""

    def __call__(self, append: Append, now_ms: int, /) -> AppendDecision:
        """What to do with ``append``; the keys of its records say which groups it is of."""


class Appends:
    """Carries appends to the log. ``gate`` may be set and taken away at any time; None: everything is stored at once.

    ``carry`` does with the effects that follow from ``release`` and ``fail`` what is done with those of a call.
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
        """Store ``append``, or do what the gate says. Appends among the effects are to be submitted after those before them."""
        if not self._shard(append).awaits(append.append_id):
            return []  # an earlier one of the same call failed
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
        """The appends that are not stored yet, those of each partition in order."""
        for topic, partition in list(self._waiting):
            for append, _ in self._queue(topic, partition):
                yield append

    def is_under_way(self, append: Append) -> bool:
        """Is a held append being written to a slow disk, and not held by the gate? Raises KeyError if it is not held."""
        return self._queue(append.topic, append.partition)[self._place(append)][1] == _WRITE

    def release(self, append: Append, now_ms: int) -> list[Effect]:
        """Let a held append be stored, as soon as those before it are. Raises KeyError if it is not held."""
        queue = self._queue(append.topic, append.partition)
        queue[self._place(append)] = append, STORE
        effects: list[Effect] = []
        while queue and queue[0][1] == STORE:
            first, _ = queue.pop(0)
            effects += self._store(first, now_ms)
            queue = self._queue(append.topic, append.partition)
        return self._carry(effects, now_ms)

    def fail(self, append: Append, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Let a held append fail with ``error``, and with it those behind it. Raises KeyError if it is not held."""
        del self._queue(append.topic, append.partition)[self._place(append) :]
        self._queue(append.topic, append.partition)
        return self._carry(self._failed(append, error, now_ms), now_ms)

    def _writes(self, append: Append, now_ms: int) -> bool:
        """Does it take time to store ``append``? Then it is stored when that is over, unless its coordinator is gone."""
        leader = self._broker.topics[append.topic].metadata.leaders[append.partition]
        if not self._broker.disks.takes_time(leader):
            return False

        def written(later: HandlerContext) -> None:
            if self._shard(append).awaits(append.append_id):
                later.effects += self.release(append, later.now_ms)

        self._broker.disks.write(now_ms, leader, f"{append.topic}-{append.partition}", written)
        return True

    def _queue(self, topic: str, partition: int) -> list[tuple[Append, _Decision]]:
        """The appends that wait in ``partition``, without those whose coordinator has moved or is gone."""
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
        """``append`` is the last in ``log``: it is done when all replicas in sync have it."""

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
