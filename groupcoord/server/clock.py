"""The clock of a server: milliseconds since 1970 that never go back."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Says how late it is, in milliseconds since 1970; never less than it said before."""

SecondsUntil = Callable[[int], float | None]
"""Says in how many of the event loop's seconds such a clock will show that time; None if that is up to somebody else."""


def wall_clock() -> Clock:
    """A clock that starts at the wall clock's time and from then on follows the monotonic one.

    Somebody who sets the machine's clock back must not stretch everybody's sessions. Kafka measures its timers with the
    monotonic clock too, and stamps records with the wall clock's time; one clock for both keeps the two consistent.
    """
    monotonic_ns = time.monotonic_ns
    origin_ns = time.time_ns() - monotonic_ns()
    return lambda: (monotonic_ns() + origin_ns) // 1_000_000
