"""A ``groupcoord.testing.Cluster`` without sockets and threads, whose members are all in this process, and an event loop
without them, which runs in a browser (Pyodide)."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from groupcoord.core.effects import Effect
from groupcoord.server.server import Server
from groupcoord.testing.auto_member import AutoMember
from groupcoord.testing.cluster import Cluster
from groupcoord.testing.engine import Engine


class CallbackLoop(asyncio.BaseEventLoop):
    """Instead of waiting for the next timer, it advances its own time to it at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self  # BaseEventLoop calls its ``select`` in each round
        self._now_s = 0.0

    def time(self) -> float:
        """The loop's own time (seconds)."""
        return self._now_s

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the time by ``timeout`` seconds. Raises RuntimeError if there is no timer and nothing can ever happen."""
        if timeout is None:
            raise RuntimeError("every task waits, and there is no timer that could change that")
        self._now_s += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no I/O events."""

    def __del__(self, *_: object) -> None:
        """Suppress asyncio's warning about a loop that was not closed: there is nothing to close."""


FIRST_PORT = 9092
"""The first of the ports that FindCoordinator and Metadata return, one for each broker, although nothing listens there."""


class SocketlessServer(Server):
    """A server without sockets. Long work runs at once, because there is no thread for it."""

    async def startup(self) -> None:
        """Start to accept requests."""
        await super().startup()
        self.cluster.use_worker(None)

    async def _listen(self, brokers: int) -> None:
        self.cluster.listening_at(self.host, FIRST_PORT)
        for broker in range(brokers):
            self._places[broker, 0] = self.host, FIRST_PORT + broker
            if broker and self._brokers is not None:
                self._brokers.listening_at(broker, self.host, FIRST_PORT + broker)


class _SocketlessEngine(Engine):
    _server_class: ClassVar[type[Server]] = SocketlessServer


class SocketlessCluster(Cluster):
    """A cluster without sockets. ``consumers`` returns at once: the player advances the clock until the group is stable."""

    _engine_class: ClassVar[type[Engine]] = _SocketlessEngine
    next_name: str | None = None
    """The client id of the next member or producer; None: generated."""

    async def end(self) -> None:
        """Stop for good. Raises the unexpected errors of the server; fault rules need not have acted."""
        self._problems += await self._engine.end()
        await self.check(rules=False)

    def apply(self, effects: Iterable[Effect], action: str) -> None:
        """Execute the effects of an administrative action."""
        self._engine.apply(effects, action)

    def _next_client_id(self, group: str) -> str:
        name, self.next_name = self.next_name, None
        return name or super()._next_client_id(group)

    async def _wait_for_members(self, group: str, new: Sequence[AutoMember], timeout: float | None) -> None:  # noqa: ARG002, ASYNC109
        await self.settle()
