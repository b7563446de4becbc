"""The clock of the consumer and the producer: wall-clock time that never runs backwards."""

import time
from collections.abc import Callable


def wall_clock() -> Callable[[], int]:
    """A function that returns milliseconds since 1970: the wall clock's time now, continued by the monotonic clock."""
    origin_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + origin_ns) // 1_000_000
