"""Followers that have had less than their leader for ``replica.lag.time.max.ms``: they are not in sync any more.

Source: ``ReplicaManager.maybeShrinkIsr``, which looks twice in that time.
"""

from collections.abc import Callable

from groupcoord.broker.broker import Broker
from groupcoord.broker.topic_store import Topic
from groupcoord.cluster.replica_fetcher import ReplicaFetcher
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers


class ReplicaLag:
    """Watches followers that cannot copy, or have slow disks; all others have everything at once.

    ``drop`` is called with a partition and the follower that is to be no more in its ISR.
    """

    def __init__(
        self,
        broker: Broker,
        timers: Timers,
        fetcher: ReplicaFetcher,
        drop: Callable[[HandlerContext, Topic, int, int], None],
    ) -> None:
        self._broker, self._timers, self._fetcher, self._drop = broker, timers, fetcher, drop
        self._behind_since_ms: dict[int, int] = {}
        """Since when brokers cannot copy from all others."""

    def cannot_copy(self, ctx: HandlerContext, broker_id: int) -> None:
        """A broker copies nothing from now on, or not from all others."""
        self._behind_since_ms.setdefault(broker_id, ctx.now_ms)
        self.watch(ctx, broker_id)

    def can_copy(self, broker_id: int) -> None:
        """A broker can copy from all others again."""
        self._behind_since_ms.pop(broker_id, None)
        if not self._broker.disks.takes_time(broker_id):
            self._timers.cancel(self._key(broker_id))

    def watch(self, ctx: HandlerContext, broker_id: int) -> None:
        """Look from now on whether a broker keeps up."""
        key = self._key(broker_id)
        if key not in self._timers:
            self._timers.schedule(key, ctx.now_ms + self._lag_ms, lambda due: self._look(due, broker_id))

    def _look(self, ctx: HandlerContext, broker_id: int) -> None:
        if broker_id not in self._behind_since_ms and not self._broker.disks.takes_time(broker_id):
            return
        for topic in self._broker.topics.all():
            for partition, state in enumerate(topic.metadata.partitions):
                counts = broker_id in state.isr and self._broker.is_led(topic, partition)
                if counts and self._has_lagged(topic, partition, broker_id, ctx.now_ms):
                    self._drop(ctx, topic, partition, broker_id)
        due_ms = ctx.now_ms + self._lag_ms // 2
        self._timers.schedule(self._key(broker_id), due_ms, lambda due: self._look(due, broker_id))

    def _has_lagged(self, topic: Topic, partition: int, broker_id: int, now_ms: int) -> bool:
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
