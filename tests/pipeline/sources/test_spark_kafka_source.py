"""Spark's own Kafka connector reads what ``kafka:`` reads. It needs jars: SPARK_KAFKA_JARS names them, with commas."""

import os
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LOG
from groupcoord.pipeline.sources import spark_kafka_source
from groupcoord.pipeline.sources.factory import open_stream, plan_source
from groupcoord.pipeline.watch.batch_writer import BatchWriter
from groupcoord.pipeline.watch.output_directory import WatchDirectory
from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch
from tests.pipeline.cluster import serving
from tests.pipeline.random_log import RandomLog

JARS = os.environ.get("SPARK_KAFKA_JARS")
CONFIG: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "offsets.retention.minutes": 2_000_000,
    "log.cleaner.enable": False,
}


@pytest.mark.slow
@pytest.mark.skipif(not JARS, reason="SPARK_KAFKA_JARS does not say where the jars of Spark's Kafka connector are")
def test_it_reads_what_kafka_reads(spark: SparkSession, tmp_path: Path) -> None:
    RandomLog(6, partitions=2, steps=120).write(tmp_path / "data")
    options = {"partitions": "2"}
    with serving(tmp_path / "data", CONFIG) as address:
        expected, found = (
            sorted(
                tuple(row) for row in plan_source(f"{kind}:{address}", options).read(spark).select(*LOG.names).collect()
            )
            for kind in ("kafka", "connector")
        )
        assert found == expected
        stream = open_stream(f"connector:{address}", options)
        with WatchDirectory(spark, str(tmp_path / "out")) as place:
            batch_writer = BatchWriter(place, stream, place.begin(stream.spec, stream.identity), print)
            run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())
    assert batch_writer.manifest.records == len(expected)
    commits = [
        (row["log_partition"], row["log_offset"])
        for file in (tmp_path / "out" / "tables" / "commits").rglob("*.parquet")
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    assert set(commits) <= {row[:2] for row in expected}
    assert len(commits) == len(set(commits)) > 100


@pytest.mark.skipif(bool(JARS), reason="the connector is there")
def test_without_its_jars_one_line_says_how_to_get_them(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match=r"^Spark's Kafka connector is not there: --packages org\.apache\.spark"):
        plan_source("connector:localhost:9092", {}).read(spark)


@pytest.mark.parametrize("said", ["no", "0", "-1", "1000000"])
def test_a_number_of_partitions_that_is_none(said: str) -> None:
    with pytest.raises(PipelineError, match=f"partitions={said} is not a number of partitions"):
        spark_kafka_source._settings("localhost:9092", {"partitions": said})
