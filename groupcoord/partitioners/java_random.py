"""``java.util.Random`` and ``Collections.shuffle``, so that seeded random choices of Kafka come out the same here."""

from typing import Any, Protocol

_MASK = (1 << 48) - 1


class Random(Protocol):
    """A source of random numbers."""

    def next_int(self, bound: int) -> int:
        """A number from 0 up to, not including, ``bound``."""
        ...


class JavaRandom:
    """The 48-bit linear congruential generator; ``seed`` is any Java ``long``."""

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

    Values beyond the last full multiple of ``bound`` in 31 bits are drawn again, so that all numbers are equally likely.
    """
    number: int = next_bits(31)
    if bound & bound - 1 == 0:
        return bound * number >> 31
    while number - number % bound + bound - 1 >= 1 << 31:
        number = next_bits(31)
    return number % bound


def shuffle(items: list[Any], random: Random) -> None:
    """``Collections.shuffle``: from the end, each item is swapped with one at or before its index."""
    for size in range(len(items), 1, -1):
        other = random.next_int(size)
        items[size - 1], items[other] = items[other], items[size - 1]
