"""A stateless pseudorandom function: a draw depends on a key and a purpose, not on earlier draws.

So a plan with fewer actions gets the same network delays, and a message that is not sent does not change the delay of others.
The function is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
"""

import uuid

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_GOLDEN = 0x9E37_79B9_7F4A_7C15
_FRACTION_BITS = 53


def draw(key: int, *purpose: int) -> int:
    """64 pseudorandom bits for ``purpose``."""
    state = key
    for number in purpose:
        state = (state ^ number) + _GOLDEN & _MASK
        state = (state ^ state >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D0_49BB_1331_11EB & _MASK
        state ^= state >> 31
    return state


class Prng:
    """A sequence of draws for one key; each simulated cluster and member has one."""

    def __init__(self, key: int) -> None:
        self._key = key
        self._draws = 0

    def _next(self) -> int:
        self._draws += 1
        return draw(self._key, self._draws)

    def uuid(self) -> uuid.UUID:
        """A random UUID whose base64 text does not start with a dash (Kafka's ``Uuid.randomUuid``)."""
        while (made := uuid.UUID(int=self._next() << 64 | self._next(), version=4)).bytes[0] >> 2 == 0b111110:
            pass
        return made

    def session_id(self) -> int:
        """A positive int32."""
        return 1 + self.next_int((1 << 31) - 1)

    def next_int(self, bound: int) -> int:
        """0 <= result < ``bound``."""
        return self._next() % bound

    def fraction(self) -> float:
        """0 <= result < 1."""
        return (self._next() >> 64 - _FRACTION_BITS) / (1 << _FRACTION_BITS)
