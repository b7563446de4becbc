"""The clock of servers and clients: wall-clock time that never runs backwards."""

import time
from collections.abc import Callable

_READINGS = 10
"""How often a new clock compares the wall clock with the monotonic clock."""


def wall_clock() -> Callable[[], int]:
    """A clock (milliseconds since 1970) that starts at the wall clock's time and then follows the monotonic clock.

    A change of the machine's clock must not lengthen sessions. Kafka measures timers with the monotonic clock, too, and stamps
    records with the wall clock; one clock for both keeps them consistent.
    """
    monotonic_ns, origin_ns = time.monotonic_ns, monotonic_origin_ns()
    return lambda: (monotonic_ns() + origin_ns) // 1_000_000


def monotonic_origin_ns() -> int:
    """The wall clock's time (nanoseconds since 1970) at which the monotonic clock was 0."""
    # If the thread is interrupted between the two readings, the difference is too small: the largest is the true one.
    return max(time.time_ns() - time.monotonic_ns() for _ in range(_READINGS))
