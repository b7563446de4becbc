"""Folders that real brokers have written, and what can be wrong with such folders."""

import shutil
from pathlib import Path

import pytest

from groupcoord.offsets_log.log_source import Batch, SourceError, UnreadableData
from groupcoord.offsets_log.segment_dir_source import SegmentDirSource
from groupcoord.protocol.batches.record_batch import records_of
from groupcoord.storage.log_dir_files import uuid_text
from tests.offsets_log.recorded import KAFKA_FILES, VERSIONS, log_of, positions


def copied(tmp_path: Path, version: str = "4.3.1") -> Path:
    return Path(shutil.copytree(KAFKA_FILES / version, tmp_path / "copied"))


def found_in(folders: Path, partition: int) -> list[int | str]:
    """Base offsets of batches, and the reasons of faults."""
    return [
        found.header.base_offset if isinstance(found, Batch) else found.reason
        for found in SegmentDirSource(folders).read(partition)
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_byte_is_found(version: str) -> None:
    source = SegmentDirSource(KAFKA_FILES / version)
    assert source.partitions == [0, 1, 2]
    for number in source.partitions:
        batches = [each for each in source.read(number) if isinstance(each, Batch)]
        assert b"".join(batch.data for batch in batches) == log_of(version, number).read_bytes()
        assert all(list(records_of(batch.data, batch.header)) for batch in batches)
        assert {batch.segment for batch in batches} <= {0}


def test_the_id_of_the_topic_is_known() -> None:
    source = SegmentDirSource(KAFKA_FILES / "4.3.1")
    text = (KAFKA_FILES / "4.3.1" / "__consumer_offsets-0" / "partition.metadata").read_text()
    assert source.topic_id is not None
    assert text.endswith(uuid_text(source.topic_id))


def test_one_folder_may_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copied(tmp_path) / "__consumer_offsets-2"
    assert SegmentDirSource(folder).partitions == [2]
    monkeypatch.chdir(folder)
    assert SegmentDirSource(Path()).partitions == [2]


def test_without_an_id_there_is_none(tmp_path: Path) -> None:
    folder = copied(tmp_path) / "__consumer_offsets-2"
    (folder / "partition.metadata").unlink()
    assert SegmentDirSource(folder).topic_id is None


def test_a_torn_end_is_told(tmp_path: Path) -> None:
    folders = copied(tmp_path)
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    position, offset = positions(data)[-1]
    size = len(data) - position
    *_, last = SegmentDirSource(folders).read(2)
    reason = f"{size - 10} bytes of a batch of {size} that was not completely written"
    assert last == UnreadableData(2, offset, reason, f"{path} at byte {position}")


def test_what_is_behind_a_broken_batch_is_read(tmp_path: Path) -> None:
    folders = copied(tmp_path)
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name
    data = bytearray(path.read_bytes())
    offsets = [offset for _, offset in positions(bytes(data))]
    position, _ = positions(bytes(data))[3]
    data[position + 70] ^= 1
    path.write_bytes(data)
    found = found_in(folders, 2)
    assert [*found[:3], *found[4:]] == [*offsets[:3], *offsets[4:]]
    assert str(found[3]).startswith(f"the checksum of the batch with offset {offsets[3]} is not")


def test_offsets_that_go_back_are_told_and_what_follows_is_read(tmp_path: Path) -> None:
    folders = copied(tmp_path)
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name
    data = bytearray(path.read_bytes())
    (_, _), (position, _), *_ = positions(bytes(data))
    data[position : position + 8] = bytes(8)
    path.write_bytes(data)
    found = found_in(folders, 2)
    assert found[1] == "a batch with offsets 0 to 0, where none below 1 can be"
    assert len(found) == len(positions(bytes(data)))


def test_behind_what_is_no_batch_there_is_nothing_to_find(tmp_path: Path) -> None:
    folders = copied(tmp_path)
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name
    data = bytearray(path.read_bytes())
    position, _ = positions(bytes(data))[1]
    data[position + 8 : position + 12] = bytes(4)
    path.write_bytes(data)
    assert found_in(folders, 2) == [0, "a batch of length 0, and none is shorter than 49"]


def problem_with(path: Path) -> str:
    with pytest.raises(SourceError) as problem:
        SegmentDirSource(path)
    return str(problem.value)


def test_what_is_no_such_folder_is_told(tmp_path: Path) -> None:
    assert problem_with(tmp_path / "nowhere") == f"there is no directory {tmp_path / 'nowhere'}"
    (tmp_path / "file").write_text("")
    assert problem_with(tmp_path / "file").startswith(f"{tmp_path / 'file'} is not a directory")
    assert (
        problem_with(tmp_path) == f"{tmp_path} is not a folder __consumer_offsets-N, and there is no such folder in it"
    )
    renamed = tmp_path / "mine"
    shutil.copytree(KAFKA_FILES / "4.3.1" / "__consumer_offsets-1", renamed)
    assert "log files, but its name does not say of which partition" in problem_with(renamed)
    (tmp_path / "__consumer_offsets-1").mkdir()
    assert problem_with(tmp_path).startswith(f"no segment is in {tmp_path / '__consumer_offsets-1'}")


def test_folders_of_several_topics_are_told_apart(tmp_path: Path) -> None:
    folders = copied(tmp_path)
    other = KAFKA_FILES / "3.9.2" / "__consumer_offsets-0" / "partition.metadata"
    metadata = folders / "__consumer_offsets-0" / "partition.metadata"
    shutil.copy(other, metadata)
    assert "are not of one topic" in problem_with(folders)
    metadata.write_text("nonsense")
    assert problem_with(folders) == f"{metadata} is not of version 0"


def test_what_the_system_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = copied(tmp_path)
    source = SegmentDirSource(folders)
    path = folders / "__consumer_offsets-2" / log_of("4.3.1", 2).name

    def refuse(*_: object) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("groupcoord.storage.log_file_reader.opened", refuse)
    with pytest.raises(SourceError, match=f"^cannot use {path}: Permission denied$"):
        list(source.read(2))
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert problem_with(folders) == f"cannot use {path}: Permission denied"


def test_a_fault_says_where_it_is() -> None:
    assert (
        str(UnreadableData(3, 7, "the checksum is wrong")) == "__consumer_offsets-3 at offset 7: the checksum is wrong"
    )
    assert (
        str(UnreadableData(3, 7, "torn", "x.log at byte 9"))
        == "__consumer_offsets-3 at offset 7: torn (x.log at byte 9)"
    )
