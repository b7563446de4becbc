"""Runs the steps of a run in parallel threads; a step waits for the steps whose results it needs.

A step may only wait for steps that were added before it, and steps start in the order they were added. So there is no deadlock,
however few threads there are: the first unfinished step never waits for one that has not started.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

THREADS = 4
"""How many steps run at a time: while the tasks of one use the cores, Spark plans the others."""


class ParallelSteps:
    """A context manager that exits when all steps are done. If one fails, it calls ``cancel`` to stop the running ones and
    raises the error of the first failed step."""

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
        """Add a step, a function that returns the number of rows of its result."""
        self._rows[name] = self._threads.submit(step)

    def done(self, name: str, rows: int) -> None:
        """Record a step that is done already, with the number of its rows."""
        self._rows[name] = Future()
        self._rows[name].set_result(rows)

    def rows(self, name: str) -> int:
        """Wait for the step ``name``; returns the number of its rows. Raises what it raised."""
        return self._rows[name].result()
