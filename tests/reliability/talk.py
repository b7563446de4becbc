"""One connection of a client, over a plain socket: its requests, and their answers."""

import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.framing import encode_request, parse_response

Address = tuple[str, int]

API_OF: dict[type, Api] = {api.request: api for api in APIS.values()}
VERSIONS = {
    # The last that know topics by name.
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    # The last in which one request is enough to join.
    ApiKey.JOIN_GROUP: 3,
}
"""What is spoken with a server that is attacked; the newest version of all other APIs."""


def version_of(api: Api) -> int:
    """The version in which ``api`` is spoken."""
    return VERSIONS.get(api.key, api.max_version)


def frame_of(request: Any, version: int | None = None, correlation_id: int = 1) -> bytes:
    """The bytes of a request."""
    api = API_OF[type(request)]
    return encode_request(api, version_of(api) if version is None else version, correlation_id, "attack", request)


class Talk:
    """A connection to ``address``. Every method raises OSError if it breaks or takes longer than ``patience_s``."""

    def __init__(self, address: Address, patience_s: float = 20.0) -> None:
        self.socket = socket.create_connection(address, patience_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._unanswered: deque[tuple[int, Api, int]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer to ``request``."""
        self.send(request, version)
        return self.answer()

    def send(self, request: Any, version: int | None = None, spoil: Callable[[bytes], bytes] = bytes) -> None:
        """Send ``request``, spoiled, and do not wait for its answer."""
        api = API_OF[type(request)]
        self._correlation_id += 1
        spoken = version_of(api) if version is None else version
        self._unanswered.append((self._correlation_id, api, spoken))
        self.socket.sendall(spoil(frame_of(request, spoken, self._correlation_id)))

    def answer(self) -> Any:
        """The answer to the oldest request that has none yet."""
        expected, api, version = self._unanswered.popleft()
        (size,) = struct.unpack(">i", self._exactly(4))
        correlation_id, message = parse_response(api, version, self._exactly(size))
        if correlation_id != expected:
            raise ConnectionError(f"an answer to request {correlation_id}, not {expected}")
        return message

    def hears(self, seconds: float = 0.0) -> bool:
        """Does something come, or the end, within so long?"""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server has closed the connection")
            data += more
        return bytes(data)
