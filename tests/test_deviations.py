"""The table of deviations is made from marks in code and tests, and the marks have to be in order."""

from pathlib import Path

import pytest

from tools.deviations import Deviation, Mark, collected, marks, of_sources, table

CODE = [
    Mark("groupcoord/a.py", "one-thing", "it is so, and why"),
    Mark("groupcoord/b.py", "one-thing", "see a.py"),
    Mark("groupcoord/c.py", "another", "x | y"),
]
TESTS = [Mark("tests/test_a.py", "one-thing", ""), Mark("tests/test_c.py", "another", "")]


@pytest.mark.slow
def test_there_are_at_most_five_and_each_is_explained_and_shown() -> None:
    assert 1 <= len(of_sources()) <= 5


def test_several_places_are_one_row() -> None:
    another, one_thing = collected(CODE, TESTS)
    assert one_thing == Deviation(
        "one-thing", ["it is so, and why"], {"groupcoord/a.py", "groupcoord/b.py"}, {"tests/test_a.py"}
    )
    assert table([another, one_thing]).splitlines()[2:] == [
        "| another | X \\| y | `groupcoord/c.py` | `tests/test_c.py` |",
        "| one-thing | It is so, and why | `groupcoord/a.py`<br>`groupcoord/b.py` | `tests/test_a.py` |",
    ]


@pytest.mark.parametrize(
    ("code", "tests", "problem"),
    [
        (CODE, TESTS[:1], "no test shows the deviation another"),
        (CODE[1:], TESTS, r"the deviation one-thing is explained 0 times: groupcoord/b\.py"),
        ([*CODE, Mark("groupcoord/d.py", "another", "again")], TESTS, "another is explained 2 times"),
        (CODE, [*TESTS, Mark("tests/test_d.py", "third", "")], "test_d.py shows the deviation third, which is none"),
        (
            [Mark("a.py", name, "why") for name in "abcdef"],
            [Mark("t.py", name, "") for name in "abcdef"],
            "6 deviations, and 5 are the most: a, b, c, d, e, f",
        ),
    ],
)
def test_what_is_not_in_order_is_refused(code: list[Mark], tests: list[Mark], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        collected(code, tests)


def test_marks_stand_in_comments_and_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "code" / "module.py"
    module.parent.mkdir()
    lines = [
        "'''No mark here, for the quotes are others: Deviation (not-this)'''",
        "def f() -> None:",
        '    """What it does.',
        "",
        "    Deviation (in-a-docstring): it is",
        "    so.",
        '    """',
        "    # A comment. Deviation (in-a-comment): it is",
        "    # otherwise.",
        "",
        "    x = 1  # Deviation (at-the-end): see there",
        "    print('Deviation (in-a-string)', x)",
    ]
    module.write_text("\n".join(lines))
    assert list(marks(module.parent)) == [
        Mark("code/module.py", "in-a-docstring", "it is so."),
        Mark("code/module.py", "in-a-comment", "it is otherwise."),
        Mark("code/module.py", "at-the-end", "see there"),
    ]


def test_a_folder_may_be_left_out(tmp_path: Path) -> None:
    for name in ("client", "broker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module.py").write_text(f"# Deviation (of-the-{name}): why\n")
    assert [mark.name for mark in marks(tmp_path, but_not="client")] == ["of-the-broker"]


@pytest.mark.parametrize("text", ["Deviation: why", "Deviation (Not A Name): why"])
def test_a_mark_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(f"# {text}\n")
    with pytest.raises(ValueError, match="has a deviation without a name"):
        list(marks(tmp_path))
