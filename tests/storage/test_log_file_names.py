"""The names of files and folders are Kafka's."""

from pathlib import Path

import pytest

from groupcoord.storage import log_file_names
from groupcoord.storage.log_file_names import Partition, SegmentFile


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("00000000000000000042.log", SegmentFile(42, ".log", "")),
        ("00000000000000000000.timeindex.swap", SegmentFile(0, ".timeindex", ".swap")),
        ("00000000000000000007.snapshot", SegmentFile(7, ".snapshot", "")),
        ("00000000000000000007.txnindex.deleted", SegmentFile(7, ".txnindex", ".deleted")),
        ("00000000000000000000.log.17.cut", None),
        ("0.log", None),
        ("partition.metadata", None),
    ],
)
def test_files_of_segments(name: str, found: SegmentFile | None) -> None:
    assert log_file_names.segment_file(name) == found


def test_a_name_has_twenty_digits() -> None:
    assert log_file_names.file_name(2452, log_file_names.OFFSET_INDEX) == "00000000000000002452.index"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders-0", Partition("orders", 0)),
        ("a-b.c_d-12", Partition("a-b.c_d", 12)),
        ("orders", None),
        ("orders-x", None),
    ],
)
def test_folders_of_partitions(name: str, found: Partition | None) -> None:
    assert log_file_names.partition_folder(name) == found
    assert found is None or str(found) == name


def test_a_folder_that_is_being_deleted_says_so() -> None:
    assert log_file_names.is_deleted_folder(f"orders-0.{'0' * 32}-delete")
    assert not log_file_names.is_deleted_folder("orders-0")


def test_log_files_come_by_offset(tmp_path: Path) -> None:
    for name in ("00000000000000000042.log", "00000000000000000007.log", "00000000000000000007.index", "x.log"):
        (tmp_path / name).touch()
    assert [path.name[18:] for path in log_file_names.log_files(tmp_path)] == ["07.log", "42.log"]
