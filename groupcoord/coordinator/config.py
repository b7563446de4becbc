"""What the group coordinator is given: its settings, whose names are Kafka's broker properties with underscores, and topics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Defaults are Kafka's; times in milliseconds unless the name says minutes."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_version: int = 1  # the level of that feature
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    group_coordinator_append_linger_ms: int = -1
    offsets_topic_num_partitions: int = 50
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    # What FindCoordinator answers: this broker, as each of its listeners advertises it (host and port).
    node_id: int = 1
    addresses: tuple[tuple[str, int] | None, ...] = (("127.0.0.1", 9092),)

    @property
    def serves_consumer_groups(self) -> bool:
        """Is the protocol of KIP-848 enabled, and the feature that it needs (``isConsumerGroupProtocolEnabled``)?"""
        return self.group_version >= 1 and "consumer" in self.group_coordinator_rebalance_protocols

    @property
    def offsets_retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000


# How long a member that joins for the first time may stay parked before it is thrown out: it cannot send heartbeats yet,
# and a client that has gone would otherwise hold the group up (a constant in Kafka's ``GroupCoordinatorConfig``).
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
