"""The part of ControlClient for the clock of a cluster (``control.clock``)."""

from typing import TYPE_CHECKING

from groupcoord.control.models import Clock, Deadline

if TYPE_CHECKING:
    from groupcoord.control.client import ControlClient


class ControlledClock:
    """``control.clock``."""

    def __init__(self, client: "ControlClient") -> None:
        self._client = client

    def now_ms(self) -> int:
        """The time of the broker's clock: milliseconds since 1970."""
        return self._client.read(Clock, "GET", "/clock").now_ms

    def deadlines(self, *, group: str | None = None, everything: bool = False) -> list[Deadline]:
        """The pending deadlines (session timeouts and other timers), earliest first."""
        return self._client.read(list[Deadline], "GET", "/clock/deadlines", group=group, everything=everything)

    def advance(self, seconds: float, *, heartbeats: bool = True) -> Clock:
        """Advance a manual clock; every timer that expires has run when this returns."""
        return self._client.read(Clock, "POST", "/clock/advance", {"seconds": seconds, "heartbeats": heartbeats})

    def advance_to_next(self, *, group: str | None = None, heartbeats: bool = False) -> Deadline:
        """Advance a manual clock to the next deadline and let it expire; returns the deadline."""
        body = {"group": group, "heartbeats": heartbeats}
        return self._client.read(Deadline, "POST", "/clock/advance-to-next", body)
