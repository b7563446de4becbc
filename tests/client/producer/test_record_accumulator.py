"""Batches: when one is opened, closed, ready and drained, and where records without a key go."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from groupcoord.client.producer.producer_batch import ProducerBatch, record_size_upper_bound
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.client.producer.record_accumulator import Appended, PartitionLeader, RecordAccumulator, SendReason
from groupcoord.protocol.batches.record_batch import read_header, records_of
from groupcoord.protocol.batches.records import Header

HEADER_BYTES = 61
RECORD_OF_101_BYTES = 92 * b"x"
"""Its length, attributes, deltas, lengths and number of headers take 9 bytes."""


class Accumulating:
    """An accumulator for a topic ``t`` of ``partitions`` partitions, all led by broker 1 unless told otherwise."""

    def __init__(self, partitions: int = 1, chance: Callable[[], float] = lambda: 0.0, **settings: Any) -> None:
        self.config = ProducerConfig.of({"batch_size": 300, **settings})
        self.accumulator = RecordAccumulator(self.config, chance)
        self.promises = count()
        self.lead(dict.fromkeys(range(partitions), 1))

    def lead(self, leaders: dict[int, int], epoch: int = 0) -> None:
        self.accumulator.set_leaders("t", {number: PartitionLeader(node, epoch) for number, node in leaders.items()})

    def append(self, partition: int | None = 0, value: bytes = RECORD_OF_101_BYTES, now_ms: int = 0) -> Appended:
        appended = self.accumulator.append("t", partition, now_ms, None, value, (), next(self.promises), now_ms)
        assert appended is not None
        return appended

    def drain(self, node_id: int = 1, now_ms: int = 0) -> list[tuple[int, int, SendReason]]:
        """(partition, records, why) of each batch."""
        drained = self.accumulator.drain(node_id, now_ms, lambda _: True)
        return [(batch.partition[1], batch.record_count, reason) for batch, reason in drained]


def test_a_batch_is_full_when_no_other_record_fits() -> None:
    it = Accumulating()
    first, second, third = (it.append() for _ in range(3))
    assert [each.opened for each in (first, second, third)] == [True, False, True]
    assert [each.ready for each in (first, second, third)] == [False, False, True]
    assert first.batch is second.batch
    assert it.drain() == [(0, 2, SendReason.FULL)]
    assert first.batch.size == HEADER_BYTES + 2 * 101


def test_a_record_that_is_larger_than_a_batch_is_a_batch() -> None:
    it = Accumulating(batch_size=0)
    assert [it.append().ready for _ in range(2)] == [False, True]
    free = it.accumulator.free_bytes
    assert it.config.buffer_memory - free == 2 * record_size_upper_bound(None, RECORD_OF_101_BYTES, ())


@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 8_000, 8_170, 8_180, 8_200, 1_000_000])
def test_the_upper_bound_of_a_record_is_kafkas(size: int) -> None:
    """61 bytes of header, 21 of overhead, one for no key, one for no headers, and the value with its length."""
    length_bytes = 1 if size < 64 else 2 if size < 8_192 else 3 if size < 1 << 20 else 4
    assert record_size_upper_bound(None, bytes(size), ()) == 61 + 21 + 1 + 1 + length_bytes + size


def test_a_batch_on_the_wire() -> None:
    it = Accumulating(compression_type="gzip")
    accumulator = it.accumulator
    accumulator.append("t", 0, 1_000, b"k", b"v", (("h", b"1"), ("n", None)), None, 0)
    accumulator.append("t", 0, 900, None, None, (), None, 0)
    ((batch, _),) = accumulator.drain(1, 5, lambda _: True)
    header = read_header(batch.data())
    assert (header.base_timestamp_ms, header.max_timestamp_ms, header.compression.name) == (1_000, 1_000, "GZIP")
    one, two = records_of(batch.data())
    assert (one.key, one.value, one.headers) == (b"k", b"v", (Header("h", b"1"), Header("n", None)))
    assert (two.offset, two.timestamp_ms, two.key, two.value) == (1, 900, None, None)


def test_the_latest_timestamp_is_that_of_the_batch() -> None:
    it = Accumulating()
    batch = it.append(now_ms=5).batch
    it.append(now_ms=9)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (5, 9)


def test_the_expected_compression_follows_what_is_seen() -> None:
    it = Accumulating(compression_type="gzip", batch_size=2_000)
    topic = it.accumulator.topic("t")
    it.append(value=bytes(1_900))
    it.append()
    assert topic.compression_ratio == pytest.approx(0.995)
    topic.compression_ratio = 0.01
    it.append(value=bytes(range(256)) * 40)
    it.append(value=bytes(range(256)) * 400)
    assert topic.compression_ratio > 0.01
    topic.saw_ratio(2.0)
    assert topic.compression_ratio == 2.0


# --- when a batch is ready


def test_a_batch_lingers() -> None:
    it = Accumulating(linger_ms=5)
    it.append(now_ms=10)
    assert it.accumulator.ready(12) == ([], 15, set())
    assert it.accumulator.ready(15).nodes == [1]
    assert it.drain(now_ms=15) == [(0, 1, SendReason.LINGERED)]
    assert it.accumulator.ready(15) == ([], None, set())


def test_what_is_flushed_closed_or_needed_does_not_linger() -> None:
    it = Accumulating()
    it.append()
    pending = it.accumulator.flush()
    assert it.drain() == [(0, 1, SendReason.FLUSHED)]
    (batch,) = pending
    it.accumulator.complete(batch)
    assert not pending
    assert not it.accumulator.flushes
    assert it.accumulator.flush() == set()
    it.append()
    it.accumulator.waiting_for_memory = 1
    assert it.drain() == [(0, 1, SendReason.MEMORY)]
    it.accumulator.waiting_for_memory = 0
    it.accumulator.closed = True
    it.append()
    assert it.drain() == [(0, 1, SendReason.CLOSED)]


def test_what_is_not_ready_goes_along_to_the_same_broker() -> None:
    it = Accumulating(partitions=2)
    it.append(0, now_ms=0)
    it.append(1, now_ms=4)
    assert it.drain(now_ms=5) == [(0, 1, SendReason.LINGERED), (1, 1, SendReason.ALONG)]


def test_a_request_has_a_largest_size_and_the_next_one_goes_on_from_there() -> None:
    it = Accumulating(partitions=3, max_request_size=400)
    for partition in (0, 1, 2):
        it.append(partition)
    assert [each[0] for each in it.drain(now_ms=5)] == [0, 1]
    it.append(0)
    assert [each[0] for each in it.drain(now_ms=5)] == [2, 0]


def test_each_broker_gets_what_it_leads() -> None:
    it = Accumulating(partitions=3)
    it.lead({0: 1, 1: 2, 2: -1})
    for partition in (0, 1, 2):
        it.append(partition)
    assert it.accumulator.ready(5) == ([1, 2], None, {"t"})
    assert it.drain(2, now_ms=5) == [(1, 1, SendReason.LINGERED)]
    assert it.accumulator.leader(("t", 1)).node_id == 2
    assert it.accumulator.leader(("u", 0)).node_id == it.accumulator.leader(("t", 9)).node_id == -1


def test_what_is_muted_or_may_not_be_sent_stays() -> None:
    it = Accumulating(partitions=2)
    it.append(0)
    it.append(1)
    it.accumulator.muted.add(("t", 0))
    assert not list(it.accumulator.drain(1, 5, lambda _: False))
    assert it.drain(now_ms=5) == [(1, 1, SendReason.LINGERED)]
    assert it.accumulator.ready(5).nodes == []


def test_no_memory_no_batch() -> None:
    it = Accumulating(buffer_memory=600)
    batch = it.append().batch
    it.append(0)
    it.append(0)
    it.append(0)
    assert it.accumulator.append("t", 0, 0, None, RECORD_OF_101_BYTES, (), None, 0) is None
    it.drain()
    it.accumulator.complete(batch)
    assert it.append().opened


# --- what is sent again


def test_what_is_put_back_waits_for_its_back_off() -> None:
    it = Accumulating(chance=lambda: 0.5)
    it.append()
    ((batch, _),) = it.accumulator.drain(1, 5, lambda _: True)
    it.accumulator.reenqueue(batch, 50)
    assert it.accumulator.ready(60) == ([], 150, set())
    assert it.drain(now_ms=149) == []
    assert it.drain(now_ms=150) == [(0, 1, SendReason.BACKED_OFF)]


def test_another_leader_is_not_kept_waiting() -> None:
    it = Accumulating()
    it.append()
    ((batch, _),) = it.accumulator.drain(1, 5, lambda _: True)
    it.accumulator.reenqueue(batch, 50)
    it.lead({0: 2}, epoch=1)
    assert it.accumulator.ready(51).nodes == [2]
    assert it.drain(2, now_ms=51) == [(0, 1, SendReason.NEW_LEADER)]


def numbered(batch: ProducerBatch, sequence: int) -> ProducerBatch:
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 5, 0, sequence
    return batch


def test_what_is_put_back_is_in_the_order_of_its_numbers() -> None:
    it = Accumulating()
    drained = []
    for sequence in range(3):
        it.append()
        it.accumulator.flush()
        ((batch, _),) = it.accumulator.drain(1, 0, lambda _: True)
        drained.append(numbered(batch, sequence))
    it.append()
    for place in (1, 0, 2):
        it.accumulator.reenqueue(drained[place], 0)
    queue = it.accumulator.topics["t"].queues[0]
    assert [batch.base_sequence for batch in queue] == [0, 1, 2, -1]
    assert [batch.base_sequence for batch in it.accumulator.take_unsent()] == [-1]
    assert len(queue) == 3


def test_a_batch_that_is_too_large_goes_on_in_parts() -> None:
    it = Accumulating(batch_size=10_000, partitions=2)
    for _ in range(6):
        it.append()
    others = [it.append(1).batch]
    pending = it.accumulator.flush()
    it.accumulator.flushes.append(set(others))
    (batch, _), _ = it.accumulator.drain(1, 0, lambda _: True)
    it.accumulator._config = ProducerConfig(batch_size=300)
    numbered(batch, 7)
    parts = it.accumulator.split(batch)
    assert [(part.record_count, part.base_sequence) for part in parts] == [(2, 7), (2, 9), (2, 11)]
    assert pending == {*parts, *others} == set(it.accumulator.incomplete)
    it.accumulator.complete(others[0])
    assert it.accumulator.flushes == [pending]
    assert list(it.accumulator.topics["t"].queues[0]) == parts
    assert it.accumulator.free_bytes == it.config.buffer_memory
    ((part, _),) = it.accumulator.drain(1, 0, lambda _: True)
    assert [each.record_count for each in it.accumulator.split(part)] == [1, 1]
    assert [record.offset for record in records_of(parts[1].data())] == [0, 1]


def test_parts_of_a_batch_without_numbers() -> None:
    it = Accumulating(batch_size=300)
    it.append()
    other = it.append(now_ms=1).batch
    assert [part.base_sequence for part in it.accumulator.split(other)] == [-1]
    assert repr(other) == "<ProducerBatch 1 of t-0: 2 records, attempts=0>"


def test_what_has_waited_for_too_long_is_taken_out() -> None:
    it = Accumulating(delivery_timeout_ms=30_005)
    old = it.append().batch
    it.append()
    it.append(now_ms=10)
    assert it.accumulator.take_expired(30_004) == []
    assert it.accumulator.take_expired(30_005) == [old]
    assert old.waited_ms(-1) == 0


# --- partitions of records without a key (KIP-794)


def test_one_partition_until_a_batch_is_full() -> None:
    numbers = count()
    it = Accumulating(partitions=3, chance=lambda: next(numbers) / (1 << 31), linger_ms=0)
    partitions = [it.append(None).batch.partition[1] for _ in range(8)]
    # 61 + 2 · 101 = 263 bytes are a batch. The next batch size is reached in the middle of a batch, and is not the time to
    # switch; twice that is. So it is in Kafka.
    assert partitions == [0, 0, 0, 0, 0, 1, 1, 1]


def test_a_partition_is_left_as_soon_as_its_last_batch_is_drained() -> None:
    numbers = count()
    it = Accumulating(partitions=3, chance=lambda: next(numbers) / (1 << 31), linger_ms=0)
    for _ in range(3):
        assert it.append(None).batch.partition[1] == 0
    it.drain()
    it.drain()
    assert it.append(None).batch.partition[1] == 1


def test_short_queues_are_preferred_as_soon_as_each_partition_had_something() -> None:
    it = Accumulating(partitions=2)

    def weights() -> Any:
        it.accumulator.ready(0)
        return it.accumulator.topic("t").sticky.cumulative

    it.append(0)
    assert weights() is None
    for _ in range(5):
        it.append(1)
    assert weights() == [3, 4]
    it.accumulator.avoid(lambda node_id: node_id == 1)
    assert weights() is None
    it.lead({0: 1, 1: 2})
    assert weights() == [1]
    it.lead({0: 1, 1: -1})
    it.accumulator.avoid(lambda _: False)
    assert weights() is None


def test_adaptive_partitioning_can_be_switched_off() -> None:
    it = Accumulating(partitions=2, partitioner_adaptive_partitioning_enable=False)
    for partition in (0, 1, 1, 1):
        it.append(partition)
    it.accumulator.ready(0)
    assert it.accumulator.topic("t").sticky.cumulative is None
