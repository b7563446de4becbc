"""How long to wait before trying again: twice as long every time, up to a limit, and never all clients at once (KIP-580)."""

from collections.abc import Callable

JITTER = 0.2
_ENOUGH_DOUBLINGS = 62


class Backoff:
    """Waits from ``first_ms`` up to ``most_ms``, give or take a fifth; ``chance`` answers a number from 0 up to 1."""

    def __init__(self, first_ms: int, most_ms: int, chance: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._chance = chance

    def delay_ms(self, attempts: int) -> int:
        """What to wait after ``attempts`` failures in a row, the latest not counted. Source: ``ExponentialBackoff``."""
        wait = min(self._first_ms << min(attempts, _ENOUGH_DOUBLINGS), self._most_ms)
        return round(wait * (1 + JITTER * (2 * self._chance() - 1)))
