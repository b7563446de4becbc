"""The definitions of all broker, topic, group and client-metrics configs: type, default, validator, documentation.

The command line, DescribeConfigs and the docs use them. A property that groupcoord implements has documentation of its own; one
without is *carried*: accepted, validated and returned by DescribeConfigs, without effect.

Configurations of groups and of client metrics subscriptions are dynamic only. Those of consumer groups apply; the others are
carried, because share groups, Streams groups and client telemetry are not served. Source: ``GroupConfig`` (KIP-848, KIP-932,
KIP-1071) and ``ClientMetricsConfigs`` (KIP-714).
"""

import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from groupcoord.config.broker_and_topic_properties import BROKER_ROWS, TOPIC_ROWS
from groupcoord.config.config_def import ConfigType, InvalidValueError, Validator, Value, read, validator
from groupcoord.config.property_documentation import BROKER_DOCUMENTATION, GROUP_DOCUMENTATION, TOPIC_DOCUMENTATION

_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000


class UpdateMode(enum.Enum):
    """How a broker property can be changed dynamically (``DynamicBrokerConfig``)."""

    NEVER = "-"
    ONE_BROKER = "broker"
    CLUSTER = "cluster"
    INTERNAL = "internal"  # not dynamic, and listed only when it is set


class Synonym(NamedTuple):
    """A broker property that provides the default of a topic property; its unit is ``factor`` units of the topic's."""

    name: str
    factor: int

    def convert(self, text: str) -> str:
        """The broker's text in the unit of the topic property."""
        return text if self.factor == 1 else str(int(text) * self.factor)


class Property(NamedTuple):
    """The definition of one property. ``default`` is text, or None; ``documentation`` is "" if it is only carried; one that is
    ``required`` has no default in Kafka."""

    name: str
    type: ConfigType
    validator_word: str
    default: str | None
    documentation: str
    change: UpdateMode = UpdateMode.CLUSTER
    synonyms: tuple[Synonym, ...] = ()
    required: bool = False

    @property
    def acts(self) -> bool:
        """Is it implemented here?"""
        return bool(self.documentation)

    @property
    def sensitive(self) -> bool:
        """Is its value a secret?"""
        return self.type is ConfigType.PASSWORD

    @property
    def validator(self) -> Validator:
        """The validator of its values."""
        return validator(self.validator_word)

    @property
    def expects(self) -> str:
        """Type and range as text: ``INT, at least 1``."""
        range_text = self.validator.expects
        return f"{self.type.name}, {range_text}" if range_text else self.type.name

    def parse(self, text: str) -> Value:
        """Parses and validates ``text``. Raises InvalidValueError, with Kafka's message."""
        value = read(self.name, self.type, text)
        return self.validator.check(self.name, value)

    def default_value(self) -> Value:
        """The parsed default."""
        return None if self.default is None else read(self.name, self.type, self.default)


def _broker_properties() -> Iterator[Property]:
    for row in BROKER_ROWS.splitlines():
        name, kind, word, change, default = row.split()
        yield Property(
            name,
            ConfigType[kind.upper()],
            word,
            _default(default),
            BROKER_DOCUMENTATION.get(name, ""),
            change=UpdateMode(change),
            required=default == "required",
        )


def _topic_properties() -> Iterator[Property]:
    for row in TOPIC_ROWS.splitlines():
        name, kind, word, default, *synonyms = row.split()
        yield Property(
            name,
            ConfigType[kind.upper()],
            word,
            _default(default),
            TOPIC_DOCUMENTATION.get(name, ""),
            change=UpdateMode.INTERNAL if name.startswith("internal.") else UpdateMode.CLUSTER,
            synonyms=tuple(map(_synonym, synonyms)),
        )


def _default(word: str) -> str | None:
    return {"null": None, "required": None, '""': ""}.get(word, word)


def _synonym(word: str) -> Synonym:
    unit, _, name = word.rpartition(":")
    return Synonym(name, {"": 1, "m": _MINUTE_MS, "h": _HOUR_MS}[unit])


def _dynamic_only(name: str) -> Property:
    return Property(name, ConfigType.LONG, "0..", None, "")


BROKER: Mapping[str, Property] = {row.name: row for row in _broker_properties()}
TOPIC: Mapping[str, Property] = {row.name: row for row in _topic_properties()}
DYNAMIC_ONLY: Mapping[str, Property] = {
    name: _dynamic_only(name)
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
"""Properties that can only be set dynamically; listed only when they are set (``DynamicConfig.Broker``)."""


# Broker properties with the same meaning in different units, the strongest first.
_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FAMILY_OF = {name: family for family in _FAMILIES for name in family}


def same_meaning(name: str) -> tuple[str, ...]:
    """The broker properties with the meaning of ``name``, the strongest first (``brokerConfigSynonyms``)."""
    return _FAMILY_OF.get(name, (name,))


def broker_property(name: str) -> Property | None:
    """The broker property called ``name``, also with the prefix ``listener.name.NAME.`` of one listener."""
    row = BROKER.get(name) or DYNAMIC_ONLY.get(name)
    if row is None and name.startswith("listener.name."):
        return BROKER.get(name.split(".", 3)[-1])
    return row


# The columns: name, type, validator; ``=`` gives the default if no broker property does.
_GROUP_ROWS = """\
consumer.session.timeout.ms        int     1..
consumer.heartbeat.interval.ms     int     1..
consumer.assignment.interval.ms    int     0..
share.session.timeout.ms           int     1..
share.heartbeat.interval.ms        int     1..
share.record.lock.duration.ms      int     1000..
share.delivery.count.limit         int     2..
share.partition.max.record.locks   int     100..
share.auto.offset.reset            string  -                                =latest
share.isolation.level              string  read_committed|read_uncommitted  =read_uncommitted
share.renew.acknowledge.enable     boolean -                                =true
share.assignment.interval.ms       int     0..
streams.session.timeout.ms         int     1..
streams.heartbeat.interval.ms      int     1..
streams.num.standby.replicas       int     0..
streams.initial.rebalance.delay.ms int     0..
streams.assignment.interval.ms     int     0..
"""
_CLIENT_METRICS_ROWS = """\
interval.ms int  -    =300000
match       list list =
metrics     list list =
"""
_MATCH_PARAMETERS = frozenset(
    f"client_{part}"
    for part in ("instance_id", "id", "software_name", "software_version", "source_address", "source_port")
)
_SHORTEST_INTERVAL_MS, _LONGEST_INTERVAL_MS = 100, 3_600_000
_DURATION = re.compile(
    r"(?i)[-+]?P(?=.)([-+]?\d+D)?(T(?=.)([-+]?\d+H)?([-+]?\d+M)?([-+]?\d+([.,]\d{0,9})?S)?)?", re.ASCII
)


def _rows(text: str) -> Iterator[Property]:
    for row in text.splitlines():
        name, kind, word, *default = row.split()
        broker_name = f"group.{name}"
        synonyms = () if default else (Synonym(broker_name, 1),)
        text_of_default = default[0][1:] if default else BROKER[broker_name].default
        documentation = GROUP_DOCUMENTATION.get(name, "")
        yield Property(name, ConfigType[kind.upper()], word, text_of_default, documentation, synonyms=synonyms)


GROUP: Mapping[str, Property] = {row.name: row for row in _rows(_GROUP_ROWS)}
CLIENT_METRICS: Mapping[str, Property] = {row.name: row for row in _rows(_CLIENT_METRICS_ROWS)}


def check_group(configs: Mapping[str, str], broker_values: Mapping[str, Value]) -> None:
    """Validate the configurations of a group. Raises InvalidValueError, with Kafka's message.

    ``broker_values`` have the defaults and the bounds.
    """
    values: dict[str, Any] = {}
    for name, row in GROUP.items():
        fallback = broker_values[row.synonyms[0].name] if row.synonyms else row.default_value()
        values[name] = row.parse(configs[name]) if name in configs else fallback
    _check_offset_reset(values["share.auto.offset.reset"])
    for name, value in values.items():
        problem = out_of_bounds(name, value, broker_values)
        if problem:
            raise InvalidValueError.worded(f"{name} {problem}")
    for family in ("consumer", "share", "streams"):
        session, heartbeat = f"{family}.session.timeout.ms", f"{family}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise InvalidValueError.worded(f"{session} must be greater than {heartbeat}")


def out_of_bounds(name: str, value: int, broker_values: Mapping[str, Any]) -> str | None:
    """The message for a group's value that is outside of the broker's bounds, or None."""
    family, _, rest = name.partition(".")
    lowest, highest = (f"group.{family}.{end}.{rest.removeprefix('num.')}" for end in ("min", "max"))
    if lowest in broker_values and value < broker_values[lowest]:
        return f"must be greater than or equal to {lowest}"
    if highest in broker_values and value > broker_values[highest]:
        return f"must be less than or equal to {highest}"
    return None


def _check_offset_reset(value: str) -> None:
    how, colon, duration = value.partition(":")
    if value in {"earliest", "latest"} or (how == "by_duration" and colon and _DURATION.fullmatch(duration)):
        return
    name = "share.auto.offset.reset"
    allowed = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    raise InvalidValueError(name, value, f"Invalid value `{value}` for configuration {name}. {allowed}")


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Validate the configurations of a client metrics subscription. Raises InvalidValueError, with Kafka's message.

    It is an InvalidRequestError where Kafka responds with INVALID_REQUEST instead of INVALID_CONFIG.
    """
    for name in configs:
        if name not in CLIENT_METRICS:
            raise InvalidRequestError(f"Unknown client metrics configuration: {name}")
    values: dict[str, Any] = {name: CLIENT_METRICS[name].parse(text) for name, text in configs.items()}
    interval = values.get("interval.ms", _SHORTEST_INTERVAL_MS)
    if not _SHORTEST_INTERVAL_MS <= interval <= _LONGEST_INTERVAL_MS:
        limits = f"{_SHORTEST_INTERVAL_MS} and {_LONGEST_INTERVAL_MS} (1 hour)"
        raise InvalidRequestError(f"Invalid value {interval} for interval.ms, interval must be between {limits}")
    for pattern in values.get("match", ()):
        parameter, _, expression = (part.strip() for part in pattern.partition("="))
        if not expression or parameter not in _MATCH_PARAMETERS or not _is_expression(expression):
            raise InvalidValueError.worded(f"Illegal client matching pattern: {pattern}")


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


class InvalidRequestError(InvalidValueError):
    """A value that makes the request invalid."""

    def __init__(self, text: str) -> None:
        ValueError.__init__(self, text)
        self.reason = text
