"""What a run is at, step by step, for who waits for it."""

import contextlib
import time
from collections.abc import Callable, Iterator


class Progress:
    """Says each step when it is done, with its rows and its time. ``say`` takes a line; ``clock`` gives seconds."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._began = clock()
        self.rows: dict[str, int] = {}
        """Rows of each step that said how many."""

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._clock() - self._began

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Callable[[int], None]]:
        """One step; what it yields takes the number of its rows."""
        began = self._clock()
        counted: list[int] = []
        yield counted.append
        rows = f"{counted[0]:,} rows" if counted else ""
        if counted:
            self.rows[name] = counted[0]
        self._say(f"{name:<24}{rows:>20}  {self._clock() - began:7.1f} s")
