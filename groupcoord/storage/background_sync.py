"""Complete segments are flushed to the disk beside the work: a large one can take seconds."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class BackgroundSync:
    """Does one thing after the other in a thread of its own, which there is from the first one on."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], None]) -> "Future[None]":
        """Do ``work`` some time; the future says when, or what went wrong."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "groupcoord-flush")
        return self._executor.submit(work)

    def close(self) -> None:
        """Wait until all is done."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
