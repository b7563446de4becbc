"""A cluster of several processes: ``spark-submit`` takes the package's program, and one process is killed in the middle."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import groupcoord
from groupcoord.page import html_embedding
from groupcoord.pipeline.java_runtime import find_java
from groupcoord.pipeline.spark_session import QUICK_JAVA_OPTIONS
from tests.pipeline.whole_run import RECORDED, in_any_order

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
MAIN = Path(groupcoord.__file__).parent / "__main__.py"
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK_JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": QUICK_JAVA_OPTIONS,
}


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


def environment() -> dict[str, str]:
    """That of a shell in which nobody has started Spark; with the Java of the extra where the system has none."""
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in {"JAVA_HOME", "PYTHONPATH", "SPARK_HOME"} and not name.startswith(("PYSPARK_", "_PYSPARK"))
    }
    find_java(found)
    return found | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LAUNCHER_OPTS": QUICK_JAVA_OPTIONS,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.skipif(
    not (html_embedding.STATIC / "report.html").exists(), reason="a run needs the report that `make page` builds"
)
def test_a_submitted_run_of_which_an_executor_is_killed_makes_the_tables_of_any_run(
    tmp_path: Path, recorded_out: Path
) -> None:
    command = [str(SUBMIT), "--master", "local-cluster[2,1,512]"]
    command += [word for name, value in CONF.items() for word in ("--conf", f"{name}={value}")]
    command += [str(MAIN), "pipeline", "run", "--source", f"segments:{RECORDED}", "--out", str(tmp_path / "out")]
    said: list[str] = []
    killed: list[int] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment()
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            said.append(line)
            if line.startswith("read and decode") and not killed:  # in the middle of it, or after: many steps follow
                killed = executors_of(run.pid)[:1]
                os.kill(killed[0], signal.SIGKILL)
    assert run.returncode == 0, "".join(said)
    assert killed, "".join(said)
    assert in_any_order(tmp_path / "out") == in_any_order(recorded_out)
