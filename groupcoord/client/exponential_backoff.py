"""The exponential back-off with jitter of Kafka's clients (``org.apache.kafka.common.utils.ExponentialBackoff``)."""

from collections.abc import Callable

JITTER = 0.2
_ENOUGH_DOUBLINGS = 62


class ExponentialBackoff:
    """Delays double from ``first_ms`` up to ``most_ms``, plus or minus 20 %; ``chance`` returns a number from 0 up to 1."""

    def __init__(self, first_ms: int, most_ms: int, chance: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._chance = chance

    def delay_ms(self, attempts: int) -> int:
        """The delay after ``attempts`` failures in a row, not counting the latest."""
        wait = min(self._first_ms << min(attempts, _ENOUGH_DOUBLINGS), self._most_ms)
        return round(wait * (1 + JITTER * (2 * self._chance() - 1)))
