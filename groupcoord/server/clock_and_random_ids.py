"""The clock and the random ids of a cluster that serves real clients."""

import os
import time
import uuid
from collections.abc import Callable

NowMs = Callable[[], int]
"""Returns the current time in milliseconds since 1970; never decreases."""

SecondsUntil = Callable[[int], float | None]
"""In how many seconds of the event loop a clock will reach that time; None if a test moves the clock."""

_READINGS = 10
"""How often a new clock compares the wall clock with the monotonic clock."""


def wall_clock() -> NowMs:
    """A clock that starts at the wall clock's time and then follows the monotonic clock.

    A change of the machine's clock must not lengthen sessions. Kafka measures timers with the monotonic clock, too, and stamps
    records with the wall clock; one clock for both keeps them consistent.
    """
    monotonic_ns, origin_ns = time.monotonic_ns, monotonic_origin_ns()
    return lambda: (monotonic_ns() + origin_ns) // 1_000_000


def monotonic_origin_ns() -> int:
    """The wall clock's time (nanoseconds since 1970) at which the monotonic clock was 0."""
    # If the thread is interrupted between the two readings, the difference is too small: the largest is the true one.
    return max(time.time_ns() - time.monotonic_ns() for _ in range(_READINGS))


class SystemRandomSource:
    """Random ids that cannot be guessed, for a cluster that serves real clients; see ``cluster_core.RandomSource``."""

    def uuid(self) -> uuid.UUID:
        """A random id whose text in Kafka's form does not start with a dash.

        Such an id would look like a command-line option, so Kafka draws another one (``Uuid.randomUuid``).
        """
        while (drawn := uuid.uuid4()).bytes[0] >> 2 == 0b111110:
            pass
        return drawn

    def session_id(self) -> int:
        """A random int32 above 0."""
        while (drawn := int.from_bytes(os.urandom(4)) >> 1) == 0:
            pass
        return drawn

    def next_int(self, bound: int) -> int:
        """A random int from 0 below ``bound``."""
        return int.from_bytes(os.urandom(8)) % bound
