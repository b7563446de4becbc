"""The configuration of a node with what its data directory has kept: dynamic changes, and partition counts of internal
topics."""

import dataclasses
from collections.abc import Callable
from typing import Any

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.config.config_def import InvalidValueError
from groupcoord.storage.adopted_folder_checks import CoordinatorTopic
from groupcoord.storage.cluster_metadata_file import MetadataContents

Report = Callable[[str], None]
"""Called with a text about what was damaged or missing."""


def with_changes(config: BrokerConfig, contents: MetadataContents, report: Report) -> BrokerConfig:
    """``config`` with the dynamic changes of earlier runs."""
    for resource, configs in contents.configs.items():
        try:
            config = config.changed(resource, configs)
        except InvalidValueError as problem:
            report(
                f"what was changed while the server ran does not go with how it is started, and is left out: {problem}"
            )
    return config


def with_partitions(
    config: BrokerConfig, topic: CoordinatorTopic, there: int, where: object, report: Report
) -> BrokerConfig:
    """``config`` with the number of partitions that a coordinator topic has, because that decides where names are stored."""
    name = topic.count_property
    configured = getattr(config, topic.field)
    if there == configured:
        return config
    report(f"{topic.topic} has {there} partitions in {where}: that counts, and not {name}={configured}")
    changed: dict[str, Any] = {
        "static": {**config.static, name: str(there)},
        "values": {**config.values, name: there},
        topic.field: there,
    }
    return dataclasses.replace(config, **changed)
