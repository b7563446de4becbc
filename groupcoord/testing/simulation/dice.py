"""Chance as a function: what is drawn depends on a key and on what it is drawn for, and on nothing that was drawn before.

So a plan with fewer actions meets the same network, and a message that is never sent changes nothing for those that are.
The function is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators), which is plain arithmetic.
"""

import uuid

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_FRACTION_BITS = 53


def drawn(key: int, *about: int) -> int:
    """64 bits for ``about``."""
    state = key
    for number in about:
        state = (state ^ number) + _GOLDEN & _MASK
        state = (state ^ state >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D0_49BB_1331_11EB & _MASK
        state ^= state >> 31
    return state


class Stream:
    """One draw after the other, from a key; has what a node wants to be given as its chance."""

    def __init__(self, key: int) -> None:
        self._key = key
        self._drawn = 0

    def _next(self) -> int:
        self._drawn += 1
        return drawn(self._key, self._drawn)

    def uuid(self) -> uuid.UUID:
        """An id of which Kafka's text does not start with a dash, as Kafka draws them (``Uuid.randomUuid``)."""
        while (made := uuid.UUID(int=self._next() << 64 | self._next(), version=4)).bytes[0] >> 2 == 0b111110:
            pass
        return made

    def session_id(self) -> int:
        """An int32 above 0."""
        return 1 + self.next_int((1 << 31) - 1)

    def next_int(self, bound: int) -> int:
        """An int from 0 up to ``bound``."""
        return self._next() % bound

    def fraction(self) -> float:
        """A number from 0 up to 1."""
        return (self._next() >> 64 - _FRACTION_BITS) / (1 << _FRACTION_BITS)
