"""``groupcoord dissect``: shows frames, network captures and segment files field by field."""

import argparse
import json
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from groupcoord.cli.main import complain
from groupcoord.did_you_mean import did_you_mean
from groupcoord.dissect import Dissection, dissect_request, dissect_response
from groupcoord.dissect.message_schemas import api_name
from groupcoord.dissect.segment_files import SUFFIXES, dissect_index, dissect_log
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.coordinator_records.record_formatting import id_text
from groupcoord.storage.log_file_names import partition_folder

_PCAP_MAGIC = tuple(
    bytes.fromhex(magic)
    for magic in ("d4c3b2a1", "a1b2c3d4", "4d3cb2a1", "a1b23c4d", "0a0d0d0a", "34cdb2a1", "a1b2cd34")
)
_BYTES_SHOWN = 32
_WIDEST_PATH, _WIDEST_TYPE = 60, 32


class _InputError(Exception):
    """The input cannot be dissected; the text says why."""


class _Part(NamedTuple):
    """One dissection, or a problem instead; ``place`` is the text before its title, ``said`` are extra fields for JSON."""

    place: str
    said: dict[str, Any]
    dissection: Dissection | None
    problem: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``dissect``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """\
Show the bytes of Kafka's protocol and segment files field by field: byte range, path, type,
value and meaning. All APIs and versions of Kafka 4.3 are known. If something cannot be
read, everything else is shown, and the exit code is 1."""
    parser.epilog = """\
  groupcoord dissect 000000110012000400000001000261610001610161 00
  groupcoord dissect --response Heartbeat 4 00000009000000070000000000001b00
  tcpdump -i lo -w - port 9092 | groupcoord dissect --port 9092
  groupcoord dissect data/__consumer_offsets-3/00000000000000000000.log --format json"""
    parser.add_argument(
        "source",
        nargs="*",
        help="the hexadecimal digits of frames, with or without their length prefix, or a file: with such digits, a capture "
        f"(pcap, pcapng), or a file of a segment ({', '.join(SUFFIXES)}); - is stdin (default: stdin)",
    )
    parser.add_argument(
        "--response",
        nargs=2,
        metavar=("API", "VERSION"),
        help="the digits are responses of this API, a name or a number, in this version",
    )
    parser.add_argument(
        "--port",
        dest="ports",
        metavar="PORT",
        type=int,
        action="append",
        default=[],
        help="in a capture, show only connections to this port of a broker; may be repeated (default: all connections)",
    )
    parser.add_argument("--topic", help="the topic of a .log file (default: the topic in the name of its folder)")
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text, or JSON with one object per line (default: text)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Dissect the input and print it; returns the exit code."""
    problems = []
    try:
        for part in _parts(arguments):
            print(_json(part) if arguments.format == "json" else _text(part))
            if part.problem:
                problems.append(part.problem)
    except _InputError as problem:
        return complain("dissect", str(problem), 1)
    if problems:
        more = f" ({len(problems) - 1} more could not be read whole)" if len(problems) > 1 else ""
        return complain("dissect", f"{problems[0]}{more}", 1)
    return 0


def _parts(arguments: argparse.Namespace) -> Iterator[_Part]:
    source = " ".join(arguments.source)
    path = Path(source)
    try:
        if source in ("", "-"):
            name, data = "stdin", sys.stdin.buffer.read()
        elif path.is_file():
            name, data = source, path.read_bytes()
        elif path.is_dir():
            raise _InputError(f"{source} is a folder: name one of the files in it")
        elif len(arguments.source) == 1 and ("." in source or "/" in source):
            raise _InputError(f"there is no file {source}")
        elif len(arguments.source) > 1 and all(Path(each).is_file() for each in arguments.source):
            raise _InputError(f"name one file at a time, not {len(arguments.source)}")
        else:
            name, data = "the argument", source.encode()
    except OSError as error:
        raise _InputError(f"{source}: {error.strerror}") from None
    if data[:4] in _PCAP_MAGIC:
        return _capture(name, data, arguments.ports)
    if path.suffix in SUFFIXES and name == source:
        return _segment(path, data, arguments.topic)
    return _frames(_bytes_of(name, data), arguments.response)


def _bytes_of(name: str, data: bytes) -> bytes:
    """The bytes for the hexadecimal digits in ``data``."""
    text = data.decode("ascii", "replace")
    digits = text.replace("0x", "").translate({ord(mark): None for mark in ":, \t\r\n"})
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        wrong = next((at for at, mark in enumerate(text) if mark not in "0123456789abcdefABCDEFx:, \t\r\n"), None)
        if wrong is not None:
            shown = f"{text[wrong]!r}, character {wrong + 1}, is not a hexadecimal digit"
            raise _InputError(
                f"{name} is neither a capture, nor a file of a segment, nor hexadecimal digits: {shown}"
            ) from None
        raise _InputError(f"{name}: {len(digits)} hexadecimal digits are not whole bytes") from None
    if not found:
        raise _InputError(f"{name} is empty")
    return found


def _frames(data: bytes, response: list[str] | None) -> Iterator[_Part]:
    answered = None if response is None else _api_and_version(*response)
    sized = _are_sized(data, is_request=answered is None)
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4]) if sized else len(data)
        frame = data[at : at + 4 + size]
        if answered is None:
            yield _part(dissect_request(frame, sized=sized), at)
        else:
            yield _part(dissect_response(frame, *answered, sized=sized), at)
        at += len(frame)


def _are_sized(data: bytes, *, is_request: bool) -> bool:
    """Does each frame in ``data`` begin with its length? If not, ``data`` is one frame.

    The lengths have to lead from frame to frame to the end of the data. A request may also be cut short: its first bytes, taken
    for API key and version instead of a length, would be a Produce request of an unknown version.
    """
    at = 0
    while 0 <= at < len(data):
        at += 4 + int.from_bytes(data[at : at + 4], signed=True)
    return at == len(data) or (is_request and data[:2] == b"\0\0" and int.from_bytes(data[:4]) > _HIGHEST_PRODUCE)


_HIGHEST_PRODUCE = APIS[ApiKey.PRODUCE].max_version


def _api_and_version(api: str, version: str) -> tuple[int, int]:
    names = {api_name(key).lower(): int(key) for key in ApiKey}
    key = int(api) if api.isdigit() else names.get(api.lower())
    if key is None:
        otherwise = "it is a name of Kafka, such as JoinGroup, or a number"
        hint = did_you_mean(api.lower(), names, otherwise=otherwise, shown=lambda near: api_name(names[near]))
        raise _InputError(f"--response: there is no API {api}; {hint}")
    if not version.isdigit():
        raise _InputError(f"--response: the version is a number, not {version}")
    return key, int(version)


def _segment(path: Path, data: bytes, topic: str | None) -> Iterator[_Part]:
    folder = partition_folder(path.resolve().parent.name)
    if path.suffix == ".log":
        for position, found in dissect_log(data, topic or (folder and folder.topic)):
            yield _part(found, position)
        return
    if not path.stem.isdigit():
        raise _InputError(
            f"{path}: the name of an index is the first offset of its segment, as in {0:020}{path.suffix}"
        )
    yield _part(dissect_index(data, path.suffix, int(path.stem)), 0)


def _capture(name: str, data: bytes, ports: list[int]) -> Iterator[_Part]:
    try:
        captures: Any = import_module("groupcoord.dissect.tcp_capture")
    except ImportError:
        raise _InputError("to read captures needs dpkt: pip install 'groupcoord[dissect]'") from None
    from groupcoord.dissect.connection_dissector import ConnectionDissector  # noqa: PLC0415 - needs dpkt, too

    dissector = ConnectionDissector()
    try:
        for frame in captures.read_capture(BytesIO(data), ports):
            if isinstance(frame, captures.CaptureProblem):
                yield _Part("", {}, None, frame.reason)
                continue
            found = dissector.dissect(frame)
            at = f"{datetime.fromtimestamp(frame.at_s, UTC):%H:%M:%S.%f}"
            client, server = frame.endpoints
            way = f"{client} → {server}" if frame.is_request else f"{server} → {client}"
            problem = (
                found.problem and f"{at} {way}, {found.title}, byte {found.problem.offset}: {found.problem.reason}"
            )
            said = {"at_s": frame.at_s, "connection": frame.connection, "client": client, "server": server}
            yield _Part(f"{at}  {way}  ", said, found, problem or "")
    except captures.CaptureError as problem:
        raise _InputError(f"{name}: {problem}") from None


def _part(found: Dissection, position: int) -> _Part:
    place = f"byte {position}: " if position else ""
    problem = found.problem and f"byte {position + found.problem.offset}: {found.problem.reason}"
    return _Part(place, {"position": position}, found, problem or "")


def _json(part: _Part) -> str:
    if part.dissection is None:
        return json.dumps({"problem": {"reason": part.problem}}, ensure_ascii=False)
    return json.dumps({**part.said, **part.dissection.as_json()}, ensure_ascii=False)


def _text(part: _Part) -> str:
    if part.dissection is None:
        return part.problem
    title, size, fields, _ = part.dissection
    rows = [(f"{field.start}-{field.end}", field.path, field.type, _value(field.value)) for field in fields]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    place, path, kind = widths[0], min(widths[1], _WIDEST_PATH), min(widths[2], _WIDEST_TYPE)
    lines = [f"{part.place}{title}, {size} bytes"]
    for field, row in zip(fields, rows, strict=True):
        inside = f"in the unpacked bytes of {field.inside}" if field.inside else ""
        notes = "; ".join(note.rstrip(".") for note in (field.meaning, field.description, inside) if note)
        lines.append(f"  {row[0]:>{place}}  {row[1]:<{path}}  {row[2]:<{kind}}  {row[3]}  {notes}".rstrip())
    return "\n".join([*lines, ""])


def _value(value: object) -> str:
    if isinstance(value, bytes):
        more = f"… ({len(value)} bytes)" if len(value) > _BYTES_SHOWN else ""
        return (value[:_BYTES_SHOWN].hex() or '""') + more
    if isinstance(value, uuid.UUID):
        return id_text(value)
    return json.dumps(value, ensure_ascii=False)
