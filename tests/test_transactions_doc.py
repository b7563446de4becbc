"""What docs/transactions.md shows is run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "transactions.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize(("program", "shown"), PROGRAMS, ids=["loop", "fenced", "timeout"])
def test_every_program_prints_what_is_shown(program: str, shown: str) -> None:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=180, check=False)
    assert (run.stdout, run.returncode) == (shown, 0), run.stderr
