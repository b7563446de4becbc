"""Sends raw requests over one socket, without a client library."""

import socket
import struct
from typing import Any

from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import encode_request, parse_response


def request_frame(key: ApiKey, message: Any, version: int | None = None) -> bytes:
    """The bytes of a request, at the newest version unless told otherwise."""
    api = APIS[key]
    return encode_request(api, api.max_version if version is None else version, 1, "bench", message)


class Connection:
    """One connection; ``ask`` sends a request and returns the answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, key: ApiKey, message: Any, version: int | None = None) -> None:
        """Send a request without waiting."""
        self.socket.sendall(request_frame(key, message, version))

    def receive(self, key: ApiKey, version: int | None = None) -> Any:
        """The next answer, which is one of ``key``."""
        api = APIS[key]
        return parse_response(api, api.max_version if version is None else version, self.receive_bytes())[1]

    def receive_bytes(self) -> bytes:
        """The next answer as it came, without its length."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def ask(self, key: ApiKey, message: Any, version: int | None = None) -> Any:
        """Send a request and return its answer."""
        self.send(key, message, version)
        return self.receive(key, version)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return bytes(data)
