"""Where a local stand-in wants something else than Kafka's default, and why; ``serve --help`` and the docs show it.

These behave like lines of a ``server.properties`` that every start reads first: DescribeConfigs shows them as static,
with Kafka's default behind.
"""

from typing import NamedTuple


class DefaultOverride(NamedTuple):
    """``name`` is ``value`` here, for this ``reason``, unless it is configured."""

    name: str
    value: str
    reason: str


_EVER = (
    DefaultOverride("process.roles", "broker,controller", "Kafka has no default for it; this is a lone node"),
    DefaultOverride("node.id", "1", "Kafka has no default for it"),
    DefaultOverride(
        "controller.listener.names", "CONTROLLER", "Kafka has no default for it; no controller can be reached here"
    ),
    DefaultOverride("listeners", "PLAINTEXT://127.0.0.1:9092", "nobody but this machine should reach a stand-in"),
    DefaultOverride(
        "socket.listen.backlog.size",
        "1024",
        "one thread both accepts and serves; a client that finds no place to wait tries again a second later",
    ),
)
"""With any number of brokers."""

_REPLICAS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
}
"""Kafka's defaults for how many replicas its own topics have, and how many of them have to be in sync."""

DEFAULTS = (*_EVER, *(DefaultOverride(name, "1", "there is one broker") for name in _REPLICAS))
"""With one broker."""

DEV_DEFAULTS = (
    DefaultOverride(
        "group.initial.rebalance.delay.ms", "0", "the first member of a group should not wait three seconds for others"
    ),
    DefaultOverride(
        "group.min.session.timeout.ms", "100", "a test that waits for a session to run out should not wait six seconds"
    ),
)


def defaults_for(brokers: int) -> tuple[DefaultOverride, ...]:
    """The stand-ins where there are so many brokers: Kafka's own topics have Kafka's replicas as soon as that is possible."""
    if brokers == 1:
        return DEFAULTS
    too_many = [name for name, kafkas in _REPLICAS.items() if kafkas > brokers]
    return (*_EVER, *(DefaultOverride(name, str(brokers), f"there are {brokers} brokers") for name in too_many))
