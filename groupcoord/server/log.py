"""The log: one line per happening, as text for people or as JSON for programs, on stderr or in files of a bounded size.

Two loggers: ``groupcoord.events`` says what became of groups and topics, ``groupcoord.server`` what became of connections.
Someone who uses the package as a library sets them up as any other; the command line calls ``set_up``.
"""

import dataclasses
import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.server.folding import Folded, Folding

events = logging.getLogger("groupcoord.events")

LONGEST_LINE = 8_192
"""Characters. What a client sends may be long, such as a commit for all partitions of a topic; a line about it is cut."""


class LogFile(NamedTuple):
    """Where the log is kept: in ``path`` and, when that has ``max_bytes``, in ``path.1`` and so on; ``files`` in all."""

    path: Path
    max_bytes: int
    files: int


def log_event(event: Event) -> None:
    """A listener for a Server that logs every event, unless so many are like it that they are only counted."""
    if events.isEnabledFor(logging.INFO):
        for handler in events.parent.handlers if events.parent else ():
            if isinstance(handler, Folding) and handler.folds(event):
                return
        events.info("%s", event.text(), extra={"event": event})


def set_up(
    style: str,
    level: int,
    stream: TextIO | None = None,
    *,
    file: LogFile | None = None,
    fold: Callable[[logging.Handler], Folding] | None = None,
) -> Folding | None:
    """Log everything of this package from ``level`` on to ``stream`` (stderr) or ``file``, as ``"text"`` or ``"json"``.

    ``fold`` makes what stands before the handler that writes, and is returned. A log that cannot be written, because
    nobody reads it any more, disturbs nobody; but a ``file`` that cannot be opened raises OSError.
    """
    logging.raiseExceptions = False
    handler: logging.Handler
    stream = stream or sys.stderr
    if file is not None:
        handler = RotatingFileHandler(file.path, "a", file.max_bytes, file.files - 1, "utf-8")
    else:
        handler = logging.NullHandler() if stream is None else logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    folding = None if fold is None else fold(handler)
    logger = logging.getLogger("groupcoord")
    logger.handlers = [folding or handler]
    logger.propagate = False
    logger.setLevel(level)
    asyncio_logger = logging.getLogger("asyncio")
    asyncio_logger.handlers = logger.handlers
    asyncio_logger.propagate = False
    return folding


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
    """One object per line: ``time`` (ISO 8601, UTC), ``level``, ``text``, and what is known besides, by name.

    An event's line has its type as ``event``, its fields by their names, and its ``cause`` as an object with a ``kind``. Where
    they would make it too long they are left out, and ``cut`` says how long it would be.
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
        folded: Folded | None = getattr(record, "folded", None)
        if folded is not None:
            line |= {"event": "Folded", **folded._asdict()}
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
    """No more than the first ``most`` characters, and how many there were besides."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def event_fields(event: Event) -> dict[str, Any]:
    """``event`` as JSON has it, without its text."""
    fields: dict[str, Any] = {"event": type(event).__name__}
    for field in dataclasses.fields(event):
        fields[field.name] = getattr(event, field.name)
    fields["cause"] = {"kind": type(event.cause).__name__, **event.cause._asdict()}
    return fields


def _plain(value: object) -> Any:
    """What JSON has no word for."""
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
