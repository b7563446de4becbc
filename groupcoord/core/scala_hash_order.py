"""The iteration orders of Scala's immutable ``Set`` and mutable ``HashMap``, where they are visible to clients.

Kafka's broker responds to Metadata in the order of such a set. Source: Scala 2.13, ``immutable.Set``, ``immutable.HashSet`` (a
CHAMP trie) and ``mutable.HashMap``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from groupcoord.core.java_hash_order import partition_hash, string_hash

T = TypeVar("T")
_MASK = 0xFFFFFFFF
_SMALL_SET = 4  # a set of up to four elements keeps their order
_BITS_PER_LEVEL = 5


def set_order(elements: Iterable[T], hash_code: Callable[[T], int]) -> list[T]:
    """The distinct ``elements`` in the order of an immutable Set to which they were added one by one.

    ``hash_code`` is Java's ``hashCode`` of an element, signed or not.
    """
    distinct = list(dict.fromkeys(elements))
    return distinct if len(distinct) <= _SMALL_SET else hash_set_order(distinct, hash_code)


def hash_set_order(elements: Iterable[T], hash_code: Callable[[T], int]) -> list[T]:
    """The distinct ``elements`` in the order of a set that was once large: it stays a HashSet however small it gets."""
    return [element for _, element in _walk([(_improve(hash_code(one)), one) for one in dict.fromkeys(elements)], 0)]


def _walk(items: Sequence[tuple[int, T]], shift: int) -> Sequence[tuple[int, T]]:
    """A node of the trie: first elements that are alone with their five bits, then child nodes, each by its bits."""
    if shift > 32 or len(items) <= 1:
        return items
    slots: dict[int, list[tuple[int, T]]] = {}
    for item in items:
        slots.setdefault(item[0] >> shift & 31, []).append(item)
    in_order = [slots[bits] for bits in sorted(slots)]
    ordered = [slot[0] for slot in in_order if len(slot) == 1]
    for slot in in_order:
        if len(slot) > 1:
            ordered += _walk(slot, shift + _BITS_PER_LEVEL)
    return ordered


def _improve(hash_code: int) -> int:
    """``Hashing.improve``: spreads the bits of a hash code."""
    code = hash_code & _MASK
    code = (code + ~(code << 9)) & _MASK
    code ^= code >> 14
    code = (code + (code << 4)) & _MASK
    return code ^ (code >> 10)


def mutable_map_order(keys: Iterable[T], hash_code: Callable[[T], int]) -> list[T]:
    """The distinct ``keys`` in the order of a mutable HashMap to which they were added one by one."""
    capacity = 16
    hashes: dict[T, int] = {}
    for key in dict.fromkeys(keys):
        if len(hashes) + 1 >= capacity * 3 // 4:
            capacity *= 2
        code = hash_code(key) & _MASK
        hashes[key] = _signed(code ^ (code >> 16))
    return sorted(hashes, key=lambda key: (hashes[key] & (capacity - 1), hashes[key]))


def grouped_by_topic(
    partitions: Iterable[tuple[str, int]],
    order: Callable[[Iterable[tuple[str, int]], Callable[[tuple[str, int]], int]], list[tuple[str, int]]],
) -> dict[str, list[tuple[str, int]]]:
    """Partitions by topic, in the order of ``groupBy``: an immutable HashMap of maps, which have the ``order`` of the map that
    was grouped."""
    groups: dict[str, list[tuple[str, int]]] = {}
    for partition in order(partitions, partition_hash):
        groups.setdefault(partition[0], []).append(partition)
    return {topic: order(groups[topic], partition_hash) for topic in hash_set_order(groups, string_hash)}


def _signed(code: int) -> int:
    return code - (1 << 32) if code >> 31 else code
