"""From a key to a partition, as the clients of Kafka do it. They agree only as far as they use the same hash."""

import struct
from collections.abc import Callable
from zlib import crc32

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """MurmurHash2 as Kafka's Java has it, as a signed 32-bit integer (``Utils.murmur2``)."""
    length = len(data)
    whole = length & ~3
    value = _SEED ^ length
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        word = word * _M & _MASK  # noqa: PLW2901 - stirred, as the algorithm says
        value = value * _M & _MASK ^ (word ^ word >> 24) * _M & _MASK
    if length > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return signed(value ^ value >> 15)


def fnv1a(data: bytes) -> int:
    """FNV-1a over 32 bits, unsigned."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & _MASK
    return value


def positive(number: int) -> int:
    """``Utils.toPositive``: without the sign bit, which is not the absolute value."""
    return number & 0x7FFFFFFF


def signed(number: int) -> int:
    """The lower 32 bits of ``number`` as Java's ``int``."""
    return (number + 0x80000000 & _MASK) - 0x80000000


def java(key: bytes, count: int) -> int:
    """Kafka's own: murmur2, among all ``count`` partitions, whether or not they have a leader. An empty key is a key."""
    return positive(murmur2(key)) % count


def librdkafka_consistent(key: bytes, count: int) -> int:
    """What librdkafka does with keys unless it is told otherwise: CRC-32."""
    return crc32(key) % count


def librdkafka_fnv1a(key: bytes, count: int) -> int:
    """Librdkafka's ``fnv1a``, and what sarama does with keys unless it is told otherwise."""
    return abs(signed(fnv1a(key))) % count


def sarama_reference(key: bytes, count: int) -> int:
    """Sarama's reference hash partitioner: FNV-1a, without the sign bit."""
    return positive(fnv1a(key)) % count


KEYED: dict[str, Callable[[bytes, int], int]] = {
    "java": java,
    "librdkafka-consistent": librdkafka_consistent,
    "librdkafka-murmur2": java,
    "librdkafka-fnv1a": librdkafka_fnv1a,
    "sarama-hash": librdkafka_fnv1a,
    "sarama-reference-hash": sarama_reference,
}
"""Client and setting → (key, number of partitions) → partition."""
