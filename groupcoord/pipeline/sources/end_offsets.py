"""Where topics end: asked of a cluster by the tasks, or read from a file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow import arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import END_OFFSETS
from groupcoord.pipeline.sources.cluster_reader import LATEST, ClusterReader

_NEEDED = {"topic", "partition", "end_offset"}


def ends_of_cluster(wanted: DataFrame, bootstrap: str, now_ms: int) -> DataFrame:
    """The ends of the partitions in ``wanted`` (``topic``, ``partition``) as END_OFFSETS; what is not there is missing."""
    return (
        wanted.select("topic", "partition")
        .distinct()
        .coalesce(1)
        .mapInArrow(_asking(bootstrap, now_ms), END_OFFSETS.ddl)
    )


def _asking(bootstrap: str, now_ms: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        with ClusterReader(bootstrap) as cluster:
            for batch in batches:
                pairs = zip(batch.column("topic").to_pylist(), batch.column("partition").to_pylist(), strict=True)
                found = cluster.offsets(set(pairs), LATEST)
                rows = [
                    {"topic": topic, "partition": partition, "end_offset": end, "at": now_ms * 1000}
                    for (topic, partition), end in found.items()
                ]
                yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(END_OFFSETS.columns))

    return ask


def ends_of_file(spark: SparkSession, path: str) -> DataFrame:
    """The ends in a CSV file with a header, or in JSON lines: ``topic``, ``partition``, ``end_offset`` and, if several were
    observed one after the other, ``at`` (a time as ISO 8601 says it). Raises PipelineError.
    """
    if "://" not in path and not Path(path).exists():
        raise PipelineError(f"there is no file {path}")
    frame = spark.read.option("header", "true").csv(path) if path.endswith(".csv") else spark.read.json(path)
    if missing := sorted(_NEEDED - set(frame.columns)):
        raise PipelineError(
            f"{path} has no {', '.join(missing)}; it should have topic, partition, end_offset and may have at"
        )
    at = F.to_timestamp("at") if "at" in frame.columns else F.lit(None).cast("timestamp")
    return frame.select(
        "topic", F.col("partition").cast("int"), F.col("end_offset").cast("bigint"), at.alias("at")
    ).where("topic is not null and partition is not null and end_offset is not null")
