"""The topic metadata and the configuration of a coordinator under test."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.group import ConsumerGroupConfig


class Topics:
    """The topics that exist: name → number of partitions. Ids count up from 1."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._next_id = count(1).__next__
        self.version = self.version_of_newest = 0
        self.racks: dict[str, list[list[str]]] = {}
        self.counts: dict[str, int] = {}
        self.ids: dict[str, uuid.UUID] = {}
        for name, partitions in counts.items():
            self.create(name, partitions)

    def create(self, name: str, partitions: int) -> None:
        self.counts[name], self.ids[name] = partitions, uuid.UUID(int=self._next_id())
        self.version += 1
        self.version_of_newest = self.version

    def delete(self, name: str) -> None:
        del self.counts[name], self.ids[name]
        self.version += 1

    def grow(self, name: str, partitions: int) -> None:
        self.counts[name] = partitions
        self.version += 1

    def names(self) -> Iterable[str]:
        return self.counts

    def partition_racks(self, name: str) -> Sequence[Sequence[str]]:
        return self.racks.get(name, [[]] * self.counts[name])

    def partition_count(self, name: str) -> int | None:
        return self.counts.get(name)

    def topic_id(self, name: str) -> uuid.UUID | None:
        return self.ids.get(name)

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, known in self.ids.items() if known == topic_id), None)


def kafkas_defaults(_group: str) -> ConsumerGroupConfig:
    """The configs of any consumer group, as Kafka has them."""
    return ConsumerGroupConfig(45_000, 5_000, 1_000)


def broker_config(**properties: Any) -> BrokerConfig:
    """The configuration with these properties, which have underscores for dots."""
    texts = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in properties.items()}
    return BrokerConfig.of({name.replace("_", "."): value for name, value in texts.items()})
