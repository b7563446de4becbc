"""The file of the log, and those before it."""

from pathlib import Path

import pytest

from groupcoord.server.rotating_log_file import RotatingLogFile


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_lines_are_never_divided_and_the_oldest_go(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("1\n")
    file = RotatingLogFile(tmp_path / "log", 6, 3)
    file.write(b"2\n3\n4\n5\n")
    file.write(b"a long one\n")
    file.write(b"6\n")
    file.close()
    assert written(tmp_path) == {"log.2": "4\n5\n", "log.1": "a long one\n", "log": "6\n"}


def test_a_lone_file_and_what_is_no_file_are_written_to_for_ever(tmp_path: Path) -> None:
    lone = RotatingLogFile(tmp_path / "log", 4, 1)
    lone.write(b"1\n2\n3\n")
    lone.close()
    nowhere = RotatingLogFile(Path("/dev/null"), 4, 3)
    nowhere.write(b"1\n2\n3\n")
    nowhere.close()
    assert written(tmp_path) == {"log": "1\n2\n3\n"}


def test_a_file_that_cannot_be_followed_by_another_is_written_on(tmp_path: Path) -> None:
    file = RotatingLogFile(tmp_path / "log", 4, 2)
    file.write(b"1\n2\n")
    (tmp_path / "log.1").mkdir()
    with pytest.raises(OSError, match="directory"):
        file.write(b"3\n")
    (tmp_path / "log.1").rmdir()
    file.write(b"4\n")
    file.close()
    assert written(tmp_path) == {"log.1": "1\n2\n", "log": "4\n"}
