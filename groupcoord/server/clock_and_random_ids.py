"""The types of clocks, and the random ids of a cluster that serves real clients."""

import os
import uuid
from collections.abc import Callable

NowMs = Callable[[], int]
"""Returns the current time in milliseconds since 1970; never decreases."""

SecondsUntil = Callable[[int], float | None]
"""In how many seconds of the event loop a clock will reach that time; None if a test moves the clock."""


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
