"""Logs the failures of a client: one warning when a failure begins, one INFO line when it is over, and both as events.

A failure ("trouble") has a subject, such as ``the broker at 127.0.0.1:9092``. However often requests to it fail, it is one
trouble until one succeeds. Each subject is logged once in ``QUIET_MS`` at most; troubles in between are only counted.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from groupcoord.core.events import AdminAction, Event, counted, event_class

logger = logging.getLogger("groupcoord.client")
QUIET_MS = 10_000
"""The shortest time between two warnings with the same subject."""


@event_class
class TroubleBegan(Event):
    """``subject`` has begun to fail; ``untold`` earlier troubles with it were not reported since the last such event."""

    who: str
    subject: str
    why: str
    untold: int = 0

    def text(self) -> str:
        """The event in one line."""
        more = (
            f" ({counted(self.untold, 'more trouble')} with it since the last one that was told)" if self.untold else ""
        )
        return f"{self.who}: trouble with {self.subject}: {self.why}{more}"


@event_class
class TroubleEnded(Event):
    """``subject`` works again, after ``lasted_ms``."""

    who: str
    subject: str
    lasted_ms: int

    def text(self) -> str:
        """The event in one line."""
        return f"{self.who}: no more trouble with {self.subject}, after {self.lasted_ms} ms"


@dataclass(slots=True)
class _Trouble:
    began_ms: int
    told: bool = False


@dataclass(slots=True)
class _Telling:
    at_ms: int
    untold: int = 0


class TroubleLog:
    """The troubles of one client, named ``who`` in the log; ``listen`` is called with the events."""

    def __init__(self, who: str, *, now_ms: Callable[[], int], listen: Callable[[Event], None]) -> None:
        self._who = who
        self._now_ms = now_ms
        self._listen = listen
        self._open: dict[str, _Trouble] = {}
        self._told: dict[str, _Telling] = {}

    def __bool__(self) -> bool:
        """Is there any trouble now?"""
        return bool(self._open)

    def subjects(self) -> tuple[str, ...]:
        """The subjects that fail now."""
        return tuple(self._open)

    def begin(self, subject: str, why: str) -> None:
        """``subject`` fails; logged unless it fails already, or was logged less than ``QUIET_MS`` ago."""
        now_ms = self._now_ms()
        trouble = self._open.get(subject)
        is_new = trouble is None
        if trouble is None:
            trouble = self._open[subject] = _Trouble(now_ms)
        if trouble.told:
            return
        before = self._told.get(subject)
        if before is not None and now_ms - before.at_ms < QUIET_MS:
            before.untold += is_new
            return
        self._told = {name: each for name, each in self._told.items() if now_ms - each.at_ms < QUIET_MS}
        self._told[subject] = _Telling(now_ms)
        trouble.told = True
        untold = 0 if before is None else before.untold - (not is_new)
        event = TroubleBegan(
            at_ms=now_ms, cause=AdminAction(why), who=self._who, subject=subject, why=why, untold=untold
        )
        logger.warning("%s", event.text())
        self._listen(event)

    def end(self, subject: str, why: str = "it went well again") -> None:
        """``subject`` works again."""
        if not self._open:
            return
        trouble = self._open.pop(subject, None)
        if trouble is None or not trouble.told:
            return
        now_ms = self._now_ms()
        event = TroubleEnded(
            at_ms=now_ms, cause=AdminAction(why), who=self._who, subject=subject, lasted_ms=now_ms - trouble.began_ms
        )
        logger.info("%s", event.text())
        self._listen(event)
