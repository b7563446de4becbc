"""Requests into frames, and frames into plain values that can be shown, normalised and compared.

A value is shown with exactly the fields that its version has on the wire, in wire order. Bytes that no field accounts for, or
that are not what the values would be written as, are reported as ``oddities``: the comparison is about every byte.
"""

import dataclasses
import struct
import uuid
from typing import Any, NamedTuple

from groupcoord.protocol.apis import APIS, Api
from tests.conformance.batches import shown_batches
from tests.conformance.kafka_format import Format, Unreadable, format_of
from tests.conformance.plain import text_of

_BY_REQUEST = {api.request: api for api in APIS.values()}


class Answer(NamedTuple):
    """A decoded response: ``message`` has the version's fields as attributes, ``shown`` the same as plain values."""

    message: Any
    shown: dict[str, Any]


def api_of(message: Any) -> Api:
    """The API that ``message`` is a request of."""
    return _BY_REQUEST[type(message)]


def api_named(name: str) -> Api:
    """The API called ``name``, such as ``JoinGroup``."""
    return next(api for api in APIS.values() if api.name == name)


def request_frame(message: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """What goes onto the wire, length included."""
    api = api_of(message)
    form = _format(api, version, "request")
    payload = header(api.key, version, correlation_id, client_id, flexible=form.flexible) + form.write(message)
    return struct.pack(">i", len(payload)) + payload


def header(api_key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool) -> bytes:
    """A request header; its client id has the old layout even in flexible versions (KIP-511)."""
    name = b"" if client_id is None else client_id.encode()
    start = struct.pack(">hhih", api_key, version, correlation_id, -1 if client_id is None else len(name))
    return start + name + (b"\x00" if flexible else b"")


def shown_request(message: Any, version: int) -> dict[str, Any]:
    """``message`` with the fields that ``version`` carries."""
    form = _format(api_of(message), version, "request")
    return _shown_entity(form.read(form.write(message), 0)[0])


def read_answer(api: Api, version: int, frame: bytes, correlation_id: int) -> Answer:
    """The response in ``frame``. Raises Unreadable when it is not one."""
    form = _format(api, version, "response")
    entity, start, size = _read(form, api, frame)
    shown = _shown_entity(entity)
    oddities = []
    (echoed,) = struct.unpack_from(">i", frame)
    if echoed != correlation_id:
        oddities.append("another request's correlation id")
    if start == 5 and frame[4] != 0:
        oddities.append("tagged fields in the header")
    if len(frame) > start + size:
        oddities.append(f"{len(frame) - start - size} bytes behind the response")
    if form.write(entity) != frame[start : start + size]:
        oddities.append(f"not written as expected: {frame[start : start + size].hex()}")
    if oddities:
        shown["oddities"] = oddities
    return Answer(entity, shown)


def read_message(api: Api, version: int, frame: bytes) -> Any:
    """The message of the response in ``frame``, which nobody is to be shown. Raises Unreadable when it is not one."""
    return _read(_format(api, version, "response"), api, frame)[0]


def _read(form: Format, api: Api, frame: bytes) -> tuple[Any, int, int]:
    """(entity, where it begins, how many bytes it took)."""
    # ApiVersions answers with the old header in every version (KIP-511).
    start = 5 if form.flexible and api.name != "ApiVersions" else 4
    if len(frame) < start:
        raise Unreadable(f"a response of {len(frame)} bytes")
    entity, size = form.read(frame, start)
    return entity, start, size


def _format(api: Api, version: int, kind: str) -> Format:
    return format_of(api.key.name.lower(), version, kind)


def _shown(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _shown_entity(value)
    if isinstance(value, tuple):
        return [_shown(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return text_of(bytes(value))
    if isinstance(value, uuid.UUID):
        return str(value)
    return value


def _shown_entity(entity: Any) -> dict[str, Any]:
    shown = {field.name: _shown(getattr(entity, field.name)) for field in dataclasses.fields(entity)}
    records = getattr(entity, "records", None)
    if isinstance(records, bytes | bytearray | memoryview):
        shown["records"] = shown_batches(bytes(records))
    return shown
