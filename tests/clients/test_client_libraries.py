"""The clients of the control interface for Java and Go: their own tests, against a server that they start themselves."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CLIENTS = Path(__file__).resolve().parents[2] / "clients"
PATIENCE_S = 600.0
QUICKSTARTS = {
    "java": CLIENTS / "java" / "src" / "test" / "java" / "io" / "groupcoord" / "QuickstartTest.java",
    "go": CLIENTS / "go" / "quickstart_test.go",
}


@pytest.mark.parametrize("language", QUICKSTARTS)
def test_the_readme_shows_the_test_that_runs(language: str) -> None:
    text = (CLIENTS / language / "README.md").read_text(encoding="utf-8")
    shown = text.partition(f"```{language}\n")[2].partition("```")[0]
    assert textwrap.dedent(shown) in QUICKSTARTS[language].read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize(
    ("language", "command"),
    [("java", ["mvn", "-q", "-B", "verify"]), ("go", ["go", "test", "-count=1", "./..."])],
)
def test_the_library_passes_its_tests(language: str, command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    pytest.importorskip("fastapi", reason="the extra control is not installed")
    groupcoord = f"{sys.executable} -m groupcoord"
    environment = {**os.environ, "GROUPCOORD_COMMAND": groupcoord}
    environment.pop("GROUPCOORD_CONTROL_URL", None)
    done = subprocess.run(
        command,
        cwd=CLIENTS / language,
        env=environment,
        timeout=PATIENCE_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
