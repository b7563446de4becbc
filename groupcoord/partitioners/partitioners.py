"""Partitioners for producers, and the key hashes of the various Kafka clients.

Clients agree on partitions only if they use the same hash. aiokafka takes these partitioners directly,
``AIOKafkaProducer(partitioner=…)``; for kafka-python see :func:`for_kafka_python`. aiokafka passes neither the topic nor the
size of a record: ``measuring`` provides the size, and state that is per topic otherwise is shared by all topics.
"""

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Protocol
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
        word = word * _M & _MASK  # noqa: PLW2901 - mixed, as the algorithm says
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
    """The Java client's: murmur2, over all ``count`` partitions, with or without a leader. An empty key is a key."""
    return positive(murmur2(key)) % count


def librdkafka_consistent(key: bytes, count: int) -> int:
    """Librdkafka's default for keys: CRC-32."""
    return crc32(key) % count


def librdkafka_fnv1a(key: bytes, count: int) -> int:
    """Librdkafka's ``fnv1a``, and sarama's default for keys."""
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


class StickyPartition:
    """The sticky partition for records without a key: one partition until a batch is full, then another (KIP-794).

    Records in one batch cost the broker less than records in many. ``random`` returns any 32-bit integer; ``batch_size`` is in
    bytes, at least 1. Source: ``BuiltInPartitioner``.
    """

    def __init__(self, batch_size: int, random: Callable[[], int]) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch cannot have {batch_size} bytes")
        self._batch_size = batch_size
        self._random = random
        self._current: int | None = None
        self._produced = 0
        self._loads: tuple[Sequence[int], Sequence[int]] | None = None

    def current(self, available: Sequence[int], count: int) -> int:
        """The partition for the next record. ``available`` are those of ``count`` partitions that have a leader."""
        if self._current is None:
            self._switch(available, count)
        return self._current  # type: ignore[return-value]

    def appended(self, size: int, available: Sequence[int], count: int, *, batch_full: bool = True) -> None:
        """Record that ``size`` bytes were appended to the current partition, and switch partitions if it is time.

        The partition changes after ``batch_size`` bytes, but if the last batch in the queue is not full that waits, up to a
        second batch size, so that lingering does not split batches.
        """
        self._produced += size
        if self._produced >= self._batch_size * (1 if batch_full else 2):
            self._switch(available, count)

    def loads(self, queued: Sequence[int] | None, partitions: Sequence[int] = (), left_out: int = 0) -> None:
        """Prefer partitions with shorter queues: ``queued`` has the number of queued batches of each of ``partitions``, those
        with a leader.

        ``left_out`` partitions with a leader are not listed because their broker accepts nothing. Queues of equal length, or
        fewer than two, or None, mean no preference.
        """
        self._loads = None
        if queued and len(queued) + left_out >= 2 and (left_out or len(set(queued)) > 1):
            longest = max(queued)
            self._loads = list(accumulate([longest + 1 - length for length in queued])), partitions

    @property
    def cumulative(self) -> Sequence[int] | None:
        """The cumulative weights by which the next partition is drawn; None if all are equal."""
        return None if self._loads is None else self._loads[0]

    def _switch(self, available: Sequence[int], count: int) -> None:
        drawn = positive(self._random())
        if self._loads is not None:
            cumulative, partitions = self._loads
            self._current = partitions[bisect_right(cumulative, drawn % cumulative[-1])]
        else:
            self._current = available[drawn % len(available)] if available else drawn % count
        self._produced = 0


DEFAULT_BATCH_SIZE = 16_384
"""Bytes: ``batch.size``."""

ASSUMED_RECORD_SIZE = 1024
"""Bytes: the assumed size of a record of unknown size."""

Serializer = Callable[[Any], bytes | None]


class PartitionerError(ValueError):
    """A custom partitioner returned a partition that does not exist."""


class Partitioner(Protocol):
    """Returns the partition of a record from its ``key`` in bytes, all partitions ascending, and those that have a leader."""

    def __call__(
        self,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],
        *,
        topic: str = "",
        size: int = 0,
    ) -> int:
        """One of ``all_partitions``; ``size`` is that of the record, in bytes, 0 if unknown."""
        ...


class DefaultPartitioner:
    """Kafka's default since 3.3: records with a key by murmur2, the others to a sticky partition (KIP-794).

    ``random`` returns any 32-bit integer. With ``ignore_keys`` keys are ignored.
    """

    def __init__(
        self, random: Callable[[], int], *, batch_size: int = DEFAULT_BATCH_SIZE, ignore_keys: bool = False
    ) -> None:
        self._random = random
        self._batch_size = batch_size
        self._ignore_keys = ignore_keys
        self._sticky: dict[str, StickyPartition] = {}
        self._measured = 0

    def __call__(
        self,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],
        *,
        topic: str = "",
        size: int = 0,
    ) -> int:
        """The record's partition; the record counts as appended there. See :class:`Partitioner`."""
        size, self._measured = size or self._measured or ASSUMED_RECORD_SIZE, 0
        if key is not None and not self._ignore_keys:
            return all_partitions[java(key, len(all_partitions))]
        if topic not in self._sticky:
            self._sticky[topic] = StickyPartition(self._batch_size, self._random)
        sticky, leading, count = self._sticky[topic], sorted(available), len(all_partitions)
        partition = sticky.current(leading, count)
        sticky.appended(size, leading, count)
        return partition if partition in all_partitions else all_partitions[partition % count]

    def measuring(self, serializer: Serializer = lambda value: value) -> Serializer:
        """``serializer``, for a producer's ``value_serializer``, that also tells the size of the next record."""

        def measure(value: Any) -> bytes | None:
            data = serializer(value)
            self._measured += len(data or b"")
            return data

        return measure


class KeyHashPartitioner:
    """Records with a key by the hash ``hashed`` (see :data:`KEYED`), the others by ``otherwise``."""

    def __init__(self, hashed: Callable[[bytes, int], int], otherwise: Partitioner) -> None:
        self._hashed = hashed
        self._otherwise = otherwise

    def __call__(
        self,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],
        *,
        topic: str = "",
        size: int = 0,
    ) -> int:
        """See :class:`Partitioner`."""
        if key is None:
            return self._otherwise(key, all_partitions, available, topic=topic, size=size)
        return all_partitions[self._hashed(key, len(all_partitions))]


class RoundRobinPartitioner:
    """Round-robin over the partitions that have a leader, ignoring keys (``RoundRobinPartitioner``, 2.4 and later)."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(
        self,
        key: bytes | None,  # noqa: ARG002 - deliberately
        all_partitions: Sequence[int],
        available: Sequence[int],
        *,
        topic: str = "",
        size: int = 0,  # noqa: ARG002 - as every partitioner is called
    ) -> int:
        """See :class:`Partitioner`. Without any leader, round-robin over all partitions."""
        number = positive(self._counts[topic])
        self._counts[topic] += 1
        among = sorted(available) or all_partitions
        return among[number % len(among)]


class CustomPartitioner:
    """A partitioner from ``choose``, a function of the key in bytes and the number of partitions."""

    def __init__(self, choose: Callable[[bytes | None, int], int]) -> None:
        self._choose = choose

    def __call__(
        self,
        key: bytes | None,
        all_partitions: Sequence[int],
        available: Sequence[int],  # noqa: ARG002 - as every partitioner is called
        *,
        topic: str = "",
        size: int = 0,  # noqa: ARG002 - likewise
    ) -> int:
        """See :class:`Partitioner`. Raises PartitionerError if there is no such partition."""
        partition = self._choose(key, len(all_partitions))
        if partition not in all_partitions:
            raise PartitionerError(
                f"topic {topic or '(unknown)'} has no partition {partition!r}, but {len(all_partitions)}"
            )
        return partition


def for_kafka_python(partitioner: Partitioner) -> Any:
    """``partitioner`` for ``KafkaProducer(partitioner=…)`` of kafka-python 3; needs kafka-python."""
    from kafka.partitioner import Partitioner as Base  # noqa: PLC0415 - optional

    class Adapter(Base):  # type: ignore[misc]
        def partition(
            self,
            topic: str,
            key: Any,
            serialized_key: bytes | None,
            value: Any,
            serialized_value: bytes | None,
            cluster: Any,
        ) -> int:
            del key, value
            partitions = sorted(cluster.partitions_for_topic(topic))
            available = sorted(cluster.available_partitions_for_topic(topic))
            return partitioner(serialized_key, partitions, available, topic=topic, size=len(serialized_value or b""))

    return Adapter()
