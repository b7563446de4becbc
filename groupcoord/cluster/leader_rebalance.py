"""Automatic preferred leader election (auto.leader.rebalance.enable), every ``leader.imbalance.check.interval.seconds``.

Sources: ``QuorumController``, whose periodic task is ``electPreferred``; ``ReplicationControlManager``.
"""

from collections.abc import Callable

from groupcoord.broker.broker import Broker
from groupcoord.broker.topic_store import Topic
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.timers import TimerKey, Timers

_KEY = TimerKey("leader rebalance", "controller")

ElectPreferred = Callable[[HandlerContext, Topic, int], None]
"""Elects the preferred replica of a partition, if it can lead."""


class LeaderRebalance:
    """The partitions that may not have their preferred leader after a change of brokers or replicas."""

    def __init__(self, broker: Broker, timers: Timers, elect_preferred: ElectPreferred, now_ms: int) -> None:
        self._broker, self._timers, self._elect_preferred = broker, timers, elect_preferred
        self._started_ms = now_ms
        self._imbalanced: dict[tuple[Topic, int], None] = {}

    def note(self, topic: Topic, partition: int) -> None:
        """Record that the partition may not have its preferred leader."""
        state = topic.metadata.partitions[partition]
        if state.leader == state.replicas[0]:
            self._imbalanced.pop((topic, partition), None)
        else:
            self._imbalanced[topic, partition] = None

    def schedule(self, now_ms: int) -> None:
        """Schedule the next check, at a multiple of the interval since the start, if there is anything to check."""
        config, cluster = self._broker.config, self._broker.cluster
        if len(cluster) > 1 and config["auto.leader.rebalance.enable"] and (self._imbalanced or cluster.fenced):
            interval_ms = int(str(config["leader.imbalance.check.interval.seconds"])) * 1000
            due_ms = now_ms + interval_ms - (now_ms - self._started_ms) % interval_ms
            self._timers.schedule(_KEY, due_ms, self._rebalance)

    def controller_leaves(self) -> None:
        """Stop checking until ``schedule`` is called."""
        self._timers.cancel(_KEY)

    def controller_started(self, now_ms: int) -> None:
        """Count the intervals from now on."""
        self._started_ms = now_ms

    def _rebalance(self, ctx: HandlerContext) -> None:
        for topic, partition in list(self._imbalanced):
            if self._broker.topics.get(topic.name) is topic:
                self._elect_preferred(ctx, topic, partition)
            else:
                del self._imbalanced[topic, partition]
        self.schedule(ctx.now_ms)
