"""The members that live by themselves, and the time at which the next of them wants something."""

import asyncio
from collections.abc import Iterator

from groupcoord.testing.clocks import Clock
from groupcoord.testing.living import LivingMember


class Crew:
    """All living members of one cluster. On a clock that runs they do what is due by themselves, else when told ``expire``."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = clock
        self._loop = loop
        self._members: list[LivingMember] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._stopped = False

    def __iter__(self) -> Iterator[LivingMember]:
        return iter(tuple(self._members))

    def add(self, member: LivingMember) -> None:
        """One more."""
        self._members.append(member)

    def next_deadline(self) -> int | None:
        """When the first of them has something to do (ms), or None."""
        deadlines = (member.next_deadline() for member in self._members)
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def expire(self) -> None:
        """Let them do what is due, in the order in which they came."""
        for member in self:
            member.expire()
        self.see_to_timer()

    def see_to_timer(self) -> None:
        """Set the one timer for the next of them."""
        deadline = None if self._stopped else self.next_deadline()
        if deadline == self._timer_at_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is None:
            return
        seconds = self._clock.seconds_until(deadline)
        if seconds is not None:
            self._timer_at_ms = deadline
            self._timer = self._loop.call_later(max(0.0, seconds), self._due)

    def _due(self) -> None:
        self._timer = None
        self.expire()

    def stop(self) -> None:
        """Nobody does anything any more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
