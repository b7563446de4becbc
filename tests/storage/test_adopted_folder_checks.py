"""What copied partition folders use, producer ids and groups, is found."""

import shutil
import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from groupcoord.core.java_hash_order import partition_for
from groupcoord.protocol.batches.record_batch import NO_PRODUCER_ID
from groupcoord.protocol.coordinator_records.transaction_log import write_key
from groupcoord.storage.adopted_folder_checks import (
    COORDINATOR_TOPICS,
    largest_producer_id,
    misplaced,
    names_in,
    next_producer_id_block,
)
from groupcoord.storage.file_io import StorageError
from groupcoord.storage.log_file_names import partition_folder
from tests.broker.data_plane import NOW_MS, batch, patched
from tests.offsets_log import recorded
from tests.storage.directory import KAFKA_FILES, Life, contents

CLUSTER = recorded.KAFKA_FILES / "4.3.1"
"""``__consumer_offsets`` of a real Kafka, in three partitions."""


def copied(directory: Path, *numbers: int) -> dict[int, Path]:
    """Folders of the cluster, by partition."""
    for number in numbers:
        shutil.copytree(CLUSTER / f"__consumer_offsets-{number}", directory / f"__consumer_offsets-{number}")
    paths = {partition_folder(path.name): path for path in directory.iterdir()}
    return {partition.number: path for partition, path in paths.items() if partition is not None}


def test_the_groups_of_a_cluster_and_where_they_are(tmp_path: Path) -> None:
    groups = names_in(COORDINATOR_TOPICS[0], copied(tmp_path, 0, 1, 2))
    assert {number for _, number in groups} == {0, 1, 2}
    assert misplaced(groups, 2, 3) is None
    said = misplaced(groups, 2, 50)
    assert said is not None
    assert said.endswith("the cluster may have 3: then set offsets.topic.num.partitions=3")


def test_what_cannot_be_read_says_nothing_of_groups(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    for data in (
        batch(b"v", key=None),
        batch(b"v", key=b"\x00\x63"),  # a kind that there is not
        batch(b"v", key=b"\x00\x01\x00"),  # a key that is cut off
        batch(b"v", key=b"\x00\x0b\x00\x00", attributes=0x20),  # the end of a transaction
        batch(b"v")[:-1],
    ):
        path.write_bytes(data)
        assert names_in(COORDINATOR_TOPICS[0], {0: tmp_path}) == set()


def test_adopted_groups_that_would_not_be_found_are_refused(tmp_path: Path) -> None:
    copied(tmp_path, 0, 1, 2)
    for _ in range(2):  # and nothing of the first try makes the second one say something else
        with pytest.raises(
            StorageError,
            match=r"the groups in .* would not be found: .*num.partitions=50: group 'audit' is in partition 1, and belongs "
            r"in 5; the cluster may have 3: then set offsets.topic.num.partitions=3",
        ):
            Life(tmp_path)
    life = Life(tmp_path, offsets_topic_num_partitions=3)
    assert life.storage.findings == [
        f"topic __consumer_offsets was found in {tmp_path}, and has the broker's defaults now"
    ]
    life.end()
    again = Life(tmp_path)
    assert again.storage.config.offsets_topic_num_partitions == 3
    [said] = again.storage.findings
    assert "that counts, and not offsets.topic.num.partitions=50" in said


def test_adopted_transactional_ids_that_would_not_be_found_are_refused(tmp_path: Path) -> None:
    place = partition_for("billing", 7)
    folder = tmp_path / f"__transaction_state-{place}"
    folder.mkdir()
    log = folder / f"{FIRST}.log"
    log.write_bytes(batch(b"v", key=write_key("billing")) + patched(batch(b"v", key=b"\x00\x07"), base_offset=1))
    with pytest.raises(
        StorageError,
        match=r"the transactional ids in .* would not be found: .*transaction.state.log.num.partitions=50: transactional id "
        r"'billing' is in partition \d, .*: then set transaction.state.log.num.partitions=\d+",
    ):
        Life(tmp_path)
    Life(tmp_path, transaction_state_log_num_partitions=7).end()
    again = Life(tmp_path)
    assert again.storage.config.transaction_state_log_num_partitions == 7
    assert any(
        "that counts, and not transaction.state.log.num.partitions=50" in said for said in again.storage.findings
    )


def test_the_last_partitions_of_adopted_groups_may_be_missing(tmp_path: Path) -> None:
    copied(tmp_path, 0, 1)
    life = Life(tmp_path, offsets_topic_num_partitions=3)
    topic = life.broker.topics.get("__consumer_offsets")
    assert topic is not None
    assert len(topic.partitions) == 3


def test_folders_that_fit_no_number_of_partitions(tmp_path: Path) -> None:
    copied(tmp_path, 0, 1)
    (tmp_path / "__consumer_offsets-0").rename(tmp_path / "__consumer_offsets-2")
    with pytest.raises(StorageError, match="the folders fit no number of partitions: are they all of one cluster"):
        Life(tmp_path, offsets_topic_num_partitions=3)


def test_a_further_partition_would_move_every_group(tmp_path: Path) -> None:
    life = Life(tmp_path, offsets_topic_num_partitions=3)
    life.topic("__consumer_offsets", 3)
    life.end()
    shutil.copytree(CLUSTER / "__consumer_offsets-1", tmp_path / "__consumer_offsets-3")
    (tmp_path / "__consumer_offsets-3" / "partition.metadata").unlink(missing_ok=True)
    with pytest.raises(StorageError, match=r"__consumer_offsets-3 is of a partition that .* Move the folder away"):
        Life(tmp_path, offsets_topic_num_partitions=3)


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


def test_ids_survive_the_loss_of_the_metadata_file(tmp_path: Path) -> None:
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
def test_a_metadata_file_that_was_emptied_is_a_lost_one(tmp_path: Path, left: bytes) -> None:
    Life(tmp_path).end()
    (tmp_path / "groupcoord-metadata").write_bytes(left)
    [said] = Life(tmp_path).storage.findings
    assert "groupcoord-metadata is lost, or empty" in said


def test_a_metadata_file_that_says_less_than_the_logs_does_not_count(tmp_path: Path) -> None:
    life = Life(tmp_path)
    log = life.topic()
    log.append(of_producer(4_321), NOW_MS)
    life.end()
    assert Life(tmp_path).broker.new_producer_id() == 5_000


def test_the_largest_id_of_logs_and_snapshots(tmp_path: Path) -> None:
    assert largest_producer_id(tmp_path) == NO_PRODUCER_ID
    assert next_producer_id_block(NO_PRODUCER_ID) == 0
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
    assert [next_producer_id_block(number) for number in (0, 999, 1000, 2999)] == [1000, 1000, 2000, 3000]
