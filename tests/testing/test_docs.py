"""The tests that docs/testing.md shows pass."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.slow, pytest.mark.clients]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_what_the_page_shows_passes(pytester: pytest.Pytester) -> None:
    (settings,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
    pytester.makefile(".ini", pytest=settings)
    pytester.makepyfile(**{f"test_{number}": text for number, text in enumerate(TESTS)})
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", timeout=120)
    count = len(re.findall(r"^(?:async )?def test_", PAGE, re.MULTILINE))
    result.assert_outcomes(passed=count + 1)  # one has two parameters


def test_every_recipe_has_its_test() -> None:
    recipes = re.findall(r"^### … .*$", PAGE, re.MULTILINE)
    assert len(recipes) + 4 == len(
        TESTS
    )  # the first test, one of fixtures, one without asyncio, and one for a real broker
