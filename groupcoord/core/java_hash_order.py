"""Java's string hash, and the iteration orders of ``HashMap`` and Kafka's ``TimelineHashMap``, which are visible to clients.

The hash maps groups to partitions of ``__consumer_offsets``. The order decides who becomes leader when a leader leaves, which
assignor is chosen when votes are tied, in which order members are listed, and, in a ``TimelineHashMap``, the order of all
offsets of a group.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import mul
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_SHORT = 128
_POWERS = tuple(pow(31, exponent, 1 << 32) for exponent in range(_SHORT))
_CACHED_CHARACTERS = 249
"""The length of the longest topic name; hashes of longer texts are not cached, so that clients cannot fill the memory."""


def string_hash(text: str) -> int:
    """``String.hashCode()``: over UTF-16 code units, as a signed 32-bit integer."""
    if text.isascii() and len(text) <= _SHORT:  # nearly always, and this takes a third of the time
        value: int = sum(map(mul, reversed(text.encode()), _POWERS)) & 0xFFFFFFFF
    else:
        value = _long_hash(text.encode("utf-16-le", "surrogatepass"))
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value


def _long_hash(units: bytes) -> int:
    """The hash of ``units`` of 16 bits, without a step for each: as one large number that is folded in half repeatedly.

    Its lanes of 64 bits start with four units each, and have room for the product of two 32-bit numbers.
    """
    lanes = 1 << ((len(units) + 7) // 8 - 1).bit_length()
    number = int.from_bytes(units, "little") << 64 * lanes - 8 * len(units)  # leading zeros change nothing
    unit = _mask(b"\xff\xff", lanes)
    value = number & unit
    for shift in (16, 32, 48):
        value = 31 * value + (number >> shift & unit)
    value &= _mask(b"\xff\xff\xff\xff", lanes)
    while lanes > 1:
        lanes //= 2
        power = pow(31, 4 * lanes, 1 << 32)
        first = value & (1 << 64 * lanes) - 1
        value = first * power + (value >> 64 * lanes) & _mask(b"\xff\xff\xff\xff", lanes)
    return value


def _mask(lane: bytes, lanes: int) -> int:
    return int.from_bytes(lane.ljust(8, b"\0") * lanes, "little")


def compare_key(text: str) -> bytes:
    """A key that sorts as ``String.compareTo`` does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def absolute(value: int) -> int:
    """``Utils.abs``: the absolute value; 0 for the smallest int32, which has none."""
    return 0 if value == -0x8000_0000 else abs(value)


def computed_map_order(keys: Iterable[K], hash_code: Callable[[K], int]) -> list[K]:
    """The distinct ``keys`` in the order of a ``HashMap`` to which they were added one by one with ``computeIfAbsent``.

    Unlike ``put``, that adds a new key before the others of its bucket, and resizes not after a key but before the next call,
    even for an existing key.
    """
    seen: dict[K, None] = {}
    capacity = 16
    for key in keys:
        if 4 * len(seen) > 3 * capacity:
            capacity *= 2
        seen.setdefault(key)
    newest_first = list(seen)[::-1]
    return sorted(newest_first, key=lambda key: _spread(hash_code(key)) & (capacity - 1))


def hash_map_order(keys: Iterable[K], hash_code: Callable[[K], int], slots: int = 16) -> list[K]:
    """The distinct ``keys`` in the order of a ``HashMap`` or ``HashSet`` to which they were added one by one.

    ``slots`` is the initial size of its table.
    """
    distinct = list(dict.fromkeys(keys))
    capacity = _grown(slots, len(distinct))
    return sorted(distinct, key=lambda key: _spread(hash_code(key)) & (capacity - 1))


def _grown(slots: int, size: int) -> int:
    while 4 * size > 3 * slots:
        slots *= 2
    return slots


def hash_order(names: Iterable[str]) -> list[str]:
    """``hash_map_order`` of strings."""
    return hash_map_order(names, string_hash)


def hash_set_order(keys: Iterable[K], hash_code: Callable[[K], int], more: Iterable[K] = ()) -> list[K]:
    """The distinct ``keys`` in the order of a ``HashSet`` created from a collection of them, with a table of the final size.
    ``more`` are added after that."""
    listed = list(keys)
    capacity = 16
    while capacity < 4 * len(listed) // 3 + 1:
        capacity *= 2
    distinct = dict.fromkeys((*listed, *more))
    capacity = _grown(capacity, len(distinct))
    return sorted(distinct, key=lambda key: _spread(hash_code(key)) & (capacity - 1))


def partition_hash(partition: tuple[str, int]) -> int:
    """``TopicPartition.hashCode`` of a topic's name and a partition's number; only its lower 32 bits are valid."""
    topic, number = partition
    return 31 * (31 + number) + string_hash(topic)


def uuid_hash(topic_id: uuid.UUID) -> int:
    """``Uuid.hashCode()``; only its lower 32 bits are valid."""
    both = topic_id.int >> 64 ^ topic_id.int & 0xFFFFFFFFFFFFFFFF
    return both >> 32 ^ both & 0xFFFFFFFF


def _spread(hash_code: int) -> int:
    unsigned = hash_code & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


def partition_for(text: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` (or of any of ``partitions``) for ``text``."""
    if len(text) <= _CACHED_CHARACTERS:
        return _cached_partition_for(text, partitions)
    return absolute(string_hash(text)) % partitions


@lru_cache(maxsize=65_536)
def _cached_partition_for(text: str, partitions: int) -> int:
    return absolute(string_hash(text)) % partitions


class HashMap(Generic[V]):
    """A map from strings that iterates as ``java.util.HashMap``.

    Buckets in order, insertion order inside a bucket; the table doubles when it is more than three quarters full and never
    shrinks. (Java turns buckets of eight or more into trees; with random member ids that does not happen.)
    """

    __slots__ = ("_capacity", "_entries", "_hashes")

    def __init__(self) -> None:
        self._entries: dict[str, V] = {}
        self._hashes: dict[str, int] = {}
        self._capacity = 16

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> V:
        return self._entries[key]

    def __setitem__(self, key: str, value: V) -> None:
        if key not in self._entries:
            self._hashes[key] = _spread(string_hash(key))
        self._entries[key] = value
        while 4 * len(self._entries) > 3 * self._capacity:
            self._capacity *= 2

    def __iter__(self) -> Iterator[str]:
        mask, hashes = self._capacity - 1, self._hashes
        return iter(sorted(self._entries, key=lambda key: hashes[key] & mask))

    def get(self, key: str) -> V | None:
        """The value of ``key``, or None."""
        return self._entries.get(key)

    def pop(self, key: str) -> V:
        """Remove ``key`` and return its value. Raises KeyError."""
        del self._hashes[key]
        return self._entries.pop(key)

    def values(self) -> list[V]:
        """The values, in Java's order of their keys."""
        return [self._entries[key] for key in self]

    def unordered_values(self) -> "list[V]":
        """The values in order of insertion: cheaper, where the order does not matter."""
        return list(self._entries.values())


TimelineKey = TypeVar("TimelineKey", str, int)

_GOLDEN_RATIO = 0x9E37_79B9_7F4A_7C15
_MASK_64 = 0xFFFF_FFFF_FFFF_FFFF
_LEAST_BITS = 1  # a table starts with two slots


class TimelineMap(dict[TimelineKey, V]):
    """A dict that remembers the largest size of its table, because the ``TimelineHashMap`` that it models never shrinks.

    Coordinators keep offsets in one: its order is visible when a client requests all offsets of a group, and in the order of
    tombstones. Source: ``BaseHashTable`` (multiplicative hashing by the golden ratio, a table that doubles and never shrinks)
    and ``SnapshottableHashTable`` (a slot is emptied from its end).

    Add with ``put``; plain iteration is in order of insertion, ``in_order`` is Kafka's.
    """

    __slots__ = ("_peak",)

    def __init__(self) -> None:
        super().__init__()
        self._peak = 0

    def put(self, key: TimelineKey, value: V) -> None:
        """Set ``key`` to ``value``; an existing key keeps its place.

        The table makes room for another key before it checks whether the key is new.
        """
        if len(self) >= self._peak:
            self._peak = len(self) + 1
        self[key] = value

    def in_order(self) -> list[tuple[TimelineKey, V]]:
        """The items as Kafka iterates over them."""
        bits = _LEAST_BITS
        while self._peak * 3 > 4 << bits:
            bits += 1
        shift = 64 - bits
        newest_first = reversed(self.items())
        return sorted(newest_first, key=lambda item: (_timeline_hash(item[0]) * _GOLDEN_RATIO & _MASK_64) >> shift)


def _timeline_hash(key: str | int) -> int:
    """Java's ``hashCode`` of a String or an Integer."""
    return string_hash(key) if isinstance(key, str) else key
