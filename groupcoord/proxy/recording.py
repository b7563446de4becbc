"""The file format of a recording of the frames that pass a proxy: JSON Lines, the first of which is a header.

Every other line is a frame as the client or the broker sent it, before any change: ``at_ms`` (since 1970), the number of the
``connection``, its ``broker`` (``host:port``), the sender ``from`` (``client`` or ``broker``), and the ``frame`` in Base64,
without its length.
"""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Literal, NamedTuple

SCHEMA = "groupcoord-recording"
VERSION = 1

Sender = Literal["client", "broker"]


class RecordedFrame(NamedTuple):
    """A recorded frame; the module describes its fields."""

    at_ms: int
    connection: int
    broker: str
    sender: Sender
    frame: bytes


class RecordingError(ValueError):
    """The file is not a recording, is of another version, or is damaged; the text says where."""


def header() -> str:
    """The header line."""
    return json.dumps({"schema": SCHEMA, "version": VERSION}) + "\n"


def line_of(recorded: RecordedFrame) -> str:
    """The line of a frame."""
    said = {
        "at_ms": recorded.at_ms,
        "connection": recorded.connection,
        "broker": recorded.broker,
        "from": recorded.sender,
        "frame": base64.b64encode(recorded.frame).decode(),
    }
    return json.dumps(said) + "\n"


def frames_of(lines: Iterable[str]) -> list[RecordedFrame]:
    """The frames in the lines of a recording. Raises RecordingError with the line number."""
    found = []
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
            if number == 1:
                _check(said)
                continue
            sender = said["from"]
            if sender not in ("client", "broker"):
                raise ValueError(f"a frame from {sender!r}")
            frame = base64.b64decode(said["frame"], validate=True)
            found.append(RecordedFrame(int(said["at_ms"]), int(said["connection"]), said["broker"], sender, frame))
        except RecordingError:
            raise
        except (ValueError, KeyError, TypeError, binascii.Error) as problem:
            if number == 1:
                raise RecordingError("this is not a recording: its first line does not say so") from None
            raise RecordingError(f"line {number} is not a frame of a recording: {problem}") from None
    if not found:
        raise RecordingError("there is no frame in it")
    return found


def _check(said: object) -> None:
    if not isinstance(said, dict) or said.get("schema") != SCHEMA:
        raise RecordingError("this is not a recording: its first line does not say so")
    if said.get("version") != VERSION:
        raise RecordingError(f"this is a recording of version {said.get('version')}; version {VERSION} can be read")
