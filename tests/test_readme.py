"""What the README shows is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


@pytest.mark.clients
@pytest.mark.slow
def test_the_first_example_prints_the_record() -> None:
    (program,) = [text for language, text in BLOCKS if language == "python"]
    finished = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert finished.stdout == "b'an espresso'\n"


def test_every_command_of_the_readme_exists() -> None:
    makefile = (Path(__file__).resolve().parent.parent / "Makefile").read_text(encoding="utf-8")
    commands = {word for language, text in BLOCKS if language == "console" for word in re.findall(r"make (\w+)", text)}
    assert commands
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


def test_the_first_screen_says_what_it_is_for_whom_and_how_to_start() -> None:
    first_screen = "\n".join(README.splitlines()[:60])
    for needed in (
        "make demo",
        "make test",
        "test author",
        "developer",
        "learner",
        "What it emulates",
        "What it does not",
    ):
        assert needed in first_screen
