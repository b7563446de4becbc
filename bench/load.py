"""Builds the load generator once per machine and runs it."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Result(NamedTuple):
    """Answers per second, how long an answer took (microseconds), and how many there were."""

    per_second: float
    median_us: float
    p99_us: float
    answers: float


def run(port: int, seconds: float, frames: Sequence[bytes], each: int = 1) -> Result:
    """One connection for ``each`` of the frames, which sends them in turn, the next one as soon as the last one is answered."""
    with tempfile.NamedTemporaryFile(suffix=".frames") as file:
        file.write(b"".join(frames))
        file.flush()
        command = [str(_binary()), str(port), str(seconds), file.name, str(each)]
        finished = subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds + 60)
    return Result(*map(float, finished.stdout.split()))


@cache
def _binary() -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("bench: a C compiler (cc, gcc or clang) is needed for the load generator")
    binary = Path(tempfile.mkdtemp(prefix="groupcoord-bench-")) / "load"
    subprocess.run([compiler, "-O2", "-o", str(binary), str(Path(__file__).with_name("load.c"))], check=True)
    return binary
