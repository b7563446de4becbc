"""The features of a cluster (KIP-584) and their levels, as a Kafka 4.3.1 has them. See cluster/api_versions.py."""

from collections.abc import Mapping
from typing import NamedTuple

GROUP_VERSION, TRANSACTION_VERSION = "group.version", "transaction.version"
KRAFT_VERSION, METADATA_VERSION = "kraft.version", "metadata.version"


class Feature(NamedTuple):
    """A feature, the levels that a Kafka 4.3.1 supports, and the one that a new cluster has."""

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
"""In the order in which a broker names what it supports."""
SETTABLE = tuple(name for name in FEATURES if name != METADATA_VERSION)
"""What a new cluster may have other levels of (``kafka-storage.sh format --feature``)."""


class FeatureLevels(NamedTuple):
    """Levels by the names of features, and their epoch: how often they were changed. Clients go by the highest they saw."""

    levels: Mapping[str, int]
    epoch: int


UNCHANGED = FeatureLevels({}, 0)
"""All levels are those of a new cluster."""


def check_levels(levels: Mapping[str, int]) -> None:
    """Raises ValueError for levels that a new cluster cannot have."""
    for name, level in levels.items():
        if name not in SETTABLE:
            raise ValueError(f"{name} is no feature that can be chosen; these are: {', '.join(SETTABLE)}")
        lowest, highest = FEATURES[name].lowest, FEATURES[name].highest
        if not lowest <= level <= highest:
            raise ValueError(f"{name} has levels from {lowest} to {highest}, and no {level}")
