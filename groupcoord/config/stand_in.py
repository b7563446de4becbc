"""Where a local stand-in wants something else than Kafka's default, and why; ``serve --help`` and the docs show it.

These behave like lines of a ``server.properties`` that every start reads first: DescribeConfigs shows them as static,
with Kafka's default behind.
"""

from typing import NamedTuple


class StandIn(NamedTuple):
    """``name`` is ``value`` here, for this ``reason``, unless it is configured."""

    name: str
    value: str
    reason: str


_ONE_BROKER = "there is one broker"

DEFAULTS = (
    StandIn("process.roles", "broker,controller", "Kafka has no default for it; this is a lone node"),
    StandIn("node.id", "1", "Kafka has no default for it"),
    StandIn(
        "controller.listener.names", "CONTROLLER", "Kafka has no default for it; no controller can be reached here"
    ),
    StandIn("listeners", "PLAINTEXT://127.0.0.1:9092", "nobody but this machine should reach a stand-in"),
    StandIn(
        "socket.listen.backlog.size",
        "1024",
        "one thread both accepts and serves; a client that finds no place to wait tries again a second later",
    ),
    StandIn("offsets.topic.replication.factor", "1", _ONE_BROKER),
    StandIn("transaction.state.log.replication.factor", "1", _ONE_BROKER),
    StandIn("transaction.state.log.min.isr", "1", _ONE_BROKER),
    StandIn("share.coordinator.state.topic.replication.factor", "1", _ONE_BROKER),
    StandIn("share.coordinator.state.topic.min.isr", "1", _ONE_BROKER),
    StandIn(
        "log.retention.bytes",
        "134217728",
        "logs live in memory: 128 MiB of each partition, so that none eats the machine",
    ),
    StandIn(
        "log.segment.bytes",
        "16777216",
        "retention deletes whole segments, so that they have to be smaller than the log",
    ),
)

DEV_DEFAULTS = (
    StandIn(
        "group.initial.rebalance.delay.ms", "0", "the first member of a group should not wait three seconds for others"
    ),
    StandIn(
        "group.min.session.timeout.ms", "100", "a test that waits for a session to run out should not wait six seconds"
    ),
)
