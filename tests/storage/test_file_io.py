"""Files are replaced, read and flushed whole or not at all."""

import os
from pathlib import Path

import pytest

from groupcoord.storage import file_io
from groupcoord.storage.file_io import BackgroundSync, ChunkedReader, opened
from tests.storage.faults import failing


def test_what_a_system_writes_and_reads_in_parts_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.touch()
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: write(descriptor, bytes(data)[:3], position))
    monkeypatch.setattr(os, "pread", lambda descriptor, length, position: read(descriptor, min(length, 4), position))
    with file_io.opened(path, os.O_RDWR) as descriptor:
        file_io.write_at(descriptor, b"0123456789", 0)
        file_io.write_at(descriptor, bytearray(b"abc"), 2)
        assert file_io.read_at(descriptor, 10, 0) == b"01abc56789"
        assert file_io.read_at(descriptor, 100, 1) == b"1abc56789"
        assert file_io.read_at(descriptor, 4, 4) == b"c567"
        assert file_io.read_at(descriptor, 4, 10) == b""


def test_replacing_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    file_io.replace(path, b"old")
    with failing(monkeypatch, "fsync"), pytest.raises(OSError, match="No space"):
        file_io.replace(path, b"new")
    assert path.read_bytes() == b"old"
    file_io.replace(path, b"new")
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_what_need_not_be_on_the_disk_is_written_aside_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    file_io.replace(path, b"old")
    with failing(monkeypatch, "pwrite"), pytest.raises(OSError, match="No space"):
        file_io.replace(path, b"new", synced=False)
    assert path.read_bytes() == b"old"
    with failing(monkeypatch, "fsync"):
        file_io.replace(path, b"new", synced=False)
    assert path.read_bytes() == b"new"


def test_an_output_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, link, pipe = tmp_path / "page.html", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(path)
    file_io.write_output(link, "old")
    with failing(monkeypatch, "pwrite"), pytest.raises(OSError, match="No space") as problem:
        file_io.write_output(path, "new")
    assert problem.value.filename == str(path)
    assert path.read_text() == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "page.html"]
    reader, writer = os.pipe()
    pipe.symlink_to(f"/proc/self/fd/{writer}")  # as /dev/stdout is
    file_io.write_output(pipe, "to a reader")
    assert os.read(reader, 100) == b"to a reader"
    os.close(reader)
    os.close(writer)
    with pytest.raises(IsADirectoryError):
        file_io.write_output(tmp_path, "no")


def test_tidying_removes_what_was_written_aside(tmp_path: Path) -> None:
    for name in ("a", "a.tmp", ".b.tmp"):
        (tmp_path / name).touch()
    file_io.tidy(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_new_directory_is_on_the_disk_with_those_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(file_io, "sync", synced.append)
    file_io.make_directory(tmp_path / "a" / "b")
    assert sorted(synced) == [tmp_path, tmp_path / "a"]
    file_io.make_directory(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_creating_empties(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"something")
    file_io.create(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b""


def test_every_stretch(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    with opened(path) as descriptor:
        window = ChunkedReader(descriptor, chunk=16)
        for position, length in [(0, 4), (4, 12), (15, 2), (0, 1), (20, 50), (95, 20), (100, 1)]:
            assert bytes(window.at(position, length)) == bytes(range(100))[position : position + length]


def test_one_after_the_other() -> None:
    background = BackgroundSync()
    done: list[int] = []
    futures = [background.submit(lambda number=number: done.append(number)) for number in range(20)]  # type: ignore[misc]
    background.close()
    assert done == list(range(20))
    assert all(future.done() for future in futures)
    background.close()


def test_what_goes_wrong_is_in_the_future() -> None:
    background = BackgroundSync()

    def fail() -> None:
        raise OSError(5, "Input/output error")

    future = background.submit(fail)
    background.close()
    assert isinstance(future.exception(), OSError)
