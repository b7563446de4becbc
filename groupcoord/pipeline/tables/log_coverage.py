"""How much of the history is there: what was read of each partition of the log, and from where on nothing is missing."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import LOG_PARTITIONS

BUCKET = 1000
"""Offsets are counted by so many, which takes no sort; only where the last hole is, are they looked at one by one."""


def in_buckets(places: DataFrame) -> DataFrame:
    """How much is there of each ``BUCKET`` offsets. ``places``: ``log_partition``, ``log_offset``, ``append_ts`` of every
    record, and ``is_hidden``: is it a marker, or does a transaction hide it?
    """
    return (
        _with_bucket(places)
        .groupBy("log_partition", "bucket")
        .agg(
            F.min("log_offset").alias("low"),
            F.max("log_offset").alias("high"),
            F.count("*").alias("count"),
            F.count_if("is_hidden").alias("hidden"),
            F.min("append_ts").alias("first_ts"),
            F.max("append_ts").alias("last_ts"),
            F.min_by("append_ts", "log_offset").alias("low_ts"),
        )
    )


def last_holes(buckets: DataFrame) -> DataFrame:
    """For each partition of the log the last of ``buckets`` with a hole in it or before it; where there is none, the first.

    Unless it ``is_holed`` itself, everything from its first record on is there.
    """
    in_partition = Window.partitionBy("log_partition").orderBy("bucket")
    return (
        buckets.select(
            "*",
            F.lag("high").over(in_partition).alias("high_before"),
            F.expr("high - low + 1 > count").alias("is_holed"),
        )
        .where("high_before is null or low > high_before + 1 or is_holed")
        .groupBy("log_partition")
        .agg(F.max(F.struct("bucket", "low", "low_ts", "is_holed")).alias("last"))
        .select("log_partition", "last.*")
    )


def log_partitions(buckets: DataFrame, last: DataFrame, places: DataFrame | None) -> DataFrame:
    """One row for each partition of the log. ``last`` is what ``last_holes`` gives; ``places`` may be None if none of them is
    holed.
    """
    totals = buckets.groupBy("log_partition").agg(
        F.min("low").alias("first_offset"),
        F.max("high").alias("last_offset"),
        F.sum("count").alias("seen"),
        F.sum("hidden").alias("hidden"),
        F.min("first_ts").alias("first_ts"),
        F.max("last_ts").alias("last_ts"),
    )
    whole = last.select(
        "log_partition", F.col("low").alias("whole_from_offset"), F.col("low_ts").alias("whole_from_ts")
    )
    if places is not None:
        whole = whole.join(last.where("is_holed"), "log_partition", "left_anti").unionByName(_behind(places, last))
    return (
        totals.selectExpr("*", "seen - hidden as records", "last_offset - first_offset + 1 - seen as missing")
        .join(whole, "log_partition", "left")
        .select(*LOG_PARTITIONS.names)
    )


def _behind(places: DataFrame, last: DataFrame) -> DataFrame:
    """Behind the last hole of each holed bucket: the first record, and its time."""
    offsets = _with_bucket(places).join(F.broadcast(last.where("is_holed")), ["log_partition", "bucket"], "left_semi")
    in_order = Window.partitionBy("log_partition").orderBy("log_offset")
    return (
        offsets.select("*", F.lag("log_offset").over(in_order).alias("before"))
        .where("before is null or log_offset > before + 1")
        .groupBy("log_partition")
        .agg(F.max("log_offset").alias("whole_from_offset"), F.max_by("append_ts", "log_offset").alias("whole_from_ts"))
    )


def _with_bucket(places: DataFrame) -> DataFrame:
    return places.select("*", F.expr(f"log_offset div {BUCKET}").alias("bucket"))
