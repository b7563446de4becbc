"""The lags that a watch shows while producers and groups go on."""

import dataclasses
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupcoord import Cluster
from groupcoord.pipeline.schemas import LAG
from groupcoord.pipeline.sources.end_offsets import EarlierEnds
from groupcoord.pipeline.sources.factory import open_stream
from groupcoord.pipeline.watch.batch_writer import BatchWriter
from groupcoord.pipeline.watch.output_directory import WatchDirectory
from groupcoord.pipeline.watch.query_loop import WatchSchedule, run_watch


def test_lags_are_those_of_when_a_batch_began_however_long_it_takes(spark: SparkSession, tmp_path: Path) -> None:
    """Producers go on while a batch is written, and what groups commit then is in the next one."""
    with Cluster(topics={"orders": 1}, config={"offsets.topic.num.partitions": 1}).sync() as kafka:
        kafka.produce("orders", b"before")
        kafka.group("app").commit({("orders", 0): 1})
        stream = open_stream(f"kafka:{kafka.address}", {})

        def later_ends(wanted: DataFrame, now_ms: int, earlier: EarlierEnds | None) -> DataFrame:
            kafka.produce("orders", b"while it is written")
            return stream.ends(wanted, now_ms, earlier)

        with WatchDirectory(spark, str(tmp_path / "out")) as output:
            manifest = output.begin(stream.spec, stream.identity)
            batch_writer = BatchWriter(
                output, dataclasses.replace(stream, ends=later_ends), manifest, lambda line: None
            )

            def lags() -> list[tuple[Any, ...]]:
                rows = output.view(LAG, ["topic", "end_offset", "lag"]).to_pylist()
                return sorted(tuple(row.values()) for row in rows)

            def watch() -> list[tuple[Any, ...]]:
                run_watch(spark, batch_writer, WatchSchedule(is_once=True), threading.Event())
                return lags()

            assert watch() == [("orders", 1, 0)]
            kafka.create_topic("new")
            kafka.produce("new", b"1")
            kafka.group("app").commit({("orders", 0): 2, ("new", 0): 0})
            assert watch() == [("new", 1, 1), ("orders", 2, 0)]
            batch_writer.refresh(spark, after_s=3600)  # as when it has waited for the batch
            assert lags() == [("new", 1, 1), ("orders", 2, 0)]
            batch_writer.refresh(spark)
            assert lags() == [("new", 1, 1), ("orders", 4, 2)]
