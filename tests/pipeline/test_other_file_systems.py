"""Where ``--out`` is not a local disk: a file system that only Hadoop's classes know, here ``viewfs``."""

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
from groupcoord.pipeline.sources.end_offsets import ends_of_file
from groupcoord.pipeline.sources.factory import plan_source
from groupcoord.pipeline.watch.output_directory import WatchDirectory
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


@pytest.fixture
def default_place(spark: SparkSession, place: str) -> Iterator[str]:
    """``place``, on what is now Hadoop's default file system, as HDFS is where HADOOP_CONF_DIR says so."""
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
    before = configuration.get("fs.defaultFS")
    configuration.set("fs.defaultFS", place.removesuffix("/store"))
    yield place
    configuration.set("fs.defaultFS", before)


@pytest.mark.parametrize("scheme", ["", "viewfs://"])
def test_the_place_on_the_default_file_system_is_told_as_a_whole_url(
    spark: SparkSession, default_place: str, scheme: str
) -> None:
    with RunOutput(spark, f"{scheme}/store/out") as output:
        assert output.root == f"{default_place}/out"
    with WatchDirectory(spark, f"{scheme}/store/watched") as watched:
        assert watched.root == f"{default_place}/watched"


@pytest.mark.usefixtures("default_place")
def test_files_of_a_disk_are_read_from_it_whatever_the_default_file_system_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, ends = tmp_path / "log.jsonl", tmp_path / "ends.csv"
    log.write_text('{"partition": 3, "offset": 7, "key": "AAEA"}\n')
    ends.write_text("topic,partition,end_offset\norders,0,9\n")
    assert [row["log_offset"] for row in plan_source(f"jsonl:{log}", {}).read(spark).collect()] == [7]
    assert [row["end_offset"] for row in ends_of_file(spark, str(ends)).collect()] == [9]


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
    with pytest.raises(PipelineError, match=r"^s3a://logs/kafka is not a directory of a disk: copy the folders"):
        plan_source("segments:s3a://logs/kafka", {})
