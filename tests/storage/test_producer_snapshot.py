"""Snapshots of producers are Kafka's."""

import struct

import pytest
from crc32c import crc32c

from groupcoord.broker.producer_state_manager import BatchMetadata, ProducerStateManager
from groupcoord.protocol.batches.record_batch import read_header
from groupcoord.storage import producer_snapshot
from groupcoord.storage.producer_snapshot import SnapshotError
from tests.broker.data_plane import batch
from tests.storage.directory import KAFKA_FILES

RECORDED = (KAFKA_FILES / "recorded-0" / "00000000000000000045.snapshot").read_bytes()


def test_kafkas_is_read_and_written_again() -> None:
    producers = producer_snapshot.decode(RECORDED, "recorded-0")
    kept = {number: (entry.epoch, entry.batches[-1].last_offset) for number, entry in producers.items()}
    assert kept == {0: (0, 44), 1: (0, 41)}
    assert producer_snapshot.encode(producers) == RECORDED


def test_one_without_producers() -> None:
    data = producer_snapshot.encode(ProducerStateManager("a-0"))
    assert len(data) == 10
    assert list(producer_snapshot.decode(data, "a-0").items()) == []


def test_what_a_snapshot_keeps_is_the_last_batch() -> None:
    producers = ProducerStateManager("a-0")
    producers.restore(7, 3, BatchMetadata(last_sequence=9, last_offset=29, offset_delta=4, timestamp_ms=1000))
    entry = producer_snapshot.decode(producer_snapshot.encode(producers), "a-0")[7]
    assert (entry.epoch, list(entry.batches), entry.last_timestamp_ms) == (3, [BatchMetadata(9, 29, 4, 1000)], 1000)


def test_a_producer_with_nothing_but_the_end_of_a_transaction_keeps_its_epoch() -> None:
    body = struct.pack(">iqhiqiqiq", 1, 5, 3, -1, -1, 0, 1000, 2, -1)
    data = struct.pack(">hI", 1, crc32c(body)) + body
    producers = producer_snapshot.decode(data, "a-0")
    entry = producers[5]
    assert (entry.epoch, entry.coordinator_epoch, entry.last_timestamp_ms, len(entry.batches)) == (3, 2, 1000, 0)
    assert producers.first_unstable_offset is None
    assert producer_snapshot.encode(producers) == data


def test_an_open_transaction_is_kept() -> None:
    producers = ProducerStateManager("a-0")
    producers.appended(read_header(batch(b"a", b"b", base_offset=4, attributes=0x10, producer_id=7, producer_epoch=1)))
    kept = producer_snapshot.decode(producer_snapshot.encode(producers), "a-0")
    assert kept.first_unstable_offset == kept[7].current_txn_first_offset == 4
    assert kept.has_ongoing_transaction(7, 1)


@pytest.mark.parametrize("length", [0, 5, 9, 20, len(RECORDED) - 1])
def test_one_that_is_cut_off(length: int) -> None:
    with pytest.raises(SnapshotError):
        producer_snapshot.decode(RECORDED[:length], "recorded-0")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x00\x02" + RECORDED[2:], "version 2"),
        (RECORDED[:-1] + b"\x00", "checksum"),
        (RECORDED[:6] + b"\x00\x00\x00\x01" + RECORDED[10:], "checksum"),
    ],
)
def test_one_that_is_none(data: bytes, problem: str) -> None:
    with pytest.raises(SnapshotError, match=problem):
        producer_snapshot.decode(data, "recorded-0")
