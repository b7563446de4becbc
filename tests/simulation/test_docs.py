"""The tests in docs/simulation.md pass."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")
TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TESTS)))
def test_what_the_page_shows_passes(number: int) -> None:
    names: dict[str, object] = {}
    exec(compile(TESTS[number], f"example {number}", "exec"), names)
    tests = [found for name, found in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        assert callable(test)
        test()
