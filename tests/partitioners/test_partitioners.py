from itertools import count
from types import SimpleNamespace

import pytest
from kafka.partitioner import Partitioner

from groupcoord.partitioners import (
    KEYED,
    CustomPartitioner,
    DefaultPartitioner,
    KeyHashPartitioner,
    PartitionerError,
    RoundRobinPartitioner,
    for_kafka_python,
)
from tests.partitioners.known import KNOWN

ALL = [0, 1, 2]


def default(*, batch_size: int = 100, ignore_keys: bool = False) -> DefaultPartitioner:
    return DefaultPartitioner(count().__next__, batch_size=batch_size, ignore_keys=ignore_keys)


def test_a_key_goes_where_java_sends_it() -> None:
    partitioner = default()
    assert [partitioner(key, ALL, []) for key in (b"", b"foobar", b"kafka", b"a-little-bit-long-string")] == [
        0,
        0,
        1,
        2,
    ]


def test_without_a_key_batch_by_batch_and_topic_by_topic() -> None:
    partitioner = default()
    seen = [partitioner(None, ALL, [2, 0], topic=topic, size=60) for topic in ("t", "t", "t", "u", "t", "t")]
    assert seen == [0, 0, 2, 0, 2, 2]


def test_keys_can_be_ignored() -> None:
    assert {default(ignore_keys=True)(b"key", ALL, [1])} == {1}


def test_the_size_is_measured_where_the_library_does_not_tell() -> None:
    partitioner = default()
    serialize = partitioner.measuring()
    seen = []
    for _ in range(4):
        serialize(b"x" * 50)
        seen.append(partitioner(None, ALL, ALL))
    assert seen == [0, 0, 1, 1]
    assert partitioner.measuring(lambda _: None)("nothing") is None


def test_a_record_of_unknown_size_counts_for_a_kibibyte() -> None:
    partitioner = default(batch_size=2048)
    assert [partitioner(None, ALL, ALL) for _ in range(4)] == [0, 0, 1, 1]


def test_a_topic_with_fewer_partitions() -> None:
    """aiokafka does not say which topic it asks for."""
    partitioner = DefaultPartitioner(lambda: 7)
    assert partitioner(None, list(range(8)), list(range(8))) == 7
    assert partitioner(None, ALL, ALL) == 1


def test_other_clients_keys() -> None:
    partitioner = KeyHashPartitioner(KEYED["librdkafka-consistent"], RoundRobinPartitioner())
    assert partitioner(b"kafka", list(range(10)), []) == 9
    assert [partitioner(None, ALL, ALL) for _ in range(2)] == [0, 1]


def test_round_robin_as_kafkas_class() -> None:
    (case,) = KNOWN["round_robin_partitioner"]
    partitioner = RoundRobinPartitioner()
    assert [partitioner(b"key", ALL, [2, 0], topic="t") for _ in range(7)] == case["sequence_t"]
    assert [partitioner(None, [0, 1], [], topic="u") for _ in range(5)] == case["sequence_u"]


def test_ones_own() -> None:
    partitioner = CustomPartitioner(lambda key, partitions: len(key or b"") % partitions)
    assert partitioner(b"four", ALL, []) == 1
    with pytest.raises(PartitionerError, match="topic orders has no partition -1, but 3"):
        CustomPartitioner(lambda *_: -1)(b"", ALL, [], topic="orders")


def test_kafka_python_takes_it() -> None:
    cluster = SimpleNamespace(partitions_for_topic=lambda _: {2, 0, 1}, available_partitions_for_topic=lambda _: {1, 2})
    adapter = for_kafka_python(default())
    assert isinstance(adapter, Partitioner)
    seen = [adapter.partition("t", None, None, "v", b"x" * 60, cluster) for _ in range(4)]
    assert seen == [1, 1, 2, 2]
    assert adapter.partition("t", "kafka", b"kafka", None, None, cluster) == 1
