"""Files are written whole, or not at all."""

import os
from pathlib import Path

import pytest

from groupcoord.storage import files
from tests.storage.faults import failing


def test_what_a_system_writes_and_reads_in_parts_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.touch()
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: write(descriptor, bytes(data)[:3], position))
    monkeypatch.setattr(os, "pread", lambda descriptor, length, position: read(descriptor, min(length, 4), position))
    with files.opened(path, os.O_RDWR) as descriptor:
        files.write_at(descriptor, b"0123456789", 0)
        files.write_at(descriptor, bytearray(b"abc"), 2)
        assert files.read_at(descriptor, 10, 0) == b"01abc56789"
        assert files.read_at(descriptor, 100, 1) == b"1abc56789"
        assert files.read_at(descriptor, 4, 4) == b"c567"
        assert files.read_at(descriptor, 4, 10) == b""


def test_replacing_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    files.replace(path, b"old")
    with failing(monkeypatch, "fsync"), pytest.raises(OSError, match="No space"):
        files.replace(path, b"new")
    assert path.read_bytes() == b"old"
    files.replace(path, b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_what_need_not_be_on_the_disk_is_written_aside_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    files.replace(path, b"old")
    with failing(monkeypatch, "pwrite"), pytest.raises(OSError, match="No space"):
        files.replace(path, b"new", synced=False)
    assert path.read_bytes() == b"old"
    with failing(monkeypatch, "fsync"):
        files.replace(path, b"new", synced=False)
    assert path.read_bytes() == b"new"


def test_tidying_removes_what_was_written_aside(tmp_path: Path) -> None:
    for name in ("a", "a.tmp", ".b.tmp"):
        (tmp_path / name).touch()
    files.tidy(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_new_directory_is_on_the_disk_with_those_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync", synced.append)
    files.make_directory(tmp_path / "a" / "b")
    assert sorted(synced) == [tmp_path, tmp_path / "a"]
    files.make_directory(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_creating_empties(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"something")
    files.create(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b""
