"""Frames and headers of requests and responses: splitting bytes into frames, parsing and encoding. No I/O.

A frame is an int32 length and that many bytes. A request has a header (API key, version, correlation id, client id) and a body;
a response has a correlation id and a body. Source: KIP-482 for the headers, ``NetworkReceive`` for the limits.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.codec.flexible_versions import LazyBytes, Unreadable, skip_tags
from groupcoord.protocol.codec.message_codec import Codec
from groupcoord.protocol.codec.schema import MessageSchema, SchemaField
from groupcoord.protocol.errors import WireError
from groupcoord.protocol.message_dataclass import message

_INT32 = struct.Struct(">i")
_API_AND_VERSION = struct.Struct(">hh")
_SIZE_AND_CORRELATION_ID = struct.Struct(">ii")
_CORRELATION_ID_AND_LENGTH = struct.Struct(">ih")


class FrameBuffer:
    """Collects received bytes and splits them into frames.

    ``max_frame_bytes`` is ``socket.request.max.bytes``: a larger or negative length raises WireError, and the connection must
    be closed, because the start of the next frame is unknown.
    """

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffer: bytes | bytearray = b""
        self._start = 0  # of the next frame

    def __len__(self) -> int:
        """The number of received bytes that are not yet returned in frames."""
        return len(self._buffer) - self._start

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if not self._buffer:  # usual: data has complete frames, and nothing of an earlier frame is left
            self._buffer = data
            return
        if self._start or not isinstance(self._buffer, bytearray):
            self._buffer = bytearray(memoryview(self._buffer)[self._start :])
            self._start = 0
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """The next complete frame without its length, or None if it is incomplete. Raises WireError."""
        buffer, start = self._buffer, self._start + 4
        missing = start - len(buffer)
        if missing > 0:
            return None
        (size,) = _INT32.unpack_from(buffer, start - 4)
        if size < 0:
            raise WireError(f"a frame of {size} bytes", offset=0, field="length")
        if size > self.max_frame_bytes:
            limit = self.max_frame_bytes
            raise WireError(f"a frame of {size} bytes; socket.request.max.bytes is {limit}", offset=0, field="length")
        missing += size
        if missing > 0:
            return None
        end = start + size
        if missing:
            self._start = end
        else:
            self._buffer, self._start = b"", 0
        return bytes(memoryview(buffer)[start:end]) if isinstance(buffer, bytearray) else buffer[start:end]

    def frames(self) -> Iterator[bytes]:
        """All complete frames received so far."""
        while (frame := self.next_frame()) is not None:
            yield frame


@message
class RequestHeader:
    """The request header, of version 1 and 2."""

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None


# Version 2 also has tagged fields. The client id has the old length in both, so that it can be read before the version is
# known to be supported.
REQUEST_HEADER: Codec[RequestHeader] = Codec(
    MessageSchema(
        RequestHeader,
        version=1,
        flexible=False,
        fields=(
            SchemaField("request_api_key", "int16"),
            SchemaField("request_api_version", "int16"),
            SchemaField("correlation_id", "int32"),
            SchemaField("client_id", "string", is_nullable=True),
        ),
    )
)


class Request(NamedTuple):
    """A parsed request; ``message`` is None for an ApiVersions request of an unknown version."""

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    message: Any


class _Route(NamedTuple):
    """How to read a frame with certain first four bytes; ``codec`` is None for an ApiVersions request of an unknown version."""

    api: Api
    version: int
    flexible: bool
    codec: Codec[Any] | None
    upgrade: Callable[[Any, int], Any] | None


_ROUTES: dict[bytes, _Route] = {}


def parse_request(frame: bytes) -> Request:
    """The request in ``frame``. Raises WireError for an unknown API, an unsupported version, or malformed bytes.

    Kafka closes the connection in all these cases but one: ApiVersions of an unknown version is answered, in version 0.
    """
    route = _ROUTES.get(frame[:4])
    if route is None:
        route = _find_route(frame)
    api, version, flexible, codec, upgrade = route
    try:
        correlation_id, length = _CORRELATION_ID_AND_LENGTH.unpack_from(frame, 4)
        at = 10 + length if length > 0 else 10
        client_id = None if length < 0 else str(frame[10:at], "utf-8", "replace")
        if flexible:
            at = skip_tags(frame, at, len(frame)) if frame[at] else at + 1
        elif at > len(frame):
            raise Unreadable
    except (struct.error, Unreadable, IndexError):
        raise _bad_header(api, version, frame) from None
    body = None
    if codec is not None:
        body = codec.decode_from(frame, at)[0]
        if upgrade is not None:
            body = upgrade(body, version)
    return Request(api, version, correlation_id, client_id, body)


def _find_route(frame: bytes) -> _Route:
    try:
        key, version = _API_AND_VERSION.unpack_from(frame)
    except struct.error:
        raise WireError(f"a request of {len(frame)} bytes has no header", offset=0, field="request_api_key") from None
    api = APIS.get(key)
    if api is None:
        raise WireError(f"API key {key} is not served", offset=0, field="request_api_key")
    if api.serves(version):
        codec = api.request_codec(version)
        route = _ROUTES[frame[:4]] = _Route(api, version, codec.flexible, codec, api.upgrade)
        return route
    if key == ApiKey.API_VERSIONS:
        return _Route(api, version, version > api.max_version, None, None)
    served = f"{api.min_version} to {api.max_version}"
    raise WireError(
        f"this version is not served; {served} are",
        api=api.name,
        version=version,
        offset=2,
        field="request_api_version",
    )


def _bad_header(api: Api, version: int, frame: bytes) -> WireError:
    try:
        _, end = REQUEST_HEADER.decode_from(frame, 0)
    except WireError as problem:
        return WireError(problem.reason, api=api.name, version=version, offset=problem.offset, field=problem.field)
    return WireError("they have no end", api=api.name, version=version, offset=end, field="tagged fields")


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, body: Any) -> bytes:
    """The frame of a request, with its length, as a client sends it."""
    codec = api.request_codec(version)
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    payload = REQUEST_HEADER.encode(header) + (b"\0" if codec.flexible else b"") + codec.encode(body)
    return _INT32.pack(len(payload)) + payload


def encode_response(api: Api, version: int, correlation_id: int, body: Any) -> bytes:
    """The frame of a response, with its length, as a server sends it."""
    parts = response_parts(api, version, correlation_id, body)
    return b"".join(map(bytes, parts) if api.key == ApiKey.FETCH else parts)  # type: ignore[arg-type] # only Fetch has others


def response_parts(api: Api, version: int, correlation_id: int, body: Any) -> list[LazyBytes]:
    """The frame of a response in parts; those of a Fetch may be references to a log."""
    codec = api.response_codec(version)
    parts: list[LazyBytes] = [b"", b"\0"] if _has_header_tags(api, codec) else [b""]
    codec.write(body if api.downgrade is None else api.downgrade(body, version), parts.append)
    parts[0] = _SIZE_AND_CORRELATION_ID.pack(4 + sum(map(len, parts)), correlation_id)
    return parts


def parse_response(api: Api, version: int, frame: bytes) -> tuple[int, Any]:
    """(correlation id, message) of the response in ``frame``. Raises WireError."""
    codec = api.response_codec(version)
    try:
        (correlation_id,) = _INT32.unpack_from(frame)
        start = skip_tags(frame, 4, len(frame)) if _has_header_tags(api, codec) else 4
    except (struct.error, Unreadable, IndexError):
        raise WireError("the header has no end", api=api.name, version=version, offset=len(frame)) from None
    return correlation_id, codec.decode(frame, start)


def _has_header_tags(api: Api, codec: Codec[Any]) -> bool:
    """Flexible responses have tagged headers, except ApiVersions: a client reads it before it knows the version."""
    return codec.flexible and api.key != ApiKey.API_VERSIONS
