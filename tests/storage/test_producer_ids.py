"""No producer id that a log knows is handed out once more: the first batch of the next producer would be dropped."""

import shutil
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID
from groupcoord.storage.producer_ids import largest_producer_id, next_block
from tests.broker.data_plane import NOW_MS, batch, patched
from tests.storage.directory import KAFKA_FILES, Life, contents

FIRST = "0" * 20


def of_producer(producer_id: int) -> bytes:
    return batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)


def snapshot(producer_id: int) -> bytes:
    """Of a producer of which only the end of a transaction is known."""
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", producer_id, 0, -1, -1, 0, NOW_MS, 0, -1)
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_an_adopted_log_does_not_take_a_first_batch_for_a_repetition(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_FILES / "recorded-0", tmp_path / "recorded-0")  # it knows the producers 0 and 1
    life = Life(tmp_path)
    producer_id = life.broker.new_producer_id()
    assert producer_id == 1000
    appended = life.log("recorded").append(of_producer(producer_id), NOW_MS)
    assert (appended.base_offset, appended.duplicate) == (45, False)
    assert contents(life.log("recorded"))[-1] == (45, b"v")
    life.end()
    again = Life(tmp_path)
    assert again.storage.findings == []
    assert again.broker.new_producer_id() == 2000


def test_a_folder_that_was_brought_to_a_topic_counts_too(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic()
    life.end()
    (tmp_path / "orders-1").mkdir()
    (tmp_path / "orders-1" / f"{FIRST}.log").write_bytes(of_producer(5_432))
    assert Life(tmp_path).broker.new_producer_id() == 6_000


def test_ids_survive_the_loss_of_the_catalogue(tmp_path: Path) -> None:
    life = Life(tmp_path)
    log = life.topic()
    for _ in range(1500):
        producer_id = life.broker.new_producer_id()
    log.append(of_producer(producer_id), NOW_MS)
    life.end()
    path = tmp_path / "groupcoord-metadata"
    path.unlink()
    again = Life(tmp_path)
    assert again.broker.new_producer_id() == 2000
    assert again.storage.findings[0] == (
        f"{path} is lost, or empty: topics are found again by their folders and have the broker's defaults now; topics without "
        "a folder, and what was configured while the server ran, are lost"
    )
    assert again.storage.findings[1] == f"topic orders was found in {tmp_path}, and has the broker's defaults now"


@pytest.mark.parametrize("left", [b"", b'{"groupcoord": "meta'])
def test_a_catalogue_that_was_emptied_is_a_lost_one(tmp_path: Path, left: bytes) -> None:
    Life(tmp_path).end()
    (tmp_path / "groupcoord-metadata").write_bytes(left)
    [said] = Life(tmp_path).storage.findings
    assert "groupcoord-metadata is lost, or empty" in said


def test_a_catalogue_that_says_less_than_the_logs_does_not_count(tmp_path: Path) -> None:
    life = Life(tmp_path)
    log = life.topic()
    log.append(of_producer(4_321), NOW_MS)
    life.end()
    assert Life(tmp_path).broker.new_producer_id() == 5_000


def test_the_largest_id_of_logs_and_snapshots(tmp_path: Path) -> None:
    assert largest_producer_id(tmp_path) == NO_PRODUCER_ID
    assert next_block(NO_PRODUCER_ID) == 0
    (tmp_path / f"{FIRST}.log").write_bytes(batch(b"v") + patched(of_producer(77), base_offset=1) + b"torn")
    (tmp_path / "partition.metadata").touch()
    (tmp_path / f"{FIRST}.index").touch()
    assert largest_producer_id(tmp_path) == 77
    (tmp_path / f"{FIRST}.snapshot").write_bytes(snapshot(2_999))
    (tmp_path / f"{9:020d}.snapshot").write_bytes(b"nonsense")
    (tmp_path / f"{9:020d}.log").mkdir()
    assert largest_producer_id(tmp_path) == 2_999
    (tmp_path / f"{7:020d}.snapshot").write_bytes(snapshot((1 << 63) - 1))  # there is no id above it to go on with
    assert largest_producer_id(tmp_path) == 2_999
    assert [next_block(number) for number in (0, 999, 1000, 2999)] == [1000, 1000, 2000, 3000]
