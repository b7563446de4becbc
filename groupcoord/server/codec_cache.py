"""A heartbeat and its answer differ from the ones before in the correlation id alone: they are decoded and encoded once.

The last short request and response of each connection are remembered. They are immutable, so one object can be used twice.
"""

import struct
from typing import Any

from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.codec.flexible_versions import LazyBytes
from groupcoord.protocol.framing import encode_response, parse_request, response_parts

SHORT_BYTES = 256
"""Longer frames are not remembered, so that a connection does not keep its last batch in memory."""

_new = tuple.__new__
_FETCH = ApiKey.FETCH
_INT32 = struct.Struct(">i")


class RequestCache:
    """``parse_request`` for one connection, remembering its last short request."""

    __slots__ = ("_api_and_version", "_broker", "_client_host", "_listener", "_number", "_parsed", "_rest")

    def __init__(self, number: int, client_host: str, broker: int = 0, listener: int = 0) -> None:
        self._number = number
        self._client_host = client_host
        self._broker = broker
        self._listener = listener
        self._api_and_version: bytes | None = None
        self._rest: bytes | None = None  # what follows the correlation id
        self._parsed: tuple[Any, int, str | None, Any] = (None, -1, None, None)

    def read(self, frame: bytes) -> tuple[Call, Any]:
        """The call and the message in ``frame``. Raises WireError."""
        if frame[8:] == self._rest and frame[:4] == self._api_and_version:
            api, version, client_id, message = self._parsed
            (correlation_id,) = _INT32.unpack_from(frame, 4)
        else:
            api, version, correlation_id, client_id, message = parse_request(frame)
            if len(frame) <= SHORT_BYTES:
                self._api_and_version, self._rest = frame[:4], frame[8:]
                self._parsed = api, version, client_id, message
        # Past the constructor that NamedTuple writes in Python: half the time, for every request there is.
        call = self._number, correlation_id, api, version, client_id, self._client_host, self._broker, self._listener
        return _new(Call, call), message


class ResponseCache:
    """``encode_response`` for one connection, remembering its last short response."""

    __slots__ = ("_api", "_response", "_rest", "_size", "_version")

    def __init__(self) -> None:
        self._api: Any = None
        self._version = -1
        self._response: Any = None
        self._size = b""
        self._rest = b""  # what follows the correlation id

    def write(self, call: Call, response: Any) -> bytes | list[LazyBytes]:
        """The frame that answers ``call``, in parts if some of it is still to be read. Raises what the encoder raises."""
        _, correlation_id, api, version, _, _, _, _ = call
        if response is self._response and version == self._version and api is self._api:
            return self._size + _INT32.pack(correlation_id) + self._rest
        if api.key is _FETCH:
            parts = response_parts(api, version, correlation_id, response)
            copied = [part for part in parts if isinstance(part, bytes)]
            if len(copied) < len(parts):
                return parts
            data = b"".join(copied)
        else:
            data = encode_response(api, version, correlation_id, response)
        if len(data) <= SHORT_BYTES:
            self._api, self._version, self._response = api, version, response
            self._size, self._rest = data[:4], data[8:]
        return data
