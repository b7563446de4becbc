"""Timers by key (``CoordinatorTimer``). Only the earliest deadline is visible outside, so the server needs one timer.

Scheduling an equal key replaces the timer. Timers fire in order of time, then of scheduling.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Effect
from groupcoord.core.events import TimerFired


class TimerKey(NamedTuple):
    """The purpose of a timer: ``session`` of a member, ``join`` or ``sync`` of a group, ``fetch`` of a call …"""

    kind: str
    scope: str
    subject: str = ""


_LEFTOVERS = 1_000
"""How many cancelled timers, beyond the number of pending ones, may stay in the heap, as in Kafka's purgatories
(``DelayedOperationPurgatory``, purgeInterval)."""


@dataclass(slots=True, eq=False)
class Deadline:
    """A pending timer: its time (ms), the order of scheduling, its key, and its callback."""

    at_ms: int
    sequence: int
    key: TimerKey
    fire: Callable[[HandlerContext], None]


class Timers:
    """The pending timers of one pure component."""

    def __init__(self) -> None:
        self._pending: dict[TimerKey, Deadline] = {}
        self._heap: list[tuple[int, int, TimerKey]] = []
        # The valid heap entry of each key; other entries of the key are leftovers.
        self._places: dict[TimerKey, tuple[int, int]] = {}
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._pending

    def schedule(self, key: TimerKey, at_ms: int, fire: Callable[[HandlerContext], None]) -> None:
        """Call ``fire`` at ``at_ms``; replaces the timer with an equal key."""
        self._sequence += 1
        self._pending[key] = Deadline(at_ms, self._sequence, key, fire)
        # A timer that only moves later, as a session's does with every heartbeat, keeps its heap entry and is pushed again when
        # that entry comes up: no push per heartbeat.
        place = self._places.get(key)
        if place is None or at_ms < place[0]:
            self._push(at_ms, self._sequence, key)

    def postpone(self, key: TimerKey, at_ms: int) -> bool:
        """Move the timer of ``key`` to ``at_ms``, with its callback, as if it was scheduled again; returns whether that was
        possible.

        It is if the timer exists and does not move earlier. For timers that move often, such as a session's.
        """
        deadline = self._pending.get(key)
        if deadline is None or deadline.at_ms > at_ms:
            return False
        self._sequence += 1
        deadline.at_ms, deadline.sequence = at_ms, self._sequence
        return True

    def cancel(self, key: TimerKey) -> bool:
        """Cancel the timer; returns whether there was one."""
        return self._pending.pop(key, None) is not None

    def take(self, key: TimerKey) -> Deadline:
        """Remove and return a pending timer. Raises KeyError."""
        return self._pending.pop(key)

    def next_deadline(self) -> int | None:
        """The time of the earliest timer (ms), or None."""
        deadline = self._earliest()
        return None if deadline is None else deadline.at_ms

    def deadline_lower_bound(self) -> int | None:
        """No timer is due before that time (ms); None if there is none. Costs less than ``next_deadline``, and may be too
        early."""
        return self._heap[0][0] if self._heap else None

    def fire_due(self, now_ms: int) -> list[Effect]:
        """Fire all timers that are due at ``now_ms``, also those that become due by firing; returns the effects in order."""
        effects: list[Effect] = []
        while (deadline := self.pop_due(now_ms)) is not None:
            ctx = HandlerContext(
                now_ms, TimerFired(deadline.key.kind, deadline.key.scope, deadline.key.subject, deadline.at_ms)
            )
            deadline.fire(ctx)
            effects += ctx.effects
        return effects

    def fire_early(self, key: TimerKey, now_ms: int) -> list[Effect]:
        """Fire the timer of ``key`` at ``now_ms``, even if it is due later; does nothing if there is none."""
        deadline = self._pending.pop(key, None)
        if deadline is None:
            return []
        ctx = HandlerContext(now_ms, TimerFired(key.kind, key.scope, key.subject, deadline.at_ms))
        deadline.fire(ctx)
        return ctx.effects

    def pop_due(self, now_ms: int) -> Deadline | None:
        """Remove and return the earliest timer if it is due at ``now_ms``."""
        deadline = self._earliest()
        if deadline is None or deadline.at_ms > now_ms:
            return None
        heapq.heappop(self._heap)
        del self._places[deadline.key]
        del self._pending[deadline.key]
        return deadline

    def pending(self) -> Iterator[Deadline]:
        """All pending timers, earliest first."""
        return iter(sorted(self._pending.values(), key=lambda deadline: (deadline.at_ms, deadline.sequence)))

    def _push(self, at_ms: int, sequence: int, key: TimerKey) -> None:
        if len(self._heap) > _LEFTOVERS + 2 * len(self._pending):
            self._tidy()
        heapq.heappush(self._heap, (at_ms, sequence, key))
        self._places[key] = (at_ms, sequence)

    def _tidy(self) -> None:
        """Remove leftovers of cancelled timers from the heap, which could be due in weeks, as clients choose the times."""
        self._heap = [(one.at_ms, one.sequence, key) for key, one in self._pending.items()]
        heapq.heapify(self._heap)
        self._places = {key: (at_ms, sequence) for at_ms, sequence, key in self._heap}

    def _earliest(self) -> Deadline | None:
        while self._heap:
            at_ms, sequence, key = self._heap[0]
            deadline = self._pending.get(key)
            if deadline is not None and deadline.sequence == sequence:
                return deadline
            heapq.heappop(self._heap)
            if self._places.get(key) == (at_ms, sequence):
                del self._places[key]
                if deadline is not None:
                    self._push(deadline.at_ms, deadline.sequence, key)
        return None
