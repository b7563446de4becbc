"""The report anew, from the tables that an earlier run has left: by PyArrow alone, or by Spark where only that can read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.build_report import build_report
from groupcoord.pipeline.report.page import render_page
from groupcoord.pipeline.report.report_model import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = "tables"
RUN = "run.json"
PAGE = "report.html"


def is_here(root: str) -> bool:
    """Whether ``root`` is a directory that this process sees."""
    return Path(root).is_dir()


def remake(root: Path) -> Report:
    """The report of the run in the directory ``root``, written there. Raises PipelineError."""
    from groupcoord.pipeline.report.arrow_reader import ArrowReader  # noqa: PLC0415 - of the extra

    try:
        said = (root / RUN).read_text(encoding="utf-8")
    except OSError as problem:
        raise PipelineError(f"{root} has no {RUN}, so no run: {problem.strerror}") from None
    report = build_report(ArrowReader(root / TABLES), _summary(said, str(root)))
    aside = root / f"{PAGE}.partial"
    try:
        aside.write_text(render_page(report), encoding="utf-8", newline="\n")
        os.replace(aside, root / PAGE)  # noqa: PTH105 - says that it replaces
        (root / f".{PAGE}.crc").unlink(missing_ok=True)  # what Hadoop keeps of the page before
    except OSError as problem:
        aside.unlink(missing_ok=True)
        raise PipelineError(f"cannot write {root / PAGE}: {problem.strerror}") from None
    return report


def remake_by_spark(spark: "SparkSession", root: str) -> Report:
    """The same for any place that Spark can read and write. Raises PipelineError."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - of the extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from groupcoord.pipeline.report.spark_reader import SparkTableReader  # noqa: PLC0415
    from groupcoord.pipeline.run_output import write_bytes  # noqa: PLC0415

    root = root.rstrip("/")
    try:
        said = spark.read.text(f"{root}/{RUN}", wholetext=True).first()
    except (PySparkException, Py4JJavaError):
        said = None
    if said is None:
        raise PipelineError(f"{root} has no {RUN}, so no run, or it cannot be read")
    report = build_report(SparkTableReader(spark, f"{root}/{TABLES}"), _summary(said[0], root))
    try:
        write_bytes(spark, f"{root}/{PAGE}", render_page(report).encode())
    except Py4JJavaError as problem:
        raise PipelineError(f"cannot write {root}/{PAGE}: {problem.java_exception.getMessage()}") from None
    return report


def _summary(said: str, root: str) -> Mapping[str, Any]:
    try:
        summary = json.loads(said)
    except ValueError:
        summary = None
    if not isinstance(summary, dict):
        raise PipelineError(f"{root}/{RUN} is not what a run writes")
    return summary
