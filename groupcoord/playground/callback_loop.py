"""CallbackLoop, an asyncio event loop without sockets, threads and real time, which runs in a browser (Pyodide)."""

import asyncio
from typing import Any


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
