"""``groupcoord page``: what it writes, and what it says of files that are not traces."""

import json
from pathlib import Path

import pytest

from groupcoord.cli.main import main
from groupcoord.page import html_embedding
from tests.page.test_front_end_cases import CASES
from tests.storage.faults import failing

CASE = CASES / "baristas.jsonl"


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "page.html").write_text("<head><!-- data --></head>", encoding="utf-8")
    monkeypatch.setattr(html_embedding, "STATIC", tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = main(["page", *argv])
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return code, said.err.strip()


def test_the_page_is_written_where_it_is_said_and_its_name_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.html"
    assert main(["page", str(CASE), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert 'id="groupcoord-trace"' in out.read_text(encoding="utf-8")


def test_without_a_name_it_stands_beside_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "mine.jsonl"
    trace.write_bytes(CASE.read_bytes())
    assert main(["page", str(trace)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'mine.html'}\n"


def test_a_broken_line_is_told_with_its_number_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, out = tmp_path / "broken.jsonl", tmp_path / "out.html"
    lines = CASE.read_text(encoding="utf-8").splitlines()
    trace.write_text("\n".join([*lines[:4], lines[4][:40], *lines[5:]]), encoding="utf-8")
    code, said = refused(capsys, str(trace), "--out", str(out))
    assert code == 2
    assert said.startswith(f"groupcoord page: line 5 of {trace} is not an entry of a trace: ")
    assert not out.exists()


def test_a_trace_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "newer.jsonl"
    trace.write_text(json.dumps({"schema": "groupcoord-trace", "version": 99, "start_ms": 0, "dropped": {}}))
    said = f"groupcoord page: {trace} is a trace of version 99; version 2 can be read"
    assert refused(capsys, str(trace)) == (2, said)


def test_files_that_cannot_be_read_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = tmp_path / "nowhere"
    said = f"groupcoord page: cannot read {nowhere}: No such file or directory"
    assert refused(capsys, str(nowhere)) == (2, said)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\0")
    code, said = refused(capsys, str(binary))
    assert (code, said.startswith(f"groupcoord page: {binary} is not a trace")) == (2, True)
    out = nowhere / "out.html"
    said = f"groupcoord page: cannot write {out}: No such file or directory"
    assert refused(capsys, str(CASE), "--out", str(out)) == (1, said)


def test_a_page_that_is_not_built(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / "page.html").unlink()
    code, said = refused(capsys, str(CASE))
    assert code == 1
    assert said == "groupcoord page: the page is not built: `make page` builds it, with Node 20 and npm"


@pytest.mark.slow
def test_a_full_disk_leaves_the_page_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / "page.html"
    out.parent.mkdir()
    out.write_text("the page before")
    with failing(monkeypatch, "pwrite"):
        said = f"groupcoord page: cannot write {out}: No space left on device"
        assert refused(capsys, str(CASE), "--out", str(out)) == (1, said)
    assert [one.name for one in out.parent.iterdir()] == ["page.html"]
    assert out.read_text() == "the page before"
