"""Steps that run side by side, each as soon as those are done that it waits for.

A step may wait for steps that were added before it, and they are begun in that order: so however few threads there are, the
first one that is not done never waits for one that has not begun.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

THREADS = 4
"""How many steps there are at a time: while the tasks of one have the cores, others are planned."""


class ParallelSteps:
    """A context manager, which ends when all steps are done. Raises what the first of them that failed raised; before that,
    ``cancel`` ends what others are at."""

    def __init__(self, cancel: Callable[[], None], threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="step")
        self._cancel = cancel
        self._rows: dict[str, Future[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        is_whole = False
        try:
            if kind is None:
                for name in list(self._rows):
                    self.rows(name)
                is_whole = True
        finally:
            for one in self._rows.values():
                one.cancel()
            if not is_whole:
                self._cancel()
            self._threads.shutdown()

    def add(self, name: str, step: Callable[[], int]) -> None:
        """One more step, which gives the number of its rows."""
        self._rows[name] = self._threads.submit(step)

    def done(self, name: str, rows: int) -> None:
        """A step that is done already."""
        self._rows[name] = Future()
        self._rows[name].set_result(rows)

    def rows(self, name: str) -> int:
        """Wait for the step ``name``; returns the number of its rows. Raises what it raised."""
        return self._rows[name].result()
