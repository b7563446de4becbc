"""The properties of a broker and the configurations of a topic: what the command line, DescribeConfigs and docs read.

A property that something here acts on has a documentation in our words; one without is *carried*: accepted, checked and
shown by DescribeConfigs, without effect.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from groupcoord.config.config_def import ConfigType, Validator, Value, read, validator
from groupcoord.config.documentation import BROKER_DOCUMENTATION, TOPIC_DOCUMENTATION
from groupcoord.config.property_tables import BROKER_ROWS, TOPIC_ROWS

_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000


class UpdateMode(enum.Enum):
    """How a broker property may be changed while the broker runs (``DynamicBrokerConfig``)."""

    NEVER = "-"
    ONE_BROKER = "broker"
    CLUSTER = "cluster"
    INTERNAL = "internal"  # never changed, and shown only when it is set


class Synonym(NamedTuple):
    """A broker property that gives the default of a topic's configuration; one of its units is ``factor`` of the topic's."""

    name: str
    factor: int

    def convert(self, text: str) -> str:
        """The broker's text in the unit of the topic's configuration."""
        return text if self.factor == 1 else str(int(text) * self.factor)


class Property(NamedTuple):
    """One row. ``default`` is its text, or None; ``documentation`` is "" for what is only carried."""

    name: str
    type: ConfigType
    validator_word: str
    default: str | None
    documentation: str
    change: UpdateMode = UpdateMode.CLUSTER
    synonyms: tuple[Synonym, ...] = ()

    @property
    def acts(self) -> bool:
        """Does anything here depend on it?"""
        return bool(self.documentation)

    @property
    def sensitive(self) -> bool:
        """Is its value never shown?"""
        return self.type is ConfigType.PASSWORD

    @property
    def validator(self) -> Validator:
        """What values it may have."""
        return validator(self.validator_word)

    @property
    def expects(self) -> str:
        """Type and range, for people: ``INT, at least 1``."""
        range_text = self.validator.expects
        return f"{self.type.name}, {range_text}" if range_text else self.type.name

    def parse(self, text: str) -> Value:
        """The value of ``text``. Raises InvalidValueError, in Kafka's words."""
        value = read(self.name, self.type, text)
        return self.validator.check(self.name, value)

    def default_value(self) -> Value:
        """The value of the default."""
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
"""What can be set on a running broker and nowhere else; shown only when it is set (``DynamicConfig.Broker``)."""


# Broker properties that say the same in other units, the strongest first.
_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FAMILY_OF = {name: family for family in _FAMILIES for name in family}


def same_meaning(name: str) -> tuple[str, ...]:
    """The broker properties that could say what ``name`` says, the strongest first (``brokerConfigSynonyms``)."""
    return _FAMILY_OF.get(name, (name,))


def broker_property(name: str) -> Property | None:
    """The property of a broker that ``name`` means: also behind ``listener.name.NAME.``, for one listener."""
    row = BROKER.get(name) or DYNAMIC_ONLY.get(name)
    if row is None and name.startswith("listener.name."):
        return BROKER.get(name.split(".", 3)[-1])
    return row
