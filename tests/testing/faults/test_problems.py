import pytest

from groupcoord.testing.faults.problems import Findings, Problem, RuleProblems, is_flag, is_number


def fail(text: str) -> int:
    raise ValueError(text)


def several() -> int:
    raise RuleProblems([Problem("a", "is wrong"), Problem("b", "too")])


def test_all_that_is_wrong_is_told_at_once() -> None:
    findings = Findings()
    assert findings.read("x", lambda: 3) == 3
    findings.tell()
    assert findings.read("x", lambda: fail("it is no y")) is None
    assert findings.read("x", several) is None
    with pytest.raises(RuleProblems) as found:
        findings.tell()
    assert str(found.value) == "x: it is no y; a: is wrong; b: too"
    assert [problem.field for problem in found.value.problems] == ["x", "a", "b"]


def test_one_thing_is_wrong() -> None:
    assert RuleProblems.one("a", "is wrong").problems == (Problem("a", "is wrong"),)


def test_yes_and_no_are_no_numbers() -> None:
    assert [is_number(value) for value in (0, -3, True, 1.0, "1", None)] == [True, True, False, False, False, False]
    assert [is_flag(value) for value in (True, False, 0, 1, None)] == [True, True, False, False, False]
