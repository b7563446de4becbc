"""Benchmark of ``groupcoord pipeline run``: generated logs of growing size, from segment files to all tables and the report.

``BENCH_PIPELINE_RECORDS`` (``217,1000000,10000000``) says which sizes, ``BENCH_PIPELINE_MASTER`` (``local[2]``) where.
"""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.spark_event_log import TimeSpent, table_of, time_spent
from bench.table import Table
from groupcoord.pipeline.schemas import TABLES

SIZES = [int(size) for size in os.environ.get("BENCH_PIPELINE_RECORDS", "217,1000000,10000000").split(",")]
MASTER = os.environ.get("BENCH_PIPELINE_MASTER", "local[2]")
_SET_CHILD_SUBREAPER = 36
"""To prctl(2): orphans come to this process, such as the Java that a command leaves to end by itself."""


class Measured(NamedTuple):
    """What a command took with all processes that it started; ``memory_bytes`` is the most that they held at the same time."""

    wall_s: float
    processor_s: float
    memory_bytes: int


def run() -> list[Table]:
    """Each size in a directory of its own, which is removed."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    table = Table(
        f"pipeline: {MASTER}, from segment files to {len(TABLES)} tables and the report",
        "records",
        "MB",
        "wall, s",
        "processor, s",
        "rec/s",
        "memory at most, MB",
    )
    spent: dict[str, TimeSpent] = {}
    for records in SIZES:
        with tempfile.TemporaryDirectory(prefix="groupcoord-bench-") as name:
            segments, log = Path(name, "segments"), Path(name, "log")
            log.mkdir()
            _measure("generate", "--records", str(records), "--out", str(segments))
            size = sum(path.stat().st_size for path in segments.rglob("*.log"))
            source = ("--source", f"segments:{segments}", "--out", f"{name}/out")
            events = {"enabled": "true", "compress": "false", "dir": str(log)}
            settings = [word for key, value in events.items() for word in ("--conf", f"spark.eventLog.{key}={value}")]
            took = _measure("run", *source, *settings)
            table.add(
                f"{records:,}",
                f"{size / 1e6:,.1f}",
                f"{took.wall_s:.1f}",
                f"{took.processor_s:.1f}",
                f"{records / took.wall_s:,.0f}",
                f"{took.memory_bytes / 1e6:,.0f}",
            )
            spent[f"{records:,}"] = time_spent(log)
    return [table, table_of("where the time goes, from Spark's event log", spent)]


def _measure(*words: str) -> Measured:
    """Run ``groupcoord pipeline``. Raises RuntimeError if it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    memory_bytes = 0
    command = [sys.executable, "-m", "groupcoord", "pipeline", *words, "--master", MASTER]
    with tempfile.TemporaryFile("w+") as errors:
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        while _runs(running):
            memory_bytes = max(memory_bytes, _memory_of_session(running.pid))
        wall_s = time.perf_counter() - began
        if running.returncode:
            errors.seek(0)
            raise RuntimeError(errors.read())
    try:
        while True:
            os.wait()
    except ChildProcessError:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measured(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory_bytes)


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """Does it still run half a second later? False as soon as it ends."""
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return True
    return False


def _memory_of_session(session: int) -> int:
    """The bytes of memory that the processes of that session hold; what several share is counted once."""
    held = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == session:
                lines = (process / "smaps_rollup").read_text(encoding="ascii").splitlines()
                held += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        except OSError:  # it has ended
            continue
    return held
