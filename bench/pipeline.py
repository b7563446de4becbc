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

from bench.spark_event_log import TimeSpent, table_of, time_spent
from bench.table import Table
from groupcoord.pipeline.schemas import TABLES

SIZES = [int(size) for size in os.environ.get("BENCH_PIPELINE_RECORDS", "217,1000000,10000000").split(",")]
MASTER = os.environ.get("BENCH_PIPELINE_MASTER", "local[2]")
_SET_CHILD_SUBREAPER = 36
"""To prctl(2): orphans come to this process, such as the Java that a command leaves to end by itself."""


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
            wall, processor = _measure("run", *source, *settings)
            table.add(f"{records:,}", f"{size / 1e6:,.1f}", f"{wall:.1f}", f"{processor:.1f}", f"{records / wall:,.0f}")
            spent[f"{records:,}"] = time_spent(log)
    return [table, table_of("where the time goes, from Spark's event log", spent)]


def _measure(*words: str) -> tuple[float, float]:
    """How many seconds ``groupcoord pipeline`` took, and how much processor time with all processes that it started."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "groupcoord", "pipeline", *words, "--master", MASTER]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
