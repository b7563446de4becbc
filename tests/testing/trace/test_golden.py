"""Texts compared with files, what differs from run to run aside."""

from collections.abc import Callable
from pathlib import Path

import pytest

from groupcoord.testing.trace import golden
from groupcoord.testing.trace.golden import PORTS, RULES, TIMES, UUIDS, assert_golden, normalised
from tests.testing.trace.stage import Stage

ONE, TWO = "3f2a0000-0000-4000-8000-000000000001", "77c10000-0000-4000-8000-000000000002"


def test_ids_are_numbered_in_their_order() -> None:
    assert normalised(f"a-{ONE} and b-{TWO}, a-{ONE}") == "a-<id-1> and b-<id-2>, a-<id-1>"


def test_ports_behind_addresses() -> None:
    text = "127.0.0.1:40001 localhost:40002 [::1]:40003 127.0.0.1:40001 orders:5"
    assert normalised(text) == "127.0.0.1:<port-1> localhost:<port-2> [::1]:<port-3> 127.0.0.1:<port-1> orders:5"


def test_times_if_they_are_asked_for() -> None:
    text = "@3000 g waits 3000 ms\n@61200 out at 61.2 s after 45,000 ms, id-5"
    assert normalised(text) == text
    assert normalised(text, (TIMES,)) == "@<time> g waits <time>\n@<time> out at <time> after <time>, id-5"


def test_rules_have_names() -> None:
    assert [rule.name for rule in (*RULES, TIMES)] == ["id", "port", "time"]
    assert RULES == (UUIDS, PORTS)


def test_a_text_that_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "golden.txt"
    path.write_text(f"a-{ONE}\nx\n", "utf-8")
    assert_golden(f"a-{TWO}\nx", path)
    assert_golden(f"a-{TWO}\nx\n", str(path))


def test_a_text_that_differs_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "golden.txt"
    path.write_text("one\ntwo\nthree\n", "utf-8")
    with pytest.raises(AssertionError) as refused:
        assert_golden("one\nzwei\nthree", path)
    assert str(refused.value).splitlines() == [
        f"{path} says otherwise (--rewrite-golden writes it anew):",
        "--- golden golden.txt",
        "+++ now",
        "@@ -1,3 +1,3 @@",
        " one",
        "-two",
        "+zwei",
        " three",
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"there is no golden file .*; write it with --rewrite-golden"):
        assert_golden("x", tmp_path / "golden.txt")


def test_a_trace_is_compared_by_its_text(tmp_path: Path) -> None:
    stage = Stage()
    stage.member("a").join()
    path = tmp_path / "golden.txt"
    path.write_text(normalised(stage.trace.text(links=False, short=False)) + "\n", "utf-8")
    assert "newcomer gets the id a-<id-1> and " in path.read_text("utf-8")
    assert_golden(stage.trace, path)


def test_a_golden_file_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "new" / "golden.txt"
    undo: list[Callable[[], None]] = []
    golden.rewrite(undo.append)
    try:
        assert_golden(f"a-{ONE}", path)
    finally:
        undo[0]()
    assert path.read_text("utf-8") == "a-<id-1>\n"
    with pytest.raises(AssertionError):
        assert_golden("b", path)
