"""``java.util.Random``, so that what Kafka decides by a seeded chance can be decided again."""

from typing import Any, Protocol

_MASK = (1 << 48) - 1


class Random(Protocol):
    """A source of chance."""

    def next_int(self, bound: int) -> int:
        """A number from 0 up to, not including, ``bound``."""
        ...


class JavaRandom:
    """The linear congruential generator of 48 bits; ``seed`` is any Java ``long``."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & _MASK

    def next_bits(self, bits: int) -> int:
        """The next ``bits`` bits, unsigned."""
        self._state = self._state * 0x5DEECE66D + 0xB & _MASK
        return self._state >> 48 - bits

    def next_int(self, bound: int) -> int:
        """``nextInt(bound)``."""
        return bounded(self.next_bits, bound)


def bounded(next_bits: Any, bound: int) -> int:
    """A number below ``bound``, which must be positive, from a generator of bits.

    Multiples are cut off where they would not fit 31 bits, so that every number is as likely as any other.
    """
    number: int = next_bits(31)
    if bound & bound - 1 == 0:
        return bound * number >> 31
    while number - number % bound + bound - 1 >= 1 << 31:
        number = next_bits(31)
    return number % bound


def shuffle(items: list[Any], random: Random) -> None:
    """``Collections.shuffle``: from the end, each changes places with one that is not behind it."""
    for size in range(len(items), 1, -1):
        other = random.next_int(size)
        items[size - 1], items[other] = items[other], items[size - 1]
