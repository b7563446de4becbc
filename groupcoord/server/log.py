"""The log: one line per happening, as text for people or as JSON for programs, on stderr.

Two loggers: ``groupcoord.events`` says what became of groups and topics, ``groupcoord.server`` what became of connections.
Someone who uses the package as a library sets them up as any other; the command line calls ``set_up``.
"""

import dataclasses
import json
import logging
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from groupcoord.core.effects import Call
from groupcoord.core.events import Event

events = logging.getLogger("groupcoord.events")


def log_event(event: Event) -> None:
    """A listener for a Server that logs every event."""
    if events.isEnabledFor(logging.INFO):
        events.info("%s", event.text(), extra={"event": event})


def set_up(style: str, level: int, stream: TextIO | None = None) -> None:
    """Log everything of this package from ``level`` on to ``stream`` (stderr), as ``"text"`` or ``"json"``.

    A log that cannot be written, because nobody reads it any more, disturbs nobody.
    """
    logging.raiseExceptions = False
    stream = stream or sys.stderr
    handler = logging.NullHandler() if stream is None else logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    logger = logging.getLogger("groupcoord")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)
    asyncio_logger = logging.getLogger("asyncio")
    asyncio_logger.handlers = [handler]
    asyncio_logger.propagate = False


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
        line = f"{time}  {level}{text}".replace("\r", "\\r").replace("\n", "\\n")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonLines(logging.Formatter):
    """One object per line: ``time`` (ISO 8601, UTC), ``level``, ``text``, and what is known besides, by name.

    An event's line has its type as ``event``, its fields by their names, and its ``cause`` as an object with a ``kind``.
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
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=_plain, ensure_ascii=False)


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
