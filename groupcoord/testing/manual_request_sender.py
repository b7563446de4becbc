"""ManualRequestSender sends the requests of manual members and producers at once, and returns a future of each response."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from groupcoord.protocol.apis import API_BY_REQUEST
from groupcoord.testing.in_process_transport import MemberConnection
from groupcoord.testing.waiting import TIMEOUT_S, WaitTimeoutError

T = TypeVar("T")
Send = Callable[..., None]
"""An ``ask_…`` method of a MemberConnection, bound to the key of the coordinator or to the partition of the leader."""


class ManualRequestSender:
    """The requests of a member or producer on one connection. They go to the ``coordinator`` unless ``to`` is given."""

    def __init__(self, connection: MemberConnection, coordinator: Send) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._open: set[asyncio.Future[Any]] = set()

    @property
    def client_id(self) -> str:
        """The client id in the requests."""
        return self._connection.client_id

    def ask(
        self, request: Any, finish: Callable[[Any], T], *, version: int | None = None, to: Send | None = None
    ) -> "asyncio.Future[T]":
        """Send ``request``; the result of the future is ``finish(response)``.

        If that is a request again, it is sent, too, and its response awaited. The future fails with WaitTimeoutError or
        ConnectionResetError.
        """
        send = self._coordinator if to is None else to
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._open.add(future)
        name = API_BY_REQUEST[type(request)].name

        def fail(error: Exception) -> None:
            if not future.done():
                future.set_exception(error)

        why = f"{name} of {self.client_id} was not answered within {TIMEOUT_S:g} s"
        too_late = WaitTimeoutError(f"{why}: it waits for others, or a rule keeps the answer back")
        timer = loop.call_later(TIMEOUT_S, fail, too_late)

        def done(_: object) -> None:
            timer.cancel()
            self._open.discard(future)

        future.add_done_callback(done)

        def answered(response: Any) -> None:
            if response is None:
                fail(ConnectionResetError(f"the connection of {self.client_id} was closed: {name}"))
                return
            result: Any = finish(response)
            if future.done():
                return  # the caller has given up, but ``finish`` has updated the member
            if type(result) in API_BY_REQUEST:
                send(result, answered, version=version)
            else:
                future.set_result(result)

        send(request, answered, version=version)
        return future

    def close(self) -> None:
        """Close the connection, and cancel all pending futures."""
        self._connection.close()
        for future in tuple(self._open):
            future.cancel()
