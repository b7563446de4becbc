"""``groupcoord assign``: what it prints, and what it says of mistakes. The worked examples are in docs/assignors.md."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from groupcoord.assignors.registry import ASSIGNORS
from groupcoord.cli import assign
from groupcoord.cli.assignment_tables import partitions_text
from groupcoord.cli.main import main
from tests.assignors.known import FOLDER, VECTORS

THREE = ("--members", "3", "--topics", "orders:8,payments:4")


def assigned(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["assign", *argv]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What it says on stderr of a wrong question."""
    try:
        code: object = main(["assign", *argv])
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    return captured.err.splitlines()[-1]


def steps(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(assigned(capsys, *argv, "--json"))
    return told


def test_one_assignor_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert assigned(capsys, *THREE, "--assignor", "sticky", "--leave", "B").splitlines() == [
        "A, B and C join (sticky)",
        "",
        "member  has  kept  gained                    lost",
        "------  ---  ----  ------------------------  ----",
        "A       4          orders 0 3 6, payments 1",
        "B       4          orders 1 4 7, payments 2",
        "C       4          orders 2 5, payments 0 3",
        "",
        "imbalance 0, moved 0",
        "",
        "B leaves (sticky)",
        "",
        "member  has   kept                      gained                lost",
        "------  ----  ------------------------  --------------------  ------------------------",
        "A       6     orders 0 3 6, payments 1  orders 1 7",
        "C       6     orders 2 5, payments 0 3  orders 4, payments 2",
        "B       gone                                                  orders 1 4 7, payments 2",
        "",
        "imbalance 0, moved 4",
    ]


def test_all_assignors_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    lines = assigned(capsys, *THREE, "--leave", "B").splitlines()
    heading = next(line for line in lines if line.startswith("member"))
    assert heading.split()[1:] == ASSIGNORS.names()
    assert lines[-1].split()[:2] == ["rebalances", "1"]
    assert lines[-2].startswith("moved       4        8           4        4 ")


def test_two_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    lines = assigned(capsys, *THREE, "--assignor", "range", "--assignor", "sticky").splitlines()
    assert lines[2].split() == ["member", "range", "sticky"]


def test_cooperative_groups_say_what_belonged_to_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    lines = assigned(capsys, *THREE, "--assignor", "cooperative-sticky", "--join", "D").splitlines()
    assert lines[-1] == "2 rebalances; after the first nobody has orders 5-7"


def test_the_story_is_told_in_its_order(capsys: pytest.CaptureFixture[str]) -> None:
    story = ("--then", "--leave", "B", "--join", "D:orders", "--then", "--then", "--leave", "C", "--leave", "A")
    told = steps(capsys, *THREE, "--assignor", "sticky", *story)
    assert [step["step"] for step in told] == [
        "A, B and C join",
        "B leaves, D joins",
        "nobody comes or goes",
        "C and A leave",
    ]
    assert [step["assignors"]["sticky"]["moved"] for step in told] == [0, 5, 0, 4]
    # D wants orders only, and is alone with them; payments wait for somebody.
    assert sorted(told[3]["assignors"]["sticky"]["assignment"]["D"]) == [["orders", number] for number in range(8)]


def test_json_says_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    _, step = steps(capsys, *THREE, "--assignor", "cooperative-sticky", "--assignor", "rendezvous", "--join", "D")
    told = step["assignors"]["cooperative-sticky"]
    assert set(told) == {"assignment", "changes", "imbalance", "moved", "rebalances", "remark"}
    assert told["changes"]["D"] == {"kept": [], "gained": told["assignment"]["D"], "lost": []}
    assert (told["imbalance"], told["moved"], len(told["rebalances"])) == (0, 3, 2)
    assert told["rebalances"][0]["D"] == []
    assert "even share" in step["assignors"]["rendezvous"]["remark"]


def test_members_by_number_and_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    (step,) = steps(capsys, "--members", "28", "--topics", "t:28", "--assignor", "range")
    assert list(step["assignors"]["range"]["assignment"])[-3:] == ["Z", "AA", "AB"]
    assert step["step"] == "28 members join"
    (step,) = steps(capsys, "--members", "x,y:a+b", "--topics", "a:1,b:1,c:1", "--assignor", "roundrobin")
    assert step["assignors"]["roundrobin"]["assignment"] == {"x": [["a", 0], ["c", 0]], "y": [["b", 0]]}


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ((), "--members and --topics are needed, or --cases"),
        (("--members", "2"), "--members and --topics are needed, or --cases"),
        (("--members", "0", "--topics", "t:1"), "a group has 1 to 100,000 members, not 0"),
        (("--members", "A,,B", "--topics", "t:1"), "'' does not name a member"),
        (("--members", "A,B,A", "--topics", "t:1"), "A is a member twice"),
        (("--members", "A,A,A", "--topics", "t:1"), "A is a member 3 times"),
        (("--members", "A:", "--topics", "t:1"), "'A:' says a colon but no topic"),
        (("--members", "2", "--topics", "t"), "'t' is not NAME:PARTITIONS"),
        (("--members", "2", "--topics", "t:-1"), "'t:-1' is not NAME:PARTITIONS"),
        (("--members", "2", "--topics", "t:1,t:2"), "topic t is named twice"),
        (("--members", "2", "--topics", "t:10000001"), "these are more than 10,000,000 partitions"),
        (("--members", "2", "--topics", "t:" + "9" * 5000), "these are more than 10,000,000 partitions"),
        (("--members", "A:u", "--topics", "t:1"), "A wants u, which --topics does not name"),
        (("--members", "A", "--topics", "t:1", "--leave", "B"), "B cannot leave: there is no such member"),
        (("--members", "A", "--topics", "t:1", "--join", "A"), "A is a member already"),
        (
            ("--members", "A", "--topics", "t:1", "--leave", "A"),
            "the group has no members, so there is nothing to assign",
        ),
        (
            ("--members", "A", "--topics", "t:1", "--assignor", "stiky"),
            "there is no assignor 'stiky'; there are range, ",
        ),
        (("--cases", "x.json", "--members", "2"), "--cases goes with --json only"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], argv: Sequence[str], text: str) -> None:
    assert text in refused(capsys, *argv)


def test_no_partitions_are_kafkas_answer(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ASSIGNORS.names():
        (step,) = steps(capsys, "--members", "2", "--topics", "t:0", "--assignor", name)
        assert step["assignors"][name]["assignment"] == {"A": [], "B": []}


def test_a_faulty_assignor_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ASSIGNORS, "_factories", dict(ASSIGNORS._factories))
    ASSIGNORS.register("mine", lambda _: {})
    assert main(["assign", *THREE, "--assignor", "mine"]) == 1
    assert "assignor mine: forgets member A; forgets member B; forgets member C" in capsys.readouterr().err


@pytest.mark.slow
def test_every_case_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(assigned(capsys, "--cases", str(FOLDER / "assignor-vectors.json"), "--json"))
    assert [given["id"] for given in told] == [case["id"] for case in VECTORS]
    assert sum("error" in given for given in told) == sum("expected_error" in case for case in VECTORS)


@pytest.mark.slow
def test_cases_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    lines = assigned(capsys, "--cases", str(FOLDER / "assignor-vectors.json")).splitlines()
    assert lines[0] == "seed000-range-1  range  4 4"
    assert "java-bug-npe-0  sticky  NullPointerException" in lines


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot read "),
        ("{", "is not JSON: "),
        ("{}", "is not a list of cases"),
        ('[{"id": "one"}]', "case one: KeyError: 'assignor'"),
    ],
)
def test_files_that_hold_no_cases(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str | None, text: str
) -> None:
    file = tmp_path / "cases.json"
    if content is not None:
        file.write_text(content)
    assert main(["assign", "--cases", str(file)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("groupcoord assign: ")
    assert text in error


def test_partitions_are_drawn_together() -> None:
    listed = [("b", 2), ("a", 7), ("b", 0), ("b", 1), ("a", 5)]
    assert partitions_text(listed) == "a 5 7, b 0-2"
    assert partitions_text([]) == ""


def test_a_title_of_one_member() -> None:
    change = assign.MemberChange("join", assign.MemberSpec("A", None))
    assert assign._title([change]) == "A joins"
