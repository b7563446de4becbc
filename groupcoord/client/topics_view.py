"""The topics as one metadata response shows them, as far as a group cares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsView:
    """Topics that exist: how many partitions each has, and on which racks the replicas of each partition are."""

    partitions: Mapping[str, int] = field(default_factory=dict)
    racks: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)

    def of(self, topics: Iterable[str]) -> "TopicsView":
        """Only ``topics``, as far as they exist."""
        wanted = sorted(set(topics) & self.partitions.keys())
        return TopicsView(
            partitions={topic: self.partitions[topic] for topic in wanted},
            racks={topic: self.racks[topic] for topic in wanted if topic in self.racks},
        )

    def without_racks(self) -> "TopicsView":
        """The same for a member that does not say where it runs: racks are nothing to it."""
        return TopicsView(partitions=self.partitions)
