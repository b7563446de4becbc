"""An event loop of nothing but callbacks: no sockets, no threads, no real time. It runs where a browser runs Python."""

import asyncio
from typing import Any


class CallbackLoop(asyncio.BaseEventLoop):
    """Where another loop would wait for the time of a timer, that time passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self  # what BaseEventLoop asks in each of its rounds
        self._now_s = 0.0

    def time(self) -> float:
        """The time that timers made pass (seconds)."""
        return self._now_s

    def select(self, timeout: float | None) -> list[Any]:
        """There is nothing to read or write; ``timeout`` seconds pass. Raises RuntimeError if nothing will ever happen."""
        if timeout is None:
            raise RuntimeError("every task waits, and there is no timer that could change that")
        self._now_s += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def __del__(self, *_: object) -> None:
        """It has neither sockets nor threads: who forgets it leaves nothing open."""
