"""What docs/assignors.md shows is run."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from groupcoord.assignors.registry import ASSIGNORS
from groupcoord.cli.main import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "assignors.md").read_text(encoding="utf-8")
CONSOLES = re.findall(r"```console\n\$ groupcoord (.*?)\n(.*?)```", PAGE, re.DOTALL)
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```output\n(.*?)```", PAGE, re.DOTALL)


def test_nothing_on_the_page_is_left_out() -> None:
    assert len(CONSOLES) == PAGE.count("```console") > 8
    assert len(PROGRAMS) == PAGE.count("```python") == PAGE.count("```output") > 1


@pytest.mark.parametrize(("command", "shown"), CONSOLES)
def test_a_command_prints_what_is_shown(capsys: pytest.CaptureFixture[str], command: str, shown: str) -> None:
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(("program", "shown"), PROGRAMS)
def test_a_program_prints_what_is_shown(monkeypatch: pytest.MonkeyPatch, program: str, shown: str) -> None:
    monkeypatch.setattr(ASSIGNORS, "_factories", dict(ASSIGNORS._factories))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(program, "docs/assignors.md", "exec"), {"__name__": "docs"})
    assert output.getvalue() == shown
