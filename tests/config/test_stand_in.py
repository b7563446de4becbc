"""Where a stand-in differs from Kafka's defaults."""

import pytest

from groupcoord.config.properties import BROKER
from groupcoord.config.settings import load
from groupcoord.config.stand_in import DEFAULTS, DEV_DEFAULTS, StandIn


@pytest.mark.parametrize("row", [*DEFAULTS, *DEV_DEFAULTS], ids=lambda row: row.name)
def test_a_difference_is_a_difference_and_has_a_reason(row: StandIn) -> None:
    assert BROKER[row.name].default != row.value
    BROKER[row.name].parse(row.value)
    assert row.reason


def test_only_dev_hurries() -> None:
    assert load().group_initial_rebalance_delay_ms == 3_000
    assert load(dev=True).group_initial_rebalance_delay_ms == 0
    assert load(["group.initial.rebalance.delay.ms=7"], dev=True).group_initial_rebalance_delay_ms == 7
