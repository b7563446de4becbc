"""Groups are found again where their names' hash says, or somebody is told what to set."""

import shutil
from pathlib import Path

import pytest

from groupcoord.storage.errors import StorageError
from groupcoord.storage.group_places import groups_in, misplaced
from groupcoord.storage.names import partition_folder
from tests.broker.data_plane import batch
from tests.offsets_log.recorded import KAFKA_FILES
from tests.storage.directory import Life

CLUSTER = KAFKA_FILES / "4.3.1"
"""``__consumer_offsets`` of a real Kafka, in three partitions."""


def copied(directory: Path, *numbers: int) -> dict[int, Path]:
    """Folders of the cluster, by partition."""
    for number in numbers:
        shutil.copytree(CLUSTER / f"__consumer_offsets-{number}", directory / f"__consumer_offsets-{number}")
    paths = {partition_folder(path.name): path for path in directory.iterdir()}
    return {partition.number: path for partition, path in paths.items() if partition is not None}


def test_the_groups_of_a_cluster_and_where_they_are(tmp_path: Path) -> None:
    groups = groups_in(copied(tmp_path, 0, 1, 2))
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
        assert groups_in({0: tmp_path}) == set()


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
