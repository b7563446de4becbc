"""``HashMap`` and ``HashSet`` with Java's iteration order, which decides ties in assignors, and is visible in records.

A table is iterated bucket by bucket. ``put`` adds a new key at the end of its bucket, ``computeIfAbsent`` at the start, and
resizes only at the next call. A bucket with too many keys makes a table of less than 64 buckets grow. (A larger table turns
such a bucket into a tree, whose order is not reproduced: that takes numbers a multiple of 16 apart.)
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_DEFAULT = 16
_CROWDED = 8
_SMALL_TABLE = 64
"""``MIN_TREEIFY_CAPACITY``."""
_OWN_BUCKETS = 0xFFFF
"""Numbers up to here are their own hash, so that each has its own bucket if there are enough."""


def table_size(room: int) -> int:
    """``HashMap.tableSizeFor``: the smallest power of two that is at least ``room``."""
    return 1 << (room - 1).bit_length() if room > 1 else 1


def size_for(entries: int) -> int:
    """The initial capacity for so many ``entries`` in Kafka, and in Java's copies: ``(int) (entries / 0.75f + 1)``."""
    return table_size(int(entries / 0.75 + 1))


class JavaMap(Generic[K, V]):
    """A ``HashMap`` with ``size`` initial buckets; of ``hash_code(key)`` only the lower 32 bits count."""

    __slots__ = ("_back", "_crowds", "_entries", "_front", "_hash_code", "_size")

    def __init__(self, hash_code: Callable[[K], int], size: int = _DEFAULT) -> None:
        self._hash_code = hash_code
        self._size = size
        self._entries: dict[K, tuple[int, int, V]] = {}
        """Key → its spread hash, a number that orders the keys of one bucket, and the value."""
        self._crowds = [0] * min(size, _SMALL_TABLE)
        """The number of keys in each bucket, while the table is small."""
        self._front = self._back = 0

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, key: K) -> V:
        return self._entries[key][2]

    def put(self, key: K, value: V) -> None:
        """Add ``key``, which must be new."""
        self._back += 1
        self._insert(key, self._back, value, _CROWDED)
        if 4 * len(self._entries) > 3 * self._size:
            self._grow()

    def computed(self, key: K, make: Callable[[], V]) -> V:
        """``computeIfAbsent``: the value of ``key``, created if there is none."""
        if 4 * len(self._entries) > 3 * self._size:
            self._grow()
        if (entry := self._entries.get(key)) is not None:
            return entry[2]
        self._front -= 1
        value = make()
        self._insert(key, self._front, value, _CROWDED - 1)
        return value

    def replace(self, key: K, value: V) -> None:
        """Set the value of ``key``, which must exist."""
        spread, number, _ = self._entries[key]
        self._entries[key] = spread, number, value

    def remove(self, key: K) -> None:
        """Remove ``key``. Raises KeyError."""
        spread = self._entries.pop(key)[0]
        self._crowds[spread & len(self._crowds) - 1] -= 1

    def items(self) -> list[tuple[K, V]]:
        """Keys and values in Java's order."""
        return [(key, self._entries[key][2]) for key in self.listed()]

    def listed(self) -> list[K]:
        """The keys in Java's order."""
        entries, mask = self._entries, self._size - 1

        def place(key: K) -> tuple[int, int]:
            spread, number, _ = entries[key]
            return spread & mask, number

        return sorted(entries, key=place)

    def _insert(self, key: K, number: int, value: V, most: int) -> None:
        """Add ``key`` as ``number``. If its bucket has ``most`` other keys or more, a small table grows."""
        spread = _spread(self._hash_code(key))
        self._entries[key] = spread, number, value
        bucket = spread & len(self._crowds) - 1
        self._crowds[bucket] += 1
        if self._crowds[bucket] > most and self._size < _SMALL_TABLE:
            self._grow()

    def _grow(self) -> None:
        self._size *= 2
        self._crowds = [0] * min(self._size, _SMALL_TABLE)
        for spread, _, _ in self._entries.values():
            self._crowds[spread & len(self._crowds) - 1] += 1


class IntSet:
    """A ``HashSet<Integer>`` with ``size`` initial buckets."""

    __slots__ = ("_numbers", "_size")

    def __init__(self, size: int = _DEFAULT) -> None:
        self._numbers: dict[int, None] = {}
        self._size = size

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        """Add ``number``, unless it is in the set."""
        numbers, size = self._numbers, self._size
        if number in numbers:
            return
        if size < _SMALL_TABLE and number >= size and len(numbers) >= _CROWDED:
            mask = size - 1
            if sum(not (other ^ number) & mask for other in numbers) >= _CROWDED:
                self._size *= 2
        numbers[number] = None
        if 4 * len(numbers) > 3 * self._size:
            self._size *= 2

    def remove(self, number: int) -> None:
        """Remove ``number``. Raises KeyError."""
        del self._numbers[number]

    def listed(self) -> list[int]:
        """The numbers in Java's order."""
        mask = self._size - 1
        if max(self._numbers, default=0) <= min(mask, _OWN_BUCKETS):
            return sorted(self._numbers)
        return sorted(self._numbers, key=lambda number: _spread(number) & mask)


def int_order(numbers: Iterable[int], size: int = _DEFAULT) -> list[int]:
    """The distinct ``numbers`` in the order of a map or set with ``size`` initial buckets to which they were added one by
    one."""
    made = IntSet(size)
    for number in numbers:
        made.add(number)
    return made.listed()


def copied_set(numbers: Iterable[int]) -> IntSet:
    """``new HashSet<>(numbers)``, with ``numbers`` in their iteration order."""
    listed = list(numbers)
    copy = IntSet(max(_DEFAULT, size_for(len(listed))))
    for number in listed:
        copy.add(number)
    return copy


def slots_of_copy(size: int) -> int:
    """The number of buckets of a ``HashMap`` that was copied from one with ``size`` entries."""
    return size_for(size) if size else _DEFAULT


def _spread(hash_code: int) -> int:
    unsigned = hash_code & 0xFFFFFFFF
    return unsigned ^ unsigned >> 16
