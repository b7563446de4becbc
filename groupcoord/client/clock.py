"""The clock of clients."""

import time
from collections.abc import Callable


def wall_clock() -> Callable[[], int]:
    """Milliseconds since 1970 that never go back: set at the wall clock's time, then following the monotonic one."""
    origin_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + origin_ns) // 1_000_000
