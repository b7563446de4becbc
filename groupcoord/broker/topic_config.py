"""The effective configuration of a topic: its overrides, then the broker's defaults; and LogConfig, what its logs need of it.

Source: ``org.apache.kafka.storage.internals.log.LogConfig``.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from groupcoord.broker import topic_names
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError, Value
from groupcoord.config.property_definitions import TOPIC, Property, UpdateMode
from groupcoord.core.java_hash_order import hash_order

INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The effective settings of one topic's logs; sizes in bytes, times in milliseconds.

    Every field is named like the topic config it holds, with underscores for dots; the defaults are Kafka's own.
    """

    cleanup_policy: frozenset[str] = frozenset({"delete"})  # of "delete" and "compact"; empty keeps everything
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"  # or "uncompressed", "gzip", "snappy", "lz4", "zstd": what batches are stored as
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000  # how long compaction keeps a tombstone after it first read it
    flush_messages: int = INT64_MAX  # the number of records after which a log file is flushed to disk
    flush_ms: int = INT64_MAX  # the time after which it is
    index_interval_bytes: int = 4096  # of a log file between two entries of its index
    max_compaction_lag_ms: int = INT64_MAX  # the age at which a record is compacted, whatever the dirty ratio
    max_message_bytes: int = 1_048_588  # of one batch, as it is stored
    message_timestamp_after_max_ms: int = 3_600_000  # how far a record may be ahead of the broker's clock
    message_timestamp_before_max_ms: int = INT64_MAX  # how far a record may lie behind it
    message_timestamp_type: str = "CreateTime"  # or "LogAppendTime"
    min_cleanable_dirty_ratio: float = 0.5  # the share of the log that has to be dirty for a compaction
    min_compaction_lag_ms: int = 0  # a younger record is not compacted
    min_insync_replicas: int = 1  # the in-sync replicas that acks=all needs, or all replicas if there are fewer
    retention_bytes: int = -1  # of one partition; -1 is no limit
    retention_ms: int = 604_800_000  # -1 is no limit
    segment_bytes: int = 1_073_741_824  # what retention deletes at a time
    segment_index_bytes: int = 10_485_760  # the size of the index at which a segment is closed
    memory_bytes: int = (
        -1
    )  # limit of the bytes of one partition in memory, if it may delete any; -1 is no limit. Not a topic config
    segment_ms: int = 604_800_000  # a segment older than this is closed at the next append
    unclean_leader_election_enable: bool = (
        False  # may a replica that is not in sync become leader, so that records are lost?
    )

    @property
    def compact(self) -> bool:
        """Is the topic compacted? Then every record needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Are old segments deleted by time and size?"""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Do records get the broker's timestamp instead of the producer's?"""
        return self.message_timestamp_type == "LogAppendTime"


class Source:
    """The sources of a config value (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


# Deviation (bounded-memory): without a data directory logs are in memory. If retention.bytes is not set, which means no limit
# in Kafka, a partition keeps 128 MiB; if it is set, a partition holds at most that size, or 128 MiB if that is more, between
# retention checks. Only an explicit -1 is no limit. Segments are smaller, so that old ones can be deleted. Responses that
# clients do not read are limited to 256 MiB over all connections: beyond that, the connection that has not read for the
# longest time is closed. Waiting fetches are limited to 65,536: beyond that, the oldest one gets its response.
MEMORY_BYTES = 128 * 1024 * 1024

_UNLIMITED = -1
_SETTINGS = tuple(
    (field.name, field.name.replace("_", "."))
    for field in dataclasses.fields(LogConfig)
    if field.name != "memory_bytes"
)


def check(overrides: Mapping[str, str], config: BrokerConfig) -> None:
    """Validate the overrides of a topic. Raises InvalidValueError, with the messages and in the order of
    ``LogConfig.validate``."""
    for name in hash_order(overrides):
        if name not in TOPIC:
            raise InvalidValueError.worded(f"Unknown topic config name: {name}")
    values = effective_values(overrides, config)
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if shortest > longest:
        conflict = f"min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        raise InvalidValueError.worded(f"conflict topic config setting {conflict}")
    if values["remote.storage.enable"]:
        raise InvalidValueError.worded(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def effective_values(overrides: Mapping[str, str], config: BrokerConfig) -> dict[str, Any]:
    """The value of every configuration of a topic with these ``overrides``. Raises InvalidValueError."""
    return {
        name: row.parse(overrides[name]) if name in overrides else default_value(row, config)
        for name, row in TOPIC.items()
    }


def default_value(row: Property, config: BrokerConfig) -> Value:
    """The value of ``row`` for a topic that does not override it (``KafkaConfig.extractLogConfigMap``)."""
    for synonym in row.synonyms:
        value = config[synonym.name]
        if value is not None:
            if row.name == "retention.ms" and isinstance(value, int) and value < 0:
                return -1
            return value if synonym.factor == 1 else int(str(value)) * synonym.factor
    return row.default_value()


def log_config(overrides: Mapping[str, str], config: BrokerConfig) -> LogConfig:
    """The LogConfig of a topic with these ``overrides``, which have been validated."""
    values = effective_values(overrides, config)
    settings: dict[str, Any] = {field: values[name] for field, name in _SETTINGS}
    settings["cleanup_policy"] = frozenset(settings["cleanup_policy"])
    if values["internal.segment.bytes"] is not None:
        settings["segment_bytes"] = values["internal.segment.bytes"]
    return LogConfig(**settings, memory_bytes=_memory_bytes(overrides, config, settings["retention_bytes"]))


def _memory_bytes(overrides: Mapping[str, str], config: BrokerConfig, retention_bytes: int) -> int:
    """The maximum bytes of a partition in memory, -1 for no limit."""
    layers = (config.static, config.own_changes, config.default_changes)
    if "retention.bytes" in overrides or any("log.retention.bytes" in layer for layer in layers):
        return _UNLIMITED if retention_bytes < 0 else max(retention_bytes, MEMORY_BYTES)
    return MEMORY_BYTES


class Effective(NamedTuple):
    """One configuration of a topic as the controller reports it: its text and source."""

    name: str
    text: str | None
    source: int


def effective_texts(overrides: Mapping[str, str], config: BrokerConfig) -> Iterator[Effective]:
    """Every configuration of a topic with these ``overrides``, by name; test-only ones are listed when they are set.

    Texts are returned as they were set (``KafkaConfigSchema.resolveEffectiveTopicConfig``).
    """
    layers = (
        (config.own_changes, Source.DYNAMIC_BROKER),
        (config.default_changes, Source.DYNAMIC_DEFAULT_BROKER),
        (config.static, Source.STATIC_BROKER),
    )
    for name, row in sorted(TOPIC.items()):
        if name in overrides:
            yield Effective(name, overrides[name], Source.TOPIC)
        elif row.change is not UpdateMode.INTERNAL:
            yield _from_layers(row, layers)


def _from_layers(row: Property, layers: tuple[tuple[Mapping[str, str], int], ...]) -> Effective:
    for texts, source in layers:
        for synonym in row.synonyms:
            if synonym.name in texts:
                return Effective(row.name, synonym.convert(texts[synonym.name]), source)
    return Effective(row.name, row.default, Source.DEFAULT)


def internal_topic(name: str, config: BrokerConfig) -> tuple[int, int, dict[str, str]]:
    """The partition count, replication factor and configurations of one of Kafka's internal topics."""
    prefix = _PREFIXES[name]
    configs = {**_INTERNAL_CONFIGS[name], "segment.bytes": str(config[f"{prefix}.segment.bytes"])}
    if name != topic_names.CONSUMER_OFFSETS:
        configs["min.insync.replicas"] = str(config[f"{prefix}.min.isr"])
    return int(str(config[f"{prefix}.num.partitions"])), int(str(config[f"{prefix}.replication.factor"])), configs


_PREFIXES = {
    topic_names.CONSUMER_OFFSETS: "offsets.topic",
    topic_names.TRANSACTION_STATE: "transaction.state.log",
    topic_names.SHARE_GROUP_STATE: "share.coordinator.state.topic",
}
_INTERNAL_CONFIGS = {
    topic_names.CONSUMER_OFFSETS: {"cleanup.policy": "compact", "compression.type": "producer"},
    topic_names.TRANSACTION_STATE: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
    },
    topic_names.SHARE_GROUP_STATE: {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
}
