"""The table of properties as a whole; single rows are compared with a real broker's answers in ``tests/broker``."""

import dataclasses

import pytest

from groupcoord.broker.topic_config import LogConfig
from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import ConfigType
from groupcoord.config.property_definitions import (
    BROKER,
    DYNAMIC_ONLY,
    TOPIC,
    Property,
    Synonym,
    UpdateMode,
    broker_property,
)
from groupcoord.config.property_documentation import BROKER_DOCUMENTATION, TOPIC_DOCUMENTATION

EVERY_ROW = [*BROKER.values(), *TOPIC.values(), *DYNAMIC_ONLY.values()]


@pytest.mark.parametrize("row", EVERY_ROW, ids=lambda row: row.name)
def test_a_default_is_an_allowed_value(row: Property) -> None:
    if row.default is not None:
        assert row.parse(row.default) == row.default_value()
    else:
        assert row.default_value() is None


def test_kafka_has_so_many() -> None:
    shown = [row for row in BROKER.values() if row.change is not UpdateMode.INTERNAL]
    assert (len(BROKER), len(shown), len(TOPIC)) == (360, 340, 34)


def test_only_what_exists_is_documented() -> None:
    assert not BROKER_DOCUMENTATION.keys() - BROKER.keys()
    assert not TOPIC_DOCUMENTATION.keys() - TOPIC.keys()


def test_what_code_asks_for_is_documented() -> None:
    fields = {field.name.replace("_", ".") for field in dataclasses.fields(BrokerConfig)}
    assert {name for name in fields if name in BROKER and not BROKER[name].acts} == set()
    settings = {field.name.replace("_", ".") for field in dataclasses.fields(LogConfig)} - {"memory.bytes"}
    assert {name for name in TOPIC if TOPIC[name].acts} == settings | {"internal.segment.bytes"}


def test_documentation_is_a_short_sentence() -> None:
    for text in (*BROKER_DOCUMENTATION.values(), *TOPIC_DOCUMENTATION.values()):
        assert text.endswith(".")
        assert len(text) <= 110


def test_a_row_says_what_it_is() -> None:
    row = BROKER["num.partitions"]
    assert (row.type, row.default, row.change, row.acts, row.sensitive) == (
        ConfigType.INT,
        "1",
        UpdateMode.NEVER,
        True,
        False,
    )
    assert row.expects == "INT, at least 1"
    assert BROKER["ssl.key.password"].sensitive
    assert BROKER["broker.rack"].expects == "STRING"
    assert BROKER["listeners"].change is UpdateMode.ONE_BROKER


def test_a_topics_default_comes_from_the_broker() -> None:
    assert TOPIC["retention.ms"].synonyms == (
        Synonym("log.retention.ms", 1),
        Synonym("log.retention.minutes", 60_000),
        Synonym("log.retention.hours", 3_600_000),
    )
    assert all(synonym.name in BROKER for row in TOPIC.values() for synonym in row.synonyms)
    assert Synonym("log.retention.hours", 3_600_000).convert("2") == "7200000"
    assert Synonym("log.retention.ms", 1).convert(" 2 ") == " 2 "


def test_a_property_may_be_meant_for_one_listener() -> None:
    assert broker_property("listener.name.client.max.connections") is BROKER["max.connections"]
    assert broker_property("listener.name.client.nothing") is None
    assert broker_property("listener.name.x") is None
    assert broker_property("max.connections") is BROKER["max.connections"]
    assert broker_property("leader.replication.throttled.rate") is DYNAMIC_ONLY["leader.replication.throttled.rate"]
    assert broker_property("nothing") is None
