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
    "no initial delay and sessions as short as wanted: what most stories need",
    {
        **NO_RETENTION,
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "10",
        "group.max.session.timeout.ms": "600000",
    },
)
SLOW_START = Settings(
    "slow-start",
    "an initial delay of two seconds, groups of three at most, small limits for messages, no topics by accident",
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
    "offsets are forgotten after a minute and looked through every 300 ms; session bounds are Kafka's own",
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
    "consumer groups whose assignments are computed at once, with sessions as short as wanted",
    AT_ONCE,
)
UPGRADE_ONLY = Settings(
    "upgrade-only",
    "classic groups can become consumer groups, not the other way round; three members at most; range comes first",
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
    "consumer groups can become classic groups, and not the other way round; classic groups have two members at most",
    {**AT_ONCE, "group.consumer.migration.policy": "downgrade", "group.max.size": "2"},
)
NO_MIGRATION = Settings(
    "no-migration",
    "neither kind of group can become the other",
    {**AT_ONCE, "group.consumer.migration.policy": "disabled"},
)
CLASSIC_ONLY = Settings(
    "classic-only",
    "there are no consumer groups",
    {**NO_RETENTION, "group.initial.rebalance.delay.ms": "0", "group.coordinator.rebalance.protocols": "classic"},
)
SHORT_TRANSACTIONS = Settings(
    "short-transactions",
    "transactions that are too old are aborted at once, and transactional ids forgotten after fifteen seconds",
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
    "the levels of features change; transactions that are too old are aborted at once",
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
