"""How much of the history is there: what was read of each partition of the log, and from where on nothing is missing."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import LOG_PARTITIONS

BUCKET = 1000
"""Offsets are counted by so many, which takes no sort; only where the last hole is, are they looked at one by one."""


def log_partitions(places: DataFrame) -> DataFrame:
    """One row for each partition of the log. ``places``: ``log_partition``, ``log_offset``, ``append_ts`` of every record."""
    buckets = (
        places.select("*", F.expr(f"log_offset div {BUCKET}").alias("bucket"))
        .groupBy("log_partition", "bucket")
        .agg(
            F.min("log_offset").alias("low"),
            F.max("log_offset").alias("high"),
            F.count("*").alias("count"),
            F.min("append_ts").alias("first_ts"),
            F.max("append_ts").alias("last_ts"),
        )
    )
    totals = buckets.groupBy("log_partition").agg(
        F.min("low").alias("first_offset"),
        F.max("high").alias("last_offset"),
        F.sum("count").alias("records"),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )
    return (
        totals.select("*", (F.expr("last_offset - first_offset + 1") - F.col("records")).alias("missing"))
        .join(_whole_from(places, buckets), "log_partition", "left")
        .select(*LOG_PARTITIONS.names)
    )


def _whole_from(places: DataFrame, buckets: DataFrame) -> DataFrame:
    """Behind the last hole of each partition: the first record, and its time."""
    in_partition = Window.partitionBy("log_partition").orderBy("bucket")
    beside = buckets.select("*", F.lag("high").over(in_partition).alias("high_before"))
    # The last bucket with a hole in it or before it; where there is none, the first bucket.
    last = (
        beside.where("high_before is null or low > high_before + 1 or high - low + 1 > count")
        .groupBy("log_partition")
        .agg(F.max("bucket").alias("bucket"))
    )
    offsets = places.select("*", F.expr(f"log_offset div {BUCKET}").alias("bucket")).join(
        F.broadcast(last), ["log_partition", "bucket"], "left_semi"
    )
    in_order = Window.partitionBy("log_partition").orderBy("log_offset")
    return (
        offsets.select("*", F.lag("log_offset").over(in_order).alias("before"))
        .where("before is null or log_offset > before + 1")
        .groupBy("log_partition")
        .agg(
            F.max("log_offset").alias("whole_from_offset"),
            F.max_by("append_ts", "log_offset").alias("whole_from_ts"),
        )
    )
