"""Where a stand-in differs from Kafka's defaults."""

import pytest

from groupcoord.config.broker_config import DEFAULTS, DEV_DEFAULTS, DefaultOverride, defaults_for, load
from groupcoord.config.property_definitions import BROKER


@pytest.mark.parametrize("row", [*DEFAULTS, *DEV_DEFAULTS], ids=lambda row: row.name)
def test_a_difference_is_a_difference_and_has_a_reason(row: DefaultOverride) -> None:
    assert BROKER[row.name].default != row.value
    BROKER[row.name].parse(row.value)
    assert row.reason


def test_only_dev_hurries() -> None:
    assert load().group_initial_rebalance_delay_ms == 3_000
    assert load(dev=True).group_initial_rebalance_delay_ms == 0
    assert load(["group.initial.rebalance.delay.ms=7"], dev=True).group_initial_rebalance_delay_ms == 7


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (7, 3, 2)])
def test_kafkas_own_topics_have_kafkas_replicas_as_soon_as_there_are_brokers_enough(
    brokers: int, replicas: int, in_sync: int
) -> None:
    config = load(brokers=brokers)
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        assert config[f"{topic}.replication.factor"] == replicas
    assert config["transaction.state.log.min.isr"] == config["share.coordinator.state.topic.min.isr"] == in_sync
    assert load(["offsets.topic.replication.factor=1"], brokers=brokers)["offsets.topic.replication.factor"] == 1


def test_what_stands_in_for_replicas_is_less_than_kafkas_default() -> None:
    named = {row.name for row in defaults_for(2)} - {row.name for row in defaults_for(3)}
    assert named == {f"{topic}.replication.factor" for topic in ("offsets.topic", "transaction.state.log")} | {
        "share.coordinator.state.topic.replication.factor"
    }
    assert all(BROKER[name].default == "3" for name in named)
    assert {row.reason for row in defaults_for(2) if row.name in named} == {"there are 2 brokers"}
