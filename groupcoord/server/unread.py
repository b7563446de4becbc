"""Answers that wait in memory for peers that do not read them: there is a limit for all connections together.

Each connection has one answer at most that waits (or what came together, up to ``ANSWERS_BYTES``), because nothing more of a
peer is served until it reads on; and of an answer with records no more than a piece is in memory. So this is for what is left:
hundreds of peers that ask for a large Metadata, say, and never read it. Kafka has no such limit, and runs out of memory.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groupcoord.server.connection import Connection

logger = logging.getLogger(__name__)

# Deviation (bounded-memory): see broker/topic_config.py
UNREAD_BYTES = 256 << 20
"""So much may wait for all peers together; beyond that, who has not read for the longest time is cut off."""

GRACE_SECONDS = 1.0
"""So long more may wait: in one round of a busy server hundreds of long answers are given, before anybody could read."""


class Unread:
    """How many bytes wait for whom; who has waited longest comes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_bytes: int = UNREAD_BYTES) -> None:
        self._loop = loop
        self._most_bytes = most_bytes
        self._waiting: dict[Connection, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.bytes = 0
        """What waits in all."""

    def add(self, connection: "Connection", size: int) -> None:
        """The peer of ``connection`` does not read on, and so many bytes wait for it."""
        self.remove(connection)
        self._waiting[connection] = size
        self.bytes += size
        if self.bytes > self._most_bytes and self._timer is None:
            self._timer = self._loop.call_at(self._loop.time() + GRACE_SECONDS, self._cut_off)

    def remove(self, connection: "Connection") -> None:
        """It has read, or is gone."""
        self.bytes -= self._waiting.pop(connection, 0)

    def stop(self) -> None:
        """No timer fires any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._timer = None
        while self.bytes > self._most_bytes:
            longest = next(iter(self._waiting))
            logger.warning(
                "closing %s, which does not read: %d bytes of answers wait, and more than %d may not",
                longest.peer,
                self.bytes,
                self._most_bytes,
            )
            self.remove(longest)
            longest.abort()
