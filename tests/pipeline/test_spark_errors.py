"""Whatever goes wrong in Spark is said in one sentence."""

import argparse

import pytest

from groupcoord.cli.pipeline import run
from groupcoord.pipeline.errors import plain_reason

DISK = """An error occurred while calling o812.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 41.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
\t... 12 more"""
PERMISSION = """An error occurred while calling o812.parquet.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.lang.RuntimeException: java.io.IOException: Mkdirs failed to create file:/out/x
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)"""
NO_PYTHON = """An error occurred while calling o93.start.
: java.io.IOException: Cannot run program "./environment/bin/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)"""
TASK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
groupcoord.pipeline.errors.PipelineError: cannot read log: Input/output error
"""
PYTHON = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark.api.python.PythonException:
Traceback (most recent call last):
  File "worker.py", line 1, in main
MemoryError: cannot allocate 8 GB

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:581)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (DISK, "a disk is full, that of --out or that of spark.local.dir, where Spark sorts: No space left on device"),
        (PERMISSION, "Mkdirs failed to create file:/out/x"),
        (
            NO_PYTHON,
            "./environment/bin/python cannot be started: PYSPARK_PYTHON must name a Python of the driver and of each executor",
        ),
        (TASK, "cannot read log: Input/output error"),
        (PYTHON, "MemoryError: cannot allocate 8 GB"),
        ("An error occurred while calling o1.x.\n: java.lang.IllegalStateException: stopped\n\tat x", "stopped"),
        ("[PATH_NOT_FOUND] Path does not exist: x", "[PATH_NOT_FOUND] Path does not exist: x"),
        ("", "Exception"),
    ],
)
def test_one_sentence(said: str, expected: str) -> None:
    assert plain_reason(Exception(said)) == expected


def test_the_command_says_what_java_raised_in_one_line(spark: object, capsys: pytest.CaptureFixture[str]) -> None:
    def action(_: argparse.Namespace) -> None:
        spark._jvm.java.lang.Integer.parseInt("seven")  # type: ignore[attr-defined]

    assert run(argparse.Namespace(action=action)) == 1
    assert capsys.readouterr().err == 'groupcoord pipeline: For input string: "seven"\n'
