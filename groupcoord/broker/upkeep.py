"""What a broker does now and then: delete old segments, and forget producers that have not been heard of.

The timers run only while there is something to look after, so that an idle broker has no deadlines.
Source: ``LogManager.cleanupLogs`` and ``UnifiedLog``'s ``producerExpireCheck``.
"""

from collections.abc import Callable, Iterable

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.config.settings import BrokerConfig
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.core.turn import Turn

PRODUCER_CHECK_INTERVAL_MS = 600_000
"""Kafka's producer.id.expiration.check.interval.ms, an internal property that nobody sets."""

_RETENTION = TimerKey("retention", "logs")
_PRODUCERS = TimerKey("expiration", "producers")


class Upkeep:
    """The timers over ``logs``. ``config`` is asked each time, because it may change while the broker runs."""

    def __init__(
        self, timers: Timers, config: Callable[[], BrokerConfig], logs: Callable[[], Iterable[PartitionLog]]
    ) -> None:
        self._timers = timers
        self._config = config
        self._logs = logs

    def appended(self, log: PartitionLog, now_ms: int) -> None:
        """There is something in ``log``: see to it that it is looked after."""
        if _RETENTION not in self._timers:
            self._schedule_retention(now_ms)
        if len(log.producers) and _PRODUCERS not in self._timers:
            self._schedule_producers(now_ms)

    def _schedule_retention(self, now_ms: int) -> None:
        self._timers.schedule(_RETENTION, now_ms + self._config().log_retention_check_interval_ms, self._retain)

    def _schedule_producers(self, now_ms: int) -> None:
        self._timers.schedule(_PRODUCERS, now_ms + PRODUCER_CHECK_INTERVAL_MS, self._forget)

    def _retain(self, turn: Turn) -> None:
        logs = list(self._logs())
        for log in logs:
            log.apply_retention(turn.now_ms)
        if any(log.size for log in logs):
            self._schedule_retention(turn.now_ms)

    def _forget(self, turn: Turn) -> None:
        logs = list(self._logs())
        for log in logs:
            log.producers.expire(turn.now_ms, self._config().producer_id_expiration_ms)
        if any(len(log.producers) for log in logs):
            self._schedule_producers(turn.now_ms)
