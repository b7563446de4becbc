"""The event queue and clock of a simulation, with an order of events that makes runs deterministic.

Events are ordered by time, then by rank, then by insertion. Ranks fix the order of simultaneous events, so that a run that
skips heartbeats, and so inserts fewer events, has the same result.
"""

import heapq
from collections.abc import Callable
from itertools import count

Callback = Callable[[], None]
_Entry = tuple[int, int, int, Callback]


class EventQueue:
    """Pending events and the simulated time, ``now_ms``.

    Heartbeats and commits of idle members in a stable group are ``routine`` events, which ``next_event_ms`` ignores.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.steps = 0
        self._numbers = count()
        self._cancelled: set[int] = set()
        self._events: list[_Entry] = []
        self._routine: list[_Entry] = []

    def schedule(self, at_ms: int, rank: int, callback: Callback, *, routine: bool = False) -> int:
        """Call ``callback`` at ``at_ms``. Returns the number of the entry, for ``cancel``."""
        number = next(self._numbers)
        heapq.heappush(self._routine if routine else self._events, (at_ms, rank, number, callback))
        return number

    def cancel(self, number: int) -> None:
        """Remove an entry that has not run yet."""
        self._cancelled.add(number)

    def next_event_ms(self) -> int | None:
        """When the next event that is not routine happens (ms); None if there is none."""
        self._drop_cancelled(self._events)
        return self._events[0][0] if self._events else None

    def next_ms(self) -> int | None:
        """When the next event of any kind happens (ms); None if there is none."""
        nearest = self._nearest()
        return nearest[0][0] if nearest else None

    def run_next(self) -> None:
        """Advance to the next event and run it."""
        self.now_ms, _, _, callback = heapq.heappop(self._nearest())
        self.steps += 1
        callback()

    def _nearest(self) -> list[_Entry]:
        events, routine = self._events, self._routine
        self._drop_cancelled(events)
        self._drop_cancelled(routine)
        if events and routine:
            return events if events[0] < routine[0] else routine
        return events or routine

    def _drop_cancelled(self, entries: list[_Entry]) -> None:
        while self._cancelled and entries and entries[0][2] in self._cancelled:
            self._cancelled.remove(heapq.heappop(entries)[2])
