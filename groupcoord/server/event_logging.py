"""Logging: formats each event as one line of text or JSON, limits the rate, and writes in a thread to stderr or a log file.

There are two loggers: ``groupcoord.events`` for groups and topics, ``groupcoord.server`` for connections. A program that uses
the package as a library configures them as any others; the command line calls ``set_up``.

``LogRateLimiter`` writes only the first lines of each kind in an interval and counts the rest; a line at the end of the
interval has the count: ``… 9,999 more in 10 s: RequestRefused UNKNOWN_MEMBER_ID of orders``. A kind is the type and group of an
event, with its error if it has one; or the format of any other line. Events, other lines, and warnings and errors are limited
separately, so that none can hide the others. Of tracebacks from the same place only the first in an interval is written.

``BackgroundLogHandler`` never blocks its caller: nobody may be reading stderr, and a full pipe blocks its writer, as does a
disk that hangs. A thread writes. Its queue is bounded; further lines are dropped and counted, and a line has the count when the
queue is written.
"""

import contextlib
import dataclasses
import json
import logging
import os
import re
import selectors
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from groupcoord.core.effects import Call, EmitEvent
from groupcoord.core.events import Event
from groupcoord.server.rotating_log_file import RotatingLogFile

events = logging.getLogger("groupcoord.events")

LONGEST_LINE = 8_192
"""Characters. What a client sends may be long, such as a commit for all partitions of a topic; a line about it is cut."""

INTERVAL_SECONDS: Final = 10.0
LINES_PER_KIND: Final = 100
"""The limit of lines of one kind in an interval: a group of a hundred members that all join is still logged completely."""
CHARACTERS_PER_INTERVAL: Final = 100_000
"""The limit of characters in an interval, for each of events, other lines, and warnings and errors; beyond it only the summary
of each kind is written. So each takes at most 36 MB an hour."""

_EVENTS, _OTHERS, _WARNINGS = "events", "others", "warnings"
_PLACEHOLDER = re.compile(r"%[-#0-9.]*[a-zA-Z]")

Later = Callable[[float, Callable[[], None]], object]
"""Schedules a call after so many seconds, as an event loop's ``call_later``."""


class SuppressedLines(NamedTuple):
    """The number of suppressed lines of a kind. ``about`` is their group or place, or None."""

    kind: str
    about: str | None
    lines: int
    seconds: int

    def text(self) -> str:
        """The summary line."""
        about = "" if self.about is None else f" of {self.about}"
        return f"… {self.lines:,} more in {self.seconds} s: {self.kind}{about}"


class _SuppressedKind:
    """The suppressed lines of one kind in this interval."""

    __slots__ = ("about", "count", "level", "name")

    def __init__(self, name: str, about: str | None, level: int) -> None:
        self.name = name
        self.about = about
        self.level = level
        self.count = 0


class _CountingFormatter(logging.Formatter):
    """Formats as another formatter, and counts the characters."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.written = 0
        self._formatter = formatter

    def format(self, record: logging.LogRecord) -> str:
        line = self._formatter.format(record)
        self.written += len(line) + 1
        return line


class LogRateLimiter(logging.Handler):
    """Passes lines to ``target``, and counts those beyond the limits. ``now`` is the clock, in seconds.

    ``later``, once set, schedules the summary at the end of an interval; without it the summary comes with the next line.
    """

    def __init__(self, target: logging.Handler, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.later: Later | None = None
        self._target = target
        self._counting = _CountingFormatter(target.formatter or logging.Formatter())
        target.setFormatter(self._counting)
        self._now = now
        self._began = self._last = now()
        self._seen: dict[tuple[str, str | None], int] = {}
        self._written: dict[str, int] = {}
        self._suppressed: dict[str, _SuppressedKind] = {}

    def suppresses(self, emitted: EmitEvent) -> bool:
        """Is the event only counted? Cheaper than creating the event and formatting its line."""
        kind = emitted.kind.__name__
        error: str | None = emitted.about("error")
        if error is not None:
            kind = f"{kind} {error}"
        return self._suppress(_EVENTS, kind, emitted.about("group"), logging.INFO, LINES_PER_KIND)

    def emit(self, record: logging.LogRecord) -> None:
        """Write ``record``, or count it."""
        if hasattr(record, "event"):  # ``suppresses`` was called before
            self._write(record, _EVENTS)
            return
        sort = _OTHERS if record.levelno < logging.WARNING else _WARNINGS
        about, most = None, LINES_PER_KIND
        if record.exc_info and record.exc_info[1] is not None:
            about, most = _raised_at(record.exc_info[1]), 1
        if not self._suppress(sort, _PLACEHOLDER.sub("…", str(record.msg)), about, record.levelno, most):
            self._write(record, sort)

    def flush(self) -> None:
        """Write the summaries of suppressed lines, and start a new interval."""
        seconds = max(1, round(self._last - self._began))
        self._began = self._now()
        self._seen.clear()
        self._written.clear()
        suppressed, self._suppressed = self._suppressed, {}
        for kind in suppressed.values():
            told = SuppressedLines(kind.name, kind.about, kind.count, seconds)
            record = logging.LogRecord(__name__, kind.level, __file__, 0, told.text(), None, None)
            record.suppressed = told
            self._target.handle(record)
        self._target.flush()

    def close(self) -> None:
        """Write the summaries, and close the target."""
        self.flush()
        self._target.close()
        super().close()

    def _suppress(self, sort: str, kind: str, about: str | None, level: int, most: int) -> bool:
        """Count a line as written (False) or as suppressed (True)."""
        now = self._now()
        if now - self._began >= INTERVAL_SECONDS:
            self.flush()
        key = kind, about
        seen = self._seen.get(key, 0)
        if seen < most and self._written.get(sort, 0) < CHARACTERS_PER_INTERVAL:
            self._seen[key] = seen + 1
            return False
        if not self._suppressed and self.later is not None:
            self.later(self._began + INTERVAL_SECONDS - now, self.flush)
        suppressed = self._suppressed.get(kind)
        if suppressed is None:
            suppressed = self._suppressed[kind] = _SuppressedKind(kind, about, level)
        elif suppressed.about != about:
            suppressed.about = None
        suppressed.count += 1
        self._last = now
        return True

    def _write(self, record: logging.LogRecord, sort: str) -> None:
        before = self._counting.written
        self._target.handle(record)
        self._written[sort] = self._written.get(sort, 0) + self._counting.written - before


def _raised_at(error: BaseException) -> str:
    """The type and place of an exception: ``KeyError in shard.py:120``."""
    found = error.__traceback__
    if found is None:
        return type(error).__name__
    while found.tb_next is not None:
        found = found.tb_next
    return f"{type(error).__name__} in {Path(found.tb_frame.f_code.co_filename).name}:{found.tb_lineno}"


class LogFile(NamedTuple):
    """A log file: ``path``, rotated at ``max_bytes`` to ``path.1`` and so on; ``files`` in all."""

    path: Path
    max_bytes: int
    files: int


def is_heard() -> bool:
    """Does the log level let events through? If not, no listener is needed, and no event is created."""
    return events.isEnabledFor(logging.INFO)


def log_emitted(emitted: EmitEvent) -> None:
    """A listener for a Server that logs every event which the rate limit lets through; others are not created."""
    if events.isEnabledFor(logging.INFO):
        for handler in events.parent.handlers if events.parent else ():
            if isinstance(handler, LogRateLimiter) and handler.suppresses(emitted):
                return
        event = emitted.event
        events.info("%s", event.text(), extra={"event": event})


def log_event(event: Event) -> None:
    """Log an event that exists already."""
    log_emitted(EmitEvent.of(event))


def set_up(
    style: str,
    level: int,
    stream: TextIO | None = None,
    *,
    file: LogFile | None = None,
    limit: Callable[[logging.Handler], LogRateLimiter] | None = None,
) -> LogRateLimiter | None:
    """Log everything of this package from ``level`` on to ``stream``, ``file`` or stderr, as ``"text"`` or ``"json"``.

    stderr and files are written by a BackgroundLogHandler, so that neither an unread pipe nor a hanging disk blocks the server.

    ``limit`` creates the rate limiter in front of the writing handler; it is returned. Handlers of an earlier call are closed.
    Errors while writing, such as a closed pipe, are ignored; but a ``file`` that cannot be opened raises OSError.
    """
    logging.raiseExceptions = False
    handler: logging.Handler
    if file is not None:
        log_file = RotatingLogFile(*file)
        handler = BackgroundLogHandler(log_file.write, at_end=log_file.close)
    elif stream is not None:
        handler = logging.StreamHandler(stream)
    else:
        handler = _stderr_handler()
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    limiter = None if limit is None else limit(handler)
    logger = logging.getLogger("groupcoord")
    replaced, logger.handlers = logger.handlers, [limiter or handler]
    logger.propagate = False
    logger.setLevel(level)
    asyncio_logger = logging.getLogger("asyncio")
    asyncio_logger.handlers = logger.handlers
    asyncio_logger.propagate = False
    for before in filter(_is_of_this_package, replaced):
        with contextlib.suppress(OSError, ValueError):  # its stream may be closed
            before.close()
    return limiter


def _is_of_this_package(handler: logging.Handler) -> bool:
    return isinstance(handler, LogRateLimiter) or isinstance(handler.formatter, JsonLines | TextLines)


def _stderr_handler() -> logging.Handler:
    if sys.stderr is None:  # closed before the start
        return logging.NullHandler()
    try:
        return BackgroundLogHandler(partial(write_all, sys.stderr.fileno()))
    except ValueError:  # it is in memory
        return logging.StreamHandler()


class TextLines(logging.Formatter):
    """``12:00:00.123 orders  Empty → PreparingRebalance gen=3  (JoinGroup v9 from consumer-1)``.

    Local time; the group, if the line is about one; what happened; why. Levels are named from warning on.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of ``record``."""
        event: Event | None = getattr(record, "event", None)
        seconds = record.created if event is None else event.at_ms / 1000
        time = datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="milliseconds")[11:23]
        level = f"{record.levelname}  " if record.levelno >= logging.WARNING else ""
        text = record.getMessage()
        if event is not None:
            group = getattr(event, "group", None)
            about = "" if group is None else f"{group}  "
            text = f"{about}{text.removeprefix(f'{group} ')}  ({event.cause})"
        line = cut(f"{time}  {level}{text}").replace("\r", "\\r").replace("\n", "\\n")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One JSON object per line: ``time`` (ISO 8601, UTC), ``level``, ``text``, and further fields by name.

    An event has its type as ``event``, its fields by name, and its ``cause`` as an object with a ``kind``. If they would make
    the line too long they are omitted, and ``cut`` is the full length.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of ``record``."""
        event: Event | None = getattr(record, "event", None)
        seconds = record.created if event is None else event.at_ms / 1000
        time = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "text": record.getMessage()}
        if event is not None:
            line |= event_fields(event)
        call: Call | None = getattr(record, "call", None)
        if call is not None:
            line["call"] = {**call._asdict(), "api": call.api.name}
        for name in ("peer", "place"):
            if hasattr(record, name):
                line[name] = getattr(record, name)
        suppressed: SuppressedLines | None = getattr(record, "suppressed", None)
        if suppressed is not None:
            line |= {"event": "SuppressedLines", **suppressed._asdict()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        text = json.dumps(line, default=_plain, ensure_ascii=False)
        if len(text) <= LONGEST_LINE or record.exc_info:
            return text
        short = {
            name: cut(str(line[name]), 1_000) for name in ("time", "level", "text", "event", "group") if name in line
        }
        return json.dumps({**short, "cut": len(text)}, ensure_ascii=False)


def cut(text: str, most: int = LONGEST_LINE) -> str:
    """The first ``most`` characters, and how many more there were."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def event_fields(event: Event) -> dict[str, Any]:
    """``event`` as a JSON object, without its text."""
    fields: dict[str, Any] = {"event": type(event).__name__}
    for field in dataclasses.fields(event):
        fields[field.name] = getattr(event, field.name)
    fields["cause"] = {"kind": type(event.cause).__name__, **event.cause._asdict()}
    return fields


def _plain(value: object) -> Any:
    """``value`` converted to types that JSON supports."""
    match value:
        case Mapping():
            return dict(value)
        case set() | frozenset():
            return sorted(value)
        case bytes():
            return value.hex()
        case uuid.UUID():
            return str(value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        case _:
            return repr(value)


MAX_WAITING_BYTES = 1 << 20
"""The limit of queued lines, some ten thousand."""

CLOSE_SECONDS = 2.0
"""How long ``close`` waits for the queue to be written; the rest is lost."""


class BackgroundLogHandler(logging.Handler):
    """Passes lines to ``write`` in a thread, with a queue of at most ``max_waiting_bytes``.

    Lines for which ``write`` raises OSError, as for a closed pipe, are lost. ``at_end`` is called when all are written.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._write = write
        self._at_end = at_end
        self._max_waiting_bytes = max_waiting_bytes
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._dropped = 0
        self._is_closed = False
        # A daemon thread, so that the end of the process does not wait for a write that hangs.
        self._writer = threading.Thread(target=self._run, name="groupcoord-log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line of ``record``, or drop and count it."""
        line = self._line(record)
        with self._changed:
            if self._dropped or len(self._waiting) + len(line) > self._max_waiting_bytes:
                self._dropped += 1
            else:
                self._waiting += line
            self._changed.notify_all()

    def close(self) -> None:
        """Write the last lines, if possible, and end the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._writer.join(CLOSE_SECONDS)
        super().close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._dropped or self._is_closed)
                if not self._waiting and not self._dropped:
                    break
                data, dropped = bytes(self._waiting), self._dropped
                self._waiting.clear()
                self._dropped = 0
            if dropped:
                text = f"{dropped:,} lines of the log were dropped: they could not be written in time"
                data += self._line(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None))
            with contextlib.suppress(OSError):
                self._write(data)
        self._at_end()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")


def write_all(fd: int, data: bytes) -> None:
    """Write ``data`` to the file descriptor ``fd``, however long that takes."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # a non-blocking descriptor
            with selectors.DefaultSelector() as selector:
                selector.register(fd, selectors.EVENT_WRITE)
                selector.select()
