"""Where ``--out`` is no local disk: a file system that only Hadoop's classes know, here ``viewfs``."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import HadoopFiles
from groupcoord.pipeline.progress import RunProgress
from groupcoord.pipeline.report.report_files import render_stored_by_spark
from groupcoord.pipeline.run import RunOptions, run_pipeline
from groupcoord.pipeline.run_output import RUN, RunOutput
from groupcoord.pipeline.schemas import TABLES
from groupcoord.pipeline.sources.factory import plan_source
from tests.pipeline.random_log import RandomLog

RECORDED = f"segments:{Path(__file__).parent / 'recordings' / '4.3.1'}"


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The URL of what is ``tmp_path / "store"`` on the disk."""
    (tmp_path / "store").mkdir()
    root = f"viewfs://{tmp_path.name.replace('_', '-').lower()}"
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"fs.viewfs.mounttable.{root.removeprefix('viewfs://')}.link./store"
    configuration.set(name, f"file://{tmp_path / 'store'}")
    yield f"{root}/store"
    configuration.unset(name)


def run(spark: SparkSession, source: str, out: str) -> dict[str, Any]:
    with RunOutput(spark, out) as output:
        return run_pipeline(spark, plan_source(source, {}), output, RunOptions(), RunProgress(lambda _: None))


def rows(out: Path) -> dict[str, Counter[str]]:
    found = {name: pq.read_table(out / "tables" / name).to_pylist() for name in TABLES}
    return {name: Counter(repr(sorted(row.items())) for row in table) for name, table in found.items()}


def test_a_run_leaves_there_what_it_leaves_on_a_disk(spark: SparkSession, tmp_path: Path, place: str) -> None:
    RandomLog(3, partitions=2, steps=40).write(tmp_path / "other")
    run(spark, f"segments:{tmp_path / 'other'}", f"{place}/out")
    summary = run(spark, RECORDED, f"{place}/out")  # in the place of that
    run(spark, RECORDED, str(tmp_path / "disk"))
    out = tmp_path / "store" / "out"
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) == [
        "report.html",
        "report.json",
        RUN,
        "tables",
    ]
    found = rows(out)
    assert found == rows(tmp_path / "disk")
    assert {name: table.total() for name, table in found.items()} == summary["rows"]
    assert json.loads((out / RUN).read_text()) == summary
    (out / "report.html").unlink()
    render_stored_by_spark(spark, f"{place}/out")
    assert (out / "report.html").is_file()


def test_a_run_that_fails_there_leaves_what_the_run_before_had_left(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    out = tmp_path / "store" / "out"
    out.mkdir()
    (out / RUN).write_text("before")
    with pytest.raises(RuntimeError, match="in the middle"), RunOutput(spark, f"{place}/out"):
        raise RuntimeError("in the middle")
    assert [path.name for path in out.iterdir() if not path.name.startswith(".")] == [RUN]
    assert (out / RUN).read_text() == "before"


def test_rows_are_counted_there_as_on_a_disk(spark: SparkSession, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "store" / "table"
    folder.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"offset": list(range(number))}), folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    assert HadoopFiles(spark, str(tmp_path / "store")).parquet_rows("table") == 3
    assert HadoopFiles(spark, place).parquet_rows("table") == 3


def test_segments_are_files_of_a_disk() -> None:
    with pytest.raises(PipelineError, match=r"^s3a://logs/kafka is no directory of a disk: copy the folders"):
        plan_source("segments:s3a://logs/kafka", {})
