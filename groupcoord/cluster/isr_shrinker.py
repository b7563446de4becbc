"""Removes followers from the ISR that have not caught up with their leader for ``replica.lag.time.max.ms``.

Only the controller can change the ISR. While it is down, leaders retry AlterPartition, and the change is made when it is back.
As in Kafka, the lag is checked every half of ``replica.lag.time.max.ms``. Source: ``ReplicaManager.maybeShrinkIsr``,
``Partition``, ``DefaultAlterPartitionManager``.
"""

from collections.abc import Callable, Collection

from groupcoord.broker.broker import Broker
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.timers import TimerKey, Timers

DropFromIsr = Callable[[HandlerContext, Topic, int, Collection[int]], None]
"""Called with a partition and the followers to remove from its ISR."""


class IsrShrinker:
    """Checks the followers that cannot replicate or have slow disks; here every other follower is always caught up."""

    def __init__(self, broker: Broker, timers: Timers, fetcher: ReplicaFetcher, drop: DropFromIsr) -> None:
        self._broker, self._timers, self._fetcher, self._drop = broker, timers, fetcher, drop
        self._behind_since_ms: dict[int, int] = {}
        """Since when (ms) brokers cannot replicate from all others."""

    def cannot_copy(self, broker_id: int, since_ms: int) -> None:
        """A broker cannot replicate from all others since that time."""
        self._behind_since_ms.setdefault(broker_id, since_ms)
        self.watch(broker_id, since_ms)

    def can_copy(self, broker_id: int) -> None:
        """A broker can replicate from all others again, or is fenced."""
        self._behind_since_ms.pop(broker_id, None)
        if not self._broker.disks.takes_time(broker_id):
            self._timers.cancel(self._key(broker_id))

    def watch(self, broker_id: int, since_ms: int) -> None:
        """Check a broker's lag ``replica.lag.time.max.ms`` after that time."""
        key = self._key(broker_id)
        if key not in self._timers:
            self._timers.schedule(key, since_ms + self._lag_ms, lambda due: self._look(due, broker_id))

    def drop_lagging(self, ctx: HandlerContext) -> None:
        """Remove all lagging followers from their ISRs now."""
        for topic in self._broker.topics.all():
            for partition, state in enumerate(topic.metadata.partitions):
                if self._broker.is_led(topic, partition):
                    lagging = {one for one in state.isr if self._has_lagged(topic, partition, one, ctx.now_ms)}
                    if lagging:
                        self._drop(ctx, topic, partition, lagging)

    def _look(self, ctx: HandlerContext, broker_id: int) -> None:
        if not self._is_watched(broker_id):
            return
        if self._broker.cluster.has_controller:
            self.drop_lagging(ctx)
        due_ms = ctx.now_ms + self._lag_ms // 2
        self._timers.schedule(self._key(broker_id), due_ms, lambda due: self._look(due, broker_id))

    def _is_watched(self, broker_id: int) -> bool:
        return broker_id in self._behind_since_ms or self._broker.disks.takes_time(broker_id)

    def _has_lagged(self, topic: Topic, partition: int, broker_id: int, now_ms: int) -> bool:
        if not self._is_watched(broker_id):
            return False
        copy = topic.copies[partition][broker_id]
        since_ms = self._fetcher.caught_up_ms(copy)
        if since_ms is None:
            since_ms = self._behind_since_ms.get(broker_id, now_ms)
        is_behind = copy.log_end_offset < topic.partitions[partition].log_end_offset
        return is_behind and since_ms <= now_ms - self._lag_ms

    @property
    def _lag_ms(self) -> int:
        return int(str(self._broker.config["replica.lag.time.max.ms"]))

    @staticmethod
    def _key(broker_id: int) -> TimerKey:
        return TimerKey("replica lag", f"broker {broker_id}")
