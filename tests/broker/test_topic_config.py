"""What a topic's configuration comes to."""

import pytest

from groupcoord.broker.topic_config import MEMORY_BYTES, Effective, check, default_value, effective_texts, log_config
from groupcoord.config.broker_config import DEFAULTS, BrokerConfig, ConfigResource
from groupcoord.config.config_def import InvalidValueError
from groupcoord.config.property_definitions import TOPIC

ALL_BROKERS, THIS_BROKER = ConfigResource(4, ""), ConfigResource(4, "1")
TIERED = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.ms": "x", "nope": "1"}, "Unknown topic config name: nope"),
        ({"zz.unknown": "1", "aa.unknown": "2", "mm.unknown": "3"}, "Unknown topic config name: aa.unknown"),
        (
            {"cleanup.policy": "bogus", "retention.ms": "x"},
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        ({"remote.storage.enable": "true"}, TIERED),
    ],
)
def test_a_topic_may_not_be_configured_so(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        check(overrides, BrokerConfig.of())
    assert str(refusal.value) == message


def test_the_brokers_default_counts_too() -> None:
    broker = BrokerConfig.of({"log.cleaner.max.compaction.lag.ms": 5})
    with pytest.raises(InvalidValueError, match=r"min\.compaction\.lag\.ms \(10\) > max\.compaction\.lag\.ms \(5\)"):
        check({"min.compaction.lag.ms": "10"}, broker)
    check({"min.compaction.lag.ms": "5"}, broker)


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3, "log.retention.ms": 4}, 4),
        ({"log.retention.ms": -5}, -1),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_a_default_comes_from_the_broker(properties: dict[str, object], retention_ms: int) -> None:
    assert default_value(TOPIC["retention.ms"], BrokerConfig.of(properties)) == retention_ms


def test_what_the_broker_has_no_property_for_has_kafkas_default() -> None:
    assert default_value(TOPIC["remote.storage.enable"], BrokerConfig.of()) is False
    assert default_value(TOPIC["flush.ms"], BrokerConfig.of()) == (1 << 63) - 1


def test_a_log_gets_what_it_needs() -> None:
    settings = log_config(
        {"cleanup.policy": "delete,compact", "segment.bytes": "2000000", "compression.type": "gzip"},
        BrokerConfig.of({"message.max.bytes": 9}),
    )
    assert settings.cleanup_policy == {"compact", "delete"}
    assert (settings.segment_bytes, settings.compression_type, settings.max_message_bytes) == (2_000_000, "gzip", 9)


def test_a_test_may_have_small_segments() -> None:
    assert log_config({"internal.segment.bytes": "100"}, BrokerConfig.of()).segment_bytes == 100


def test_texts_are_those_of_the_strongest_layer() -> None:
    config = BrokerConfig.of(
        {"log.retention.hours": "24", "log.flush.scheduler.interval.ms": "5000"}, defaults=DEFAULTS
    )
    config = config.changed(ALL_BROKERS, {**config.default_changes, "message.max.bytes": "3000000"})
    overrides = {"cleanup.policy": "compact , delete", "internal.segment.bytes": "7"}
    texts = {one.name: one for one in effective_texts(overrides, config)}
    assert list(texts) == sorted(texts)
    assert len(texts) == 34
    assert texts["cleanup.policy"] == Effective("cleanup.policy", "compact , delete", 1)
    assert texts["internal.segment.bytes"] == Effective("internal.segment.bytes", "7", 1)
    assert texts["max.message.bytes"] == Effective("max.message.bytes", "3000000", 3)
    assert texts["min.insync.replicas"] == Effective("min.insync.replicas", "1", 3)
    assert texts["retention.ms"] == Effective("retention.ms", "86400000", 4)
    assert texts["flush.ms"] == Effective("flush.ms", "5000", 4)
    assert texts["segment.ms"] == Effective("segment.ms", "604800000", 5)
    own = config.changed(THIS_BROKER, {"message.max.bytes": " 2 "})
    assert Effective("max.message.bytes", " 2 ", 2) in list(effective_texts({}, own))
    assert len(list(effective_texts({}, own))) == 33


@pytest.mark.parametrize(
    ("overrides", "properties", "kept"),
    [
        ({}, {}, MEMORY_BYTES),
        ({"retention.bytes": "-1"}, {}, -1),
        ({}, {"log.retention.bytes": -1}, -1),
        ({"retention.bytes": "5"}, {}, MEMORY_BYTES),
        ({"retention.bytes": str(2 * MEMORY_BYTES)}, {"log.retention.bytes": -1}, 2 * MEMORY_BYTES),
        ({}, {"log.retention.bytes": 2 * MEMORY_BYTES}, 2 * MEMORY_BYTES),
    ],
)
def test_memory_is_bounded_unless_somebody_says_otherwise(
    overrides: dict[str, str], properties: dict[str, object], kept: int
) -> None:
    """Deviation (bounded-memory)."""
    assert log_config(overrides, BrokerConfig.of(properties)).memory_bytes == kept


def test_no_limit_counts_also_when_it_is_said_later() -> None:
    config = BrokerConfig.of().changed(ConfigResource(4, ""), {"log.retention.bytes": "-1"})
    assert log_config({}, config).memory_bytes == -1
