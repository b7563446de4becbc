"""One connection of a client that behaves: a request, its answer."""

import socket
import struct
import time
from types import TracebackType
from typing import Any, Self

from groupcoord.protocol.apis import APIS, Api, ApiKey
from groupcoord.protocol.framing import encode_request, parse_response

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


class Talk:
    """A connection to ``address``. Every method raises OSError if it breaks or takes longer than ``patience_s``."""

    def __init__(self, address: tuple[str, int], client_id: str = "well-behaved", patience_s: float = 20.0) -> None:
        self.longest_ms = 0.0
        """The longest that an answer has taken so far."""
        self._client_id = client_id
        self._socket = socket.create_connection(address, patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, request: Any) -> Any:
        """The answer to ``request``."""
        api = APIS[key]
        version = version_of(api)
        self._correlation_id += 1
        frame = encode_request(api, version, self._correlation_id, self._client_id, request)
        asked_at = time.perf_counter()
        self._socket.sendall(frame)
        (size,) = struct.unpack(">i", self._exactly(4))
        answer = self._exactly(size)
        self.longest_ms = max(self.longest_ms, (time.perf_counter() - asked_at) * 1000)
        correlation_id, message = parse_response(api, version, answer)
        if correlation_id != self._correlation_id:
            raise ConnectionError(f"an answer to request {correlation_id}, not {self._correlation_id}")
        return message

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server has closed the connection")
            data += more
        return bytes(data)
