"""The broker configs under which stories are played. Each set needs a broker of its own, so there are few."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NO_RETENTION = {"log.initial.task.delay.ms": "86400000"}
"""Records that a story dates years back are not to vanish at the moment, half a minute after the start of a broker and then
every five minutes, at which old segments are deleted."""


@dataclass(frozen=True)
class Settings:
    """``properties`` are broker properties under Kafka's names; everything else is Kafka's default."""

    name: str
    why: str
    properties: Mapping[str, str] = field(default_factory=dict)


FAST = Settings(
    "fast",
    "no initial rebalance delay, and short session timeouts are allowed: most stories use these",
    {
        **NO_RETENTION,
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "10",
        "group.max.session.timeout.ms": "600000",
    },
)
SLOW_START = Settings(
    "slow-start",
    "an initial rebalance delay of two seconds, at most three members, small limits for messages, no automatic topics",
    {
        **NO_RETENTION,
        "group.initial.rebalance.delay.ms": "2000",
        "group.min.session.timeout.ms": "10",
        "group.max.size": "3",
        "offset.metadata.max.bytes": "16",
        "auto.create.topics.enable": "false",
        "message.max.bytes": "2000",
        "num.partitions": "3",
        "socket.request.max.bytes": "20000",
    },
)
SHORT_MEMORY = Settings(
    "short-memory",
    "offsets expire after a minute, checked every 300 ms; session bounds are Kafka's defaults",
    {
        **NO_RETENTION,
        "group.initial.rebalance.delay.ms": "0",
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "300",
    },
)
AT_ONCE = {
    **NO_RETENTION,
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "10",
    "group.max.session.timeout.ms": "600000",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.min.heartbeat.interval.ms": "10",
    "group.consumer.max.heartbeat.interval.ms": "60000",
    "group.consumer.assignment.interval.ms": "0",
}
"""Consumer groups whose answers do not depend on time: each heartbeat computes the assignment that it asks for."""

CONSUMERS = Settings(
    "consumers",
    "assignments of consumer groups are computed at once, and short session timeouts are allowed",
    AT_ONCE,
)
UPGRADE_ONLY = Settings(
    "upgrade-only",
    "classic groups can become consumer groups, not the other way round; at most three members; range is the first assignor",
    {
        **AT_ONCE,
        "group.consumer.migration.policy": "upgrade",
        "group.consumer.max.size": "3",
        "group.max.size": "4",
        "group.consumer.assignors": "range,uniform",
    },
)
DOWNGRADE_ONLY = Settings(
    "downgrade-only",
    "consumer groups can become classic groups, not the other way round; classic groups have at most two members",
    {**AT_ONCE, "group.consumer.migration.policy": "downgrade", "group.max.size": "2"},
)
NO_MIGRATION = Settings(
    "no-migration",
    "no group can change its type",
    {**AT_ONCE, "group.consumer.migration.policy": "disabled"},
)
CLASSIC_ONLY = Settings(
    "classic-only",
    "consumer groups are not enabled",
    {**NO_RETENTION, "group.initial.rebalance.delay.ms": "0", "group.coordinator.rebalance.protocols": "classic"},
)
SHORT_TRANSACTIONS = Settings(
    "short-transactions",
    "transactions are aborted as soon as they time out, and transactional ids expire after fifteen seconds",
    {
        **NO_RETENTION,
        "group.initial.rebalance.delay.ms": "0",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        "transactional.id.expiration.ms": "15000",
        "transaction.max.timeout.ms": "120000",
    },
)
FEATURES = Settings(
    "features",
    "the levels of features change; transactions are aborted as soon as they time out",
    {**AT_ONCE, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"},
)
ALL = (
    FAST,
    SLOW_START,
    SHORT_MEMORY,
    CONSUMERS,
    UPGRADE_ONLY,
    DOWNGRADE_ONLY,
    NO_MIGRATION,
    CLASSIC_ONLY,
    SHORT_TRANSACTIONS,
    FEATURES,
)
