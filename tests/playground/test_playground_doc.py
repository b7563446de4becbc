"""What docs/playground.md shows is so."""

import re
from pathlib import Path

import pytest

from groupcoord.playground.lesson import LessonRun, parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "playground.md").read_text(encoding="utf-8")


def test_the_lesson_of_the_page_holds() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    run = LessonRun(parse("page", text))
    assert [each for each in run.step()["expectations"] if not each["holds"]] == []


def test_the_program_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(text, "docs/playground.md", "exec"), {})
    state, why, *_ = capsys.readouterr().out.splitlines()
    assert re.findall(r"# (\w+)$", text, re.MULTILINE) == [state]
    assert "session of 45,000 ms ran out" in why
