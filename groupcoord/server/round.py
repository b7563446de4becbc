"""One round of the event loop: which connections are served in it, and whose answers are written at its end.

Connections get in line here, the dispatcher serves the lines: each of them knows the round, and not the other. Each connection
stands in one line at most and is served one request when it is at the head: in ``fresh`` if it had nothing to be served and
something short came in, in ``backlog`` if it goes on with what it has sent ahead.

A None in a line stands for the timers that are due: they fire after the requests that were in line before them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from groupcoord.core.effects import Call


class Servable(Protocol):
    """What a round knows of a connection."""

    in_flight: Call | None
    in_line: bool


C = TypeVar("C", bound=Servable)


class Round(Generic[C]):
    """The round that is going on, or the next one. ``run`` is called for each; the dispatcher sets it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop_time = loop.time
        """The loop's clock (seconds)."""
        self.began_at = loop.time()
        """When the round that is going on began, on the loop's clock."""
        self.fresh: deque[C | None] = deque()
        self.backlog: deque[C | None] = deque()
        self.unflushed: list[C] = []
        """Connections with answers that are not written yet."""
        self.is_due = False
        """Is the next round scheduled?"""
        self.run: Callable[[], None]
        self._loop = loop

    def schedule(self) -> None:
        """Let a round begin when the loop has read what there is to read."""
        if not self.is_due:
            self.is_due = True
            self._loop.call_soon(self.run)

    def serve(self, connection: C) -> None:
        """Let ``connection`` go on with what it has sent ahead, unless it is in line already or waits for an answer."""
        if connection.in_flight is None and not connection.in_line:
            connection.in_line = True
            self.backlog.append(connection)
            self.schedule()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` after others have had their turn."""
        self._loop.call_soon(callback)
