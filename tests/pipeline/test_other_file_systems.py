"""Where ``--out`` is no local disk: a file system that only Hadoop's classes know, here ``viewfs``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import HadoopFiles
from groupcoord.pipeline.report.report_files import render_stored_by_spark
from groupcoord.pipeline.run_output import RUN, RunOutput
from groupcoord.pipeline.sources.factory import plan_source
from tests.pipeline.whole_run import RECORDED, assert_whole, in_any_order, run_unchecked


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


def test_a_run_leaves_there_what_it_leaves_on_a_disk(
    spark: SparkSession, tmp_path: Path, place: str, recorded_out: Path
) -> None:
    out = tmp_path / "store" / "out"
    (out / "tables" / "commits").mkdir(parents=True)
    (out / RUN).write_text("before")
    (out / "tables" / "commits" / "part-0.parquet").write_bytes(b"of a run before: this one comes in its place")
    summary = run_unchecked(spark, f"segments:{RECORDED}", f"{place}/out")
    assert_whole(out)
    found = in_any_order(out)
    assert found == in_any_order(recorded_out)
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
