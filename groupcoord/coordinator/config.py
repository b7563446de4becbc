"""CoordinatorConfig: the broker configs of the group coordinator (``GroupCoordinatorConfig``), with underscores for dots."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """The configs, with Kafka's defaults; times are milliseconds unless the name says minutes."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_version: int = 1  # the level of the feature
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    group_coordinator_append_linger_ms: int = -1
    offsets_topic_num_partitions: int = 50
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    # This broker in FindCoordinator responses: its id, and host and port that each listener advertises.
    node_id: int = 1
    addresses: tuple[tuple[str, int] | None, ...] = (("127.0.0.1", 9092),)

    @property
    def serves_consumer_groups(self) -> bool:
        """Are the consumer protocol (KIP-848) and its feature enabled (``isConsumerGroupProtocolEnabled``)?"""
        return self.group_version >= 1 and "consumer" in self.group_coordinator_rebalance_protocols

    @property
    def offsets_retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000


# How long the first JoinGroup of a member may wait before the member is removed: it cannot send heartbeats yet, and a dead
# client would otherwise delay the group (a constant in Kafka's ``GroupCoordinatorConfig``).
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
