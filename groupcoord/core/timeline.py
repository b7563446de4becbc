"""The iteration order of Kafka's ``TimelineHashMap``, in which a coordinator keeps offsets.

It shows where a client asks for all offsets of a group, and in the order of tombstones. Source: ``BaseHashTable``
(multiplicative hashing by the golden ratio, a table that doubles and never shrinks) and ``SnapshottableHashTable`` (a slot is
emptied from its end).
"""

from typing import TypeVar

from groupcoord.core.java import string_hash

K = TypeVar("K", str, int)
V = TypeVar("V")

_GOLDEN_RATIO = 0x9E37_79B9_7F4A_7C15
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_LEAST_BITS = 1  # a table starts with two slots


class TimelineMap(dict[K, V]):
    """A dict that remembers what it ever made room for: the table it stands for never shrinks.

    Add with ``put``; plain iteration is in order of insertion, ``in_order`` is Kafka's.
    """

    __slots__ = ("_peak",)

    def __init__(self) -> None:
        super().__init__()
        self._peak = 0

    def put(self, key: K, value: V) -> None:
        """Set ``key`` to ``value``; a key that is there keeps its place.

        The table makes room for one more before it looks whether the key is new.
        """
        if len(self) >= self._peak:
            self._peak = len(self) + 1
        self[key] = value

    def in_order(self) -> list[tuple[K, V]]:
        """The items as Kafka iterates over them."""
        bits = _LEAST_BITS
        while self._peak * 3 > 4 << bits:
            bits += 1
        shift = 64 - bits
        newest_first = reversed(self.items())
        return sorted(newest_first, key=lambda item: (_hash(item[0]) * _GOLDEN_RATIO & _MASK) >> shift)


def _hash(key: str | int) -> int:
    """Java's ``hashCode`` of a String or an Integer."""
    return string_hash(key) if isinstance(key, str) else key
