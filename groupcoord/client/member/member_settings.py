"""The settings of a group member, which the consumer and other drivers derive from theirs (``GroupRebalanceConfig``)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """The settings of one member; times are milliseconds. Raises ValueError for settings that can never work."""

    group_id: str
    """"" for a consumer that is in no group: its member never joins."""
    instance_id: str | None = None
    """``group.instance.id``: makes it a static member, which keeps its partitions while it restarts (KIP-345)."""
    rack_id: str | None = None
    """``client.rack``: assignors and leaders prefer replicas in the same rack (KIP-881, KIP-392)."""
    session_timeout_ms: int = 45_000
    """The coordinator removes the member after so long without a heartbeat."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """The member leaves if the user does not poll for so long; also the rebalance timeout."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = True
    """Are positions committed before partitions are revoked?"""
    remote_assignor: str | None = None
    """``group.remote.assignor``: the server-side assignor, for the consumer protocol."""

    def __post_init__(self) -> None:
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
