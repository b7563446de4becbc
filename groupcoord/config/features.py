"""The feature levels of a Kafka 4.3.1 cluster (KIP-584); cluster/feature_control.py changes them."""

from collections.abc import Mapping
from typing import NamedTuple

GROUP_VERSION, TRANSACTION_VERSION = "group.version", "transaction.version"
KRAFT_VERSION, METADATA_VERSION = "kraft.version", "metadata.version"


class Feature(NamedTuple):
    """A feature, with the levels that Kafka 4.3.1 supports, and that of a new cluster."""

    name: str
    lowest: int
    highest: int
    level: int


FEATURES = {
    feature.name: feature
    for feature in (
        Feature(GROUP_VERSION, 0, 1, 1),
        Feature(KRAFT_VERSION, 0, 1, 0),
        Feature(METADATA_VERSION, 7, 30, 30),
        Feature("share.version", 0, 1, 1),
        Feature("streams.version", 0, 1, 1),
        Feature(TRANSACTION_VERSION, 0, 2, 2),
        Feature("eligible.leader.replicas.version", 0, 1, 1),
    )
}
"""In the order of a broker's list of supported features."""
SETTABLE = tuple(name for name in FEATURES if name != METADATA_VERSION)
"""The features that can have other levels in a new cluster (``kafka-storage.sh format --feature``)."""


class FeatureLevels(NamedTuple):
    """Levels by feature name, and their epoch: the number of changes. Clients use those with the highest epoch."""

    levels: Mapping[str, int]
    epoch: int


UNCHANGED = FeatureLevels({}, 0)
"""The levels of a new cluster."""


def check_levels(levels: Mapping[str, int]) -> None:
    """Raises ValueError for levels that a new cluster cannot have."""
    for name, level in levels.items():
        if name not in SETTABLE:
            raise ValueError(f"{name} is not a feature that can be chosen; these are: {', '.join(SETTABLE)}")
        lowest, highest = FEATURES[name].lowest, FEATURES[name].highest
        if not lowest <= level <= highest:
            raise ValueError(f"{name} has levels from {lowest} to {highest}, and no {level}")
