"""The subscription of a consumer: topics by name or by pattern, or manually assigned partitions.

Source: ``SubscriptionState``.
"""

import re
from collections.abc import Iterable, Mapping

from groupcoord.assignors import TopicPartition
from groupcoord.client.option_value_parsing import topic_names, topic_pattern


class SubscriptionState:
    """The subscription of one consumer. ``remote_patterns``: strings are RE2 patterns, which the coordinator resolves."""

    def __init__(self, *, remote_patterns: bool, exclude_internal_topics: bool) -> None:
        self._remote_patterns = remote_patterns
        self._exclude_internal_topics = exclude_internal_topics
        self.topics: frozenset[str] = frozenset()
        """The topics by name, or those that match ``pattern``."""
        self.pattern: re.Pattern[str] | None = None
        """This client looks for topics that match it."""
        self.remote_pattern: str | None = None
        """The coordinator looks for topics that match it (KIP-848)."""
        self.partitions: frozenset[TopicPartition] | None = None
        """What the user assigned."""

    def __bool__(self) -> bool:
        """Is there a subscription or a manual assignment?"""
        return bool(self.topics or self.pattern or self.remote_pattern or self.partitions is not None)

    def subscribe(self, topics: str | Iterable[str] | None, pattern: str | re.Pattern[str] | None) -> None:
        """Replace the subscription by ``topics`` or ``pattern``. Raises ValueError for neither, both, or invalid ones."""
        if self.partitions is not None:
            raise ValueError("partitions are assigned by hand: unsubscribe() before you subscribe to topics")
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics or to a pattern, to one of both")
        if pattern is None:
            self.topics, self.pattern, self.remote_pattern = topic_names(topics or ()), None, None
            return
        compiled = (
            topic_pattern(pattern) if not (self._remote_patterns and isinstance(pattern, str) and pattern) else None
        )
        self.topics, self.pattern = frozenset(), compiled
        self.remote_pattern = pattern if compiled is None and isinstance(pattern, str) else None

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly ``partitions``. Raises ValueError for an invalid partition, or while there is a subscription."""
        if self and self.partitions is None:
            raise ValueError("the consumer has a subscription: unsubscribe() before you assign partitions by hand")
        wanted = list(partitions)
        for each in wanted:
            if not (isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], int) and each[1] >= 0):
                raise ValueError(f"{each!r} is not a partition: (topic, number)")
            topic_names(each[0])
        self.partitions = frozenset((topic, number) for topic, number in wanted)

    def clear(self) -> None:
        """Remove the subscription and the assignment."""
        self.topics, self.pattern, self.remote_pattern, self.partitions = frozenset(), None, None, None

    def match(self, topics: Mapping[str, bool]) -> bool:
        """Match the pattern against ``topics`` (name → internal or not). Returns whether the matches have changed.

        If nothing matches, the former matches stay, because a member subscribes to at least one topic.
        Deviation: Kafka's consumer joins its group even if no topic matches.
        """
        if self.pattern is None:
            return False
        found = frozenset(
            name
            for name, internal in topics.items()
            if self.pattern.fullmatch(name) and not (internal and self._exclude_internal_topics)
        )
        if not found or found == self.topics:
            return False
        self.topics = found
        return True
