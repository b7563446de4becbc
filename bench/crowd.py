"""Sends requests on many connections at once; they are encoded before the measurement, and the responses decoded after it."""

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from bench.servers import Running
from bench.wire import Connection, request_frame
from groupcoord.protocol.apis import APIS, ApiKey
from groupcoord.protocol.framing import parse_response

_PATIENCE_S = 60.0
_SIZE = struct.Struct(">i")
_T = TypeVar("_T")


class Took(NamedTuple):
    """Seconds, and seconds of the server's processor time meanwhile."""

    seconds: float
    processor_seconds: float


class Crowd:
    """``count`` connections to ``server``. ``took`` is what each step took, connecting first."""

    def __init__(self, server: Running, count: int) -> None:
        self.took: list[Took] = []
        self._server = server
        self._sockets: list[socket.socket] = self._clocked(
            lambda: [Connection(server.port).socket for _ in range(count)]
        )
        self._numbers = {connected.fileno(): number for number, connected in enumerate(self._sockets)}
        self._poll = select.epoll()
        for descriptor in self._numbers:
            self._poll.register(descriptor, select.EPOLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._poll.close()
        for connected in self._sockets:
            connected.close()

    def ask(self, key: ApiKey, messages: Sequence[Any]) -> list[Any]:
        """The first of the connections send one of ``messages`` each; their answers, when all have come."""
        frames = [request_frame(key, message) for message in messages]
        answers = self._clocked(lambda: self._exchange(frames))
        api = APIS[key]
        return [parse_response(api, api.max_version, bytes(answer[_SIZE.size :]))[1] for answer in answers]

    def _clocked(self, step: Callable[[], _T]) -> _T:
        before, start = self._server.processor_seconds, time.perf_counter()
        result = step()
        took = time.perf_counter() - start
        self.took.append(Took(took, self._server.processor_seconds - before))
        return result

    def _exchange(self, frames: Sequence[bytes]) -> list[bytearray]:
        for connected, frame in zip(self._sockets, frames, strict=False):
            connected.sendall(frame)
        answers = [bytearray() for _ in frames]
        missing = len(frames)
        while missing:
            ready = self._poll.poll(_PATIENCE_S)
            if not ready:
                raise TimeoutError(f"{missing} of {len(frames)} answers do not come")
            for descriptor, _ in ready:
                number = self._numbers[descriptor]
                data = self._sockets[number].recv(1 << 16)
                if not data:
                    raise ConnectionError("the server closed a connection")
                answer = answers[number]
                answer += data
                missing -= len(answer) >= _SIZE.size and len(answer) == _SIZE.size + _SIZE.unpack_from(answer)[0]
        return answers
