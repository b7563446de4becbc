"""What the README shows is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
PROGRAMS = [text for language, text in BLOCKS if language == "python"]
pytest_plugins = ["pytester"]


@pytest.mark.clients
@pytest.mark.slow
def test_the_first_example_prints_the_record() -> None:
    assert printed(0) == "b'an espresso'\n"


@pytest.mark.slow
def test_the_cooperative_example_shows_that_only_what_moves_is_given() -> None:
    lines = printed(2).splitlines()
    assert [line for line in lines if not line.endswith("[]")][:3] == [
        "first gets [0, 1, 2, 3]",
        "first gives [2, 3]",
        "second gets [2, 3]",
    ]


@pytest.mark.slow
def test_the_test_of_a_consumer_group_passes(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest="[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(PROGRAMS[1])
    pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def printed(number: int) -> str:
    """What a program of the README prints."""
    finished = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", PROGRAMS[number]],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return finished.stdout


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
