"""What is going to happen, in order of time. At equal times it goes by rank, then by who was there first.

Ranks make the order of one moment a rule and not an accident of when something was entered. That is why a run that skips
heartbeats, which enters fewer things, is the same run.
"""

import heapq
from collections.abc import Callable
from itertools import count

Do = Callable[[], None]
_Entry = tuple[int, int, int, Do]


class Agenda:
    """The future of one world. ``now_ms`` is simulated time.

    Heartbeats of members in a quiet group are kept apart, as ``routine``: ``next_event`` is when anything else happens.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.steps = 0
        self._entered = count()
        self._cancelled: set[int] = set()
        self._events: list[_Entry] = []
        self._routine: list[_Entry] = []

    def at(self, at_ms: int, rank: int, do: Do, *, routine: bool = False) -> int:
        """Enter ``do`` for ``at_ms``. Returns the number of the entry."""
        number = next(self._entered)
        heapq.heappush(self._routine if routine else self._events, (at_ms, rank, number, do))
        return number

    def cancel(self, number: int) -> None:
        """An entry that has not been done yet is not done at all."""
        self._cancelled.add(number)

    def next_event(self) -> int | None:
        """When something happens that is not routine (ms), or None."""
        self._clear(self._events)
        return self._events[0][0] if self._events else None

    def next_ms(self) -> int | None:
        """When anything happens, or None."""
        nearest = self._nearest()
        return nearest[0][0] if nearest else None

    def do_next(self) -> None:
        """Go to the next moment at which something happens, and do one thing that does."""
        self.now_ms, _, _, do = heapq.heappop(self._nearest())
        self.steps += 1
        do()

    def _nearest(self) -> list[_Entry]:
        events, routine = self._events, self._routine
        self._clear(events)
        self._clear(routine)
        if events and routine:
            return events if events[0] < routine[0] else routine
        return events or routine

    def _clear(self, entries: list[_Entry]) -> None:
        """Take out what is cancelled, as far as it is in front."""
        while self._cancelled and entries and entries[0][2] in self._cancelled:
            self._cancelled.remove(heapq.heappop(entries)[2])
