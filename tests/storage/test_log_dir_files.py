"""Kafka's small text files, read and written."""

import uuid
from pathlib import Path

import pytest

from groupcoord.broker.leader_epoch_cache import EpochEntry
from groupcoord.storage import log_dir_files
from groupcoord.storage.log_dir_files import CheckpointError, MetaProperties
from groupcoord.storage.log_file_names import Partition
from tests.storage.directory import KAFKA_FILES

# As Kafka 4.3.1 wrote them.
OFFSETS = "0\n2\nst.one 0 4000\nst.one 1 0\n"
META = (
    "#\n#Sat Nov 21 16:19:07 UTC 2026\nnode.id=1\ndirectory.id=pr3tWVhvnGc37Sqvnoa_KA\nversion=1\n"
    "cluster.id=5L6g3nShT-eMCtK--X86sw\n"
)


def test_offsets_by_partition(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(OFFSETS)
    offsets = log_dir_files.read_offsets(path)
    assert offsets == {Partition("st.one", 0): 4000, Partition("st.one", 1): 0}
    log_dir_files.write_offsets(path, offsets)
    assert path.read_text() == OFFSETS


def test_leader_epochs(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("0\n2\n0 0\n2 4000\n")
    epochs = log_dir_files.read_epochs(path)
    assert epochs == [EpochEntry(0, 0), EpochEntry(2, 4000)]
    log_dir_files.write_epochs(path, epochs)
    assert path.read_text() == "0\n2\n0 0\n2 4000\n"


def test_no_file_is_an_empty_table_and_so_is_one_that_was_only_touched(tmp_path: Path) -> None:
    assert log_dir_files.read_offsets(tmp_path / "a") == {}
    (tmp_path / "a").touch()
    assert log_dir_files.read_epochs(tmp_path / "a") == []


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\nst.one 0 1\n", "0\n1\nst.one 0\n", "x", "0\n1\na b c\n", "\0\0\n"])
def test_a_table_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(CheckpointError, match=str(tmp_path / "a")):
        log_dir_files.read_offsets(tmp_path / "a")


def test_epochs_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0\n1\n0 x\n")
    with pytest.raises(CheckpointError, match="a line that is not epoch and offset"):
        log_dir_files.read_epochs(tmp_path / "a")


def test_whose_folder_it_is(tmp_path: Path) -> None:
    path = KAFKA_FILES / "recorded-0" / "partition.metadata"
    topic_id = log_dir_files.read_topic_id(path)
    assert topic_id is not None
    assert log_dir_files.partition_metadata(topic_id) == path.read_bytes()
    assert log_dir_files.uuid_text(topic_id) in path.read_text()
    assert log_dir_files.read_topic_id(tmp_path / "a") is None


@pytest.mark.parametrize("text", ["version: 1\ntopic_id: x", "version: 0\ntopic_id: x", "version: 0", "", "\0"])
def test_a_folder_that_does_not_say_whose_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(CheckpointError, match=str(tmp_path / "a")):
        log_dir_files.read_topic_id(tmp_path / "a")


def test_an_id_is_22_characters() -> None:
    drawn = uuid.uuid4()
    assert log_dir_files.parse_uuid(log_dir_files.uuid_text(drawn)) == drawn
    assert len(log_dir_files.uuid_text(drawn)) == 22


def test_whose_directory_it_is(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    assert log_dir_files.read_meta_properties(path) is None
    path.write_text(META)
    meta = log_dir_files.read_meta_properties(path)
    assert meta == MetaProperties("5L6g3nShT-eMCtK--X86sw", 1, "pr3tWVhvnGc37Sqvnoa_KA")
    log_dir_files.write_meta_properties(path, meta)
    assert path.read_text() == META.split("UTC 2026\n")[1]
    path.write_text("version=0\nbroker.id=7\ncluster.id=c\n")
    assert log_dir_files.read_meta_properties(path) == MetaProperties("c", 7, "")


@pytest.mark.parametrize("text", ["", "version=1\n", "version=1\nnode.id=x\ncluster.id=c\n", "version=\\u00"])
def test_a_directory_that_does_not_say_whose_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(CheckpointError, match=r"does not say version, node\.id and cluster\.id"):
        log_dir_files.read_meta_properties(tmp_path / "a")


def test_the_mark_of_a_clean_shutdown() -> None:
    assert log_dir_files.clean_shutdown_marker() == b'{"version":0,"brokerEpoch":-1}'
