"""A bound for the log: lines of one kind beyond a number are counted and told once, and so is what takes too much room.

One client in a loop makes thousands of lines a second, each of them true and none of them news. Time is cut into intervals.
In each of them the first lines of a kind are written; the rest are counted, and one line says at its end how many there were:
``… 9,999 more in 10 s: RequestRefused UNKNOWN_MEMBER_ID of orders``. Where every line is of another group, the room for them
runs out.

A kind is an event's type and group, and the error if it is a refusal; or the format of another line. Events, other lines, and
warnings and errors have room of their own, so that none can hide the others. Of an error with a traceback the first in an
interval is written: the next one from the same place has nothing to add.
"""

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from groupcoord.core.events import Event

INTERVAL_SECONDS: Final = 10.0
LINES_OF_A_KIND: Final = 100
"""Written of one kind in an interval: a group of a hundred members that all join is still seen whole."""
CHARACTERS: Final = 100_000
"""Written in an interval of events, of other lines, and of warnings and errors; then only one line for each kind that is
folded. That makes at most 36 MB an hour of each."""

_EVENTS, _OTHERS, _WARNINGS = "events", "others", "warnings"
_PLACEHOLDER = re.compile(r"%[-#0-9.]*[a-zA-Z]")

Later = Callable[[float, Callable[[], None]], object]
"""Call something so many seconds later, as an event loop's ``call_later`` does."""


class Folded(NamedTuple):
    """So many lines of a kind were not written. ``about`` is the group or the place of all of them, or None."""

    kind: str
    about: str | None
    lines: int
    seconds: int

    def text(self) -> str:
        """The line that tells it."""
        about = "" if self.about is None else f" of {self.about}"
        return f"… {self.lines:,} more in {self.seconds} s: {self.kind}{about}"


class _Kind:
    """What was folded of a kind in this interval."""

    __slots__ = ("about", "count", "level", "name")

    def __init__(self, name: str, about: str | None, level: int) -> None:
        self.name = name
        self.about = about
        self.level = level
        self.count = 0


class _Measured(logging.Formatter):
    """Formats as another one does, and counts the characters."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.written = 0
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        line = self._formatter.format(record)
        self.written += len(line) + 1
        return line


class Folding(logging.Handler):
    """Hands to ``target`` what is not folded, and what is said instead. ``now`` is the clock, in seconds.

    ``later``, once set, sees to it that what was folded is told when the interval ends and nothing more is logged.
    """

    def __init__(self, target: logging.Handler, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.later: Later | None = None
        self._target = target
        self._measured = _Measured(target.formatter or logging.Formatter())
        target.setFormatter(self._measured)
        self._now = now
        self._began = self._last = now()
        self._seen: dict[tuple[str, str | None], int] = {}
        self._written: dict[str, int] = {}
        self._folded: dict[str, _Kind] = {}

    def folds(self, event: Event) -> bool:
        """Is ``event`` counted and no more? That costs a fraction of the line that is not written."""
        kind = type(event).__name__
        error: str | None = getattr(event, "error", None)
        if error is not None:
            kind = f"{kind} {error}"
        return self._takes(_EVENTS, kind, getattr(event, "group", None), logging.INFO, LINES_OF_A_KIND)

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record``, or count it."""
        if hasattr(record, "event"):  # ``folds`` has been asked
            self._write(record, _EVENTS)
            return
        sort = _OTHERS if record.levelno < logging.WARNING else _WARNINGS
        about, most = None, LINES_OF_A_KIND
        if record.exc_info and record.exc_info[1] is not None:
            about, most = _place(record.exc_info[1]), 1
        if not self._takes(sort, _PLACEHOLDER.sub("…", str(record.msg)), about, record.levelno, most):
            self._write(record, sort)

    def flush(self) -> None:
        """Say what was folded so far, and begin a new interval."""
        seconds = max(1, round(self._last - self._began))
        self._began = self._now()
        self._seen.clear()
        self._written.clear()
        folded, self._folded = self._folded, {}
        for kind in folded.values():
            told = Folded(kind.name, kind.about, kind.count, seconds)
            record = logging.LogRecord(__name__, kind.level, __file__, 0, told.text(), None, None)
            record.folded = told
            self._target.handle(record)
        self._target.flush()

    def close(self) -> None:
        """The log ends."""
        self.flush()
        self._target.close()
        super().close()

    def _takes(self, sort: str, kind: str, about: str | None, level: int, most: int) -> bool:
        """Count a line as written (False) or as folded (True)."""
        now = self._now()
        if now - self._began >= INTERVAL_SECONDS:
            self.flush()
        key = kind, about
        seen = self._seen.get(key, 0)
        if seen < most and self._written.get(sort, 0) < CHARACTERS:
            self._seen[key] = seen + 1
            return False
        if not self._folded and self.later is not None:
            self.later(self._began + INTERVAL_SECONDS - now, self.flush)
        folded = self._folded.get(kind)
        if folded is None:
            folded = self._folded[kind] = _Kind(kind, about, level)
        elif folded.about != about:
            folded.about = None
        folded.count += 1
        self._last = now
        return True

    def _write(self, record: logging.LogRecord, sort: str) -> None:
        before = self._measured.written
        self._target.handle(record)
        self._written[sort] = self._written.get(sort, 0) + self._measured.written - before


def _place(error: BaseException) -> str:
    """What went wrong where: ``KeyError in shard.py:120``."""
    found = error.__traceback__
    if found is None:
        return type(error).__name__
    while found.tb_next is not None:
        found = found.tb_next
    return f"{type(error).__name__} in {Path(found.tb_frame.f_code.co_filename).name}:{found.tb_lineno}"
