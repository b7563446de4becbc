"""The settings of a member under Kafka's names and with Kafka's defaults, and exponential back-off (KIP-580)."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The settings of one member; times are milliseconds. Raises ValueError for what can never work."""

    group_id: str
    instance_id: str | None = None
    """``group.instance.id``: makes it a static member, which keeps its partitions while it restarts (KIP-345)."""
    rack_id: str | None = None
    """``client.rack``: assignors and leaders prefer what is near (KIP-881, KIP-392)."""
    session_timeout_ms: int = 45_000
    """Without a heartbeat for so long, the coordinator takes the member for dead."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """If the user does not ask for records for so long, the member leaves; so long a rebalance waits for the member, too."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = True
    """Are positions committed before partitions are revoked?"""

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("a group has a name that is not empty")
        if self.instance_id == "":
            raise ValueError("an instance id is not empty")
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms={self.heartbeat_interval_ms} must be above 0 and below "
                f"session_timeout_ms={self.session_timeout_ms}"
            )
        if self.max_poll_interval_ms <= 0 or self.request_timeout_ms <= 0:
            raise ValueError("max_poll_interval_ms and request_timeout_ms are above 0")
        if not 0 <= self.retry_backoff_ms <= self.retry_backoff_max_ms:
            raise ValueError(
                f"retry_backoff_ms={self.retry_backoff_ms} is between 0 and "
                f"retry_backoff_max_ms={self.retry_backoff_max_ms}"
            )


JITTER = 0.2
_ENOUGH_DOUBLINGS = 62


class ExponentialBackoff:
    """Waits from ``first_ms`` up to ``most_ms``, give or take a fifth; ``chance`` answers a number from 0 up to 1."""

    def __init__(self, first_ms: int, most_ms: int, chance: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._chance = chance

    def delay_ms(self, attempts: int) -> int:
        """The delay after ``attempts`` failures in a row, not counting the latest. Source: ``ExponentialBackoff``."""
        wait = min(self._first_ms << min(attempts, _ENOUGH_DOUBLINGS), self._most_ms)
        return round(wait * (1 + JITTER * (2 * self._chance() - 1)))
