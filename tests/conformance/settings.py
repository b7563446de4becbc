"""The few broker settings that the stories need; each needs a broker of its own, so there are only these."""

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
ALL = (FAST, SLOW_START, SHORT_MEMORY)
