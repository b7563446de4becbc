"""Reads the logs of coordinators, each for as long as the plan says; meanwhile everything else goes on."""

from collections import deque
from typing import Any

from groupcoord.broker.partition_log import PartitionLog
from groupcoord.cluster.coordinator_loader import CoordinatorLoader
from groupcoord.coordinator.runtime.shard_loader import ShardLoader
from groupcoord.core.handler_context import HandlerContext
from groupcoord.simulation.event_queue import EventQueue


class SlowLoader(CoordinatorLoader):
    """``loading_ms``: how long the next log will be read. Logs are read one after the other."""

    def __init__(self, event_queue: EventQueue) -> None:
        super().__init__()
        self._event_queue = event_queue
        self.loading_ms = 0
        self._due: deque[tuple[int, str]] = deque()

    def __bool__(self) -> bool:
        """Is a log to be read now?"""
        return bool(self._due) and self._due[0][0] <= self._event_queue.now_ms

    @property
    def due_ms(self) -> int | None:
        """When a log will have been read (ms); None if there is none to read."""
        return self._due[0][0] if self._due else None

    @property
    def next_topic(self) -> str:
        """The topic of the log that is read first."""
        return self._due[0][1]

    def begin(self, loading: ShardLoader[Any], log: PartitionLog) -> None:
        """See CoordinatorLoader."""
        super().begin(loading, log)
        earliest_ms = self._due[-1][0] if self._due else 0
        at_ms = max(earliest_ms, self._event_queue.now_ms + self.loading_ms)
        self._due.append((at_ms, loading.shard.topic))

    def read_next_piece(self, ctx: HandlerContext) -> None:
        """Read all of the log."""
        self._due.popleft()
        left = len(self._waiting) - 1
        while len(self._waiting) > left:
            super().read_next_piece(ctx)
