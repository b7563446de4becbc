"""A cluster of several processes, of which one is killed in the middle: the run ends with the same tables."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.page import embedding
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import TABLES
from groupcoord.pipeline.sources.factory import plan_source

SOURCE = f"segments:{Path(__file__).parent / 'recordings' / '4.3.1'}"
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
CONF = ("spark.sql.shuffle.partitions=2", "spark.driver.memory=1g", "spark.executor.memory=512m")


def processes() -> Iterator[tuple[int, int, bytes]]:
    """Number, parent and command line of each process there is."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            yield int(path.name), parent, (path / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue


def executors_of(driver: int) -> list[int]:
    """The executors that ``driver`` has, the oldest first."""
    found = list(processes())
    parents = {number: parent for number, parent, _ in found}

    def is_below(number: int) -> bool:
        while number := parents.get(number, 0):
            if number == driver:
                return True
        return False

    return sorted(number for number, _, command in found if EXECUTOR in command and is_below(number))


def rows(out: Path) -> dict[str, Counter[str]]:
    """What is in each table, in any order."""
    return {name: Counter(map(plain, pq.read_table(out / "tables" / name).to_pylist())) for name in TABLES}


def plain(row: dict[str, Any]) -> str:
    """A row as a text."""
    return repr(sorted(row.items()))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.skipif(
    not (embedding.STATIC / "report.html").exists(), reason="a run needs the report that `make page` builds"
)
def test_an_executor_that_is_killed_in_the_middle_costs_nothing_but_time(spark: SparkSession, tmp_path: Path) -> None:
    with RunOutput(spark, str(tmp_path / "one")) as output:
        run_pipeline(spark, plan_source(SOURCE, {}), output, RunOptions(), RunProgress(lambda _: None))

    command = [
        sys.executable,
        "-m",
        "groupcoord",
        "pipeline",
        "run",
        "--source",
        SOURCE,
        "--out",
        str(tmp_path / "many"),
    ]
    command += ["--master", "local-cluster[2,1,512]", *(word for each in CONF for word in ("--conf", each))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    said: list[str] = []
    killed: list[int] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stderr is not None
        for line in run.stderr:
            said.append(line)
            if line.startswith("read and decode") and not killed:  # in the middle of it, or after: many steps follow
                killed = executors_of(run.pid)[:1]
                os.kill(killed[0], signal.SIGKILL)
    assert run.returncode == 0, "".join(said)
    assert killed
    assert rows(tmp_path / "many") == rows(tmp_path / "one")
