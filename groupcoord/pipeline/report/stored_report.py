"""The report that a run has stored as ``report.json``, and its page: read, rendered and written again, without any table."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.json_document import report_from_json, report_to_json
from groupcoord.pipeline.report.page import render_page
from groupcoord.pipeline.report.report_model import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORT = "report.json"
PAGE = "report.html"


def page_and_document(report: Report) -> tuple[str, str]:
    """The page of ``report``, and its JSON."""
    return render_page(report), report_to_json(report)


def render_stored(root: Path) -> Report:
    """The report of the run in the directory ``root``, whose page is written anew. Raises PipelineError."""
    try:
        document = (root / REPORT).read_text(encoding="utf-8")
    except OSError as problem:
        raise PipelineError(f"{root} has no {REPORT}, so no run: {problem.strerror}") from None
    report = report_from_json(document, f"{root}/{REPORT}")
    aside = root / f"{PAGE}.partial"
    try:
        aside.write_text(render_page(report), encoding="utf-8", newline="\n")
        os.replace(aside, root / PAGE)  # noqa: PTH105 - says that it replaces
        (root / f".{PAGE}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the page before
    except OSError as problem:
        aside.unlink(missing_ok=True)
        raise PipelineError(f"cannot write {root / PAGE}: {problem.strerror}") from None
    return report


def render_stored_by_spark(spark: "SparkSession", root: str) -> Report:
    """The same for any place that Spark can read and write. Raises PipelineError."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - of the extra

    from groupcoord.pipeline.hadoop_files import HadoopFiles, java_reason  # noqa: PLC0415

    try:
        files = HadoopFiles(spark, root)
        document = files.read_text(REPORT)
    except Py4JJavaError as problem:
        raise PipelineError(
            f"{root} has no {REPORT}, so no run, or it cannot be read: {java_reason(problem)}"
        ) from None
    report = report_from_json(document, f"{files.root}/{REPORT}")
    try:
        files.write_text(PAGE, render_page(report))
    except Py4JJavaError as problem:
        raise PipelineError(f"cannot write {files.root}/{PAGE}: {java_reason(problem)}") from None
    return report
