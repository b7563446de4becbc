"""What the coordinator has to know of topics; the data plane has it."""

import uuid
from typing import Protocol


class TopicsView(Protocol):
    """Which topics there are, read-only."""

    def partition_count(self, name: str) -> int | None:
        """How many partitions topic ``name`` has, or None if there is no such topic."""

    def topic_id(self, name: str) -> uuid.UUID | None:
        """The id of topic ``name``, or None."""

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic with ``topic_id``, or None."""
