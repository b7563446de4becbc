"""How often groups commit, how fast they advance, and where commits stopped."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import COMMIT_GAPS, COMMIT_RATES
from groupcoord.pipeline.tables.consecutive_commits import SHORTEST_GAP_MS, key

TIMES_USUAL = 10
"""How many times longer than the mean time between two commits a pause is at least."""
_USUAL = "(last_ms - first_ms) / (commits - 1) / 1000.0D"


def commit_gaps(
    consecutive_commits: DataFrame, statistics: DataFrame, current: DataFrame, log_end: datetime | None
) -> DataFrame:
    """Pauses between two commits, and those that lasted until ``log_end``, the time of the last record of the log."""
    between = (
        consecutive_commits.where("is_after_gap")
        .join(statistics, "key")
        .selectExpr(
            "log_partition",
            "previous_place as log_offset",
            "`group`",
            "topic",
            "partition",
            "timestamp_millis(previous_ms) as from_ts",
            "timestamp_millis(commit_ms) as to_ts",
            "(commit_ms - previous_ms) / 1000.0D as gap_seconds",
            f"{_USUAL} as usual_seconds",
            "previous_offset as offset_before",
            "committed_offset as offset_after",
        )
    )
    places = current.select("group", "topic", "partition", "log_offset", "committed_offset")
    until_the_end = (
        statistics.where("commits > 1")
        .join(places, ["group", "topic", "partition"])
        .select("*", F.unix_millis(F.lit(log_end).cast("timestamp")).alias("end_ms"))
        .where(f"end_ms - last_ms >= {SHORTEST_GAP_MS}")
        .selectExpr(
            "log_partition",
            "log_offset",
            "`group`",
            "topic",
            "partition",
            "timestamp_millis(last_ms) as from_ts",
            "cast(null as timestamp) as to_ts",
            "(end_ms - last_ms) / 1000.0D as gap_seconds",
            f"{_USUAL} as usual_seconds",
            "committed_offset as offset_before",
            "cast(null as bigint) as offset_after",
        )
    )
    return (
        between.unionByName(until_the_end)
        .where(f"gap_seconds >= {TIMES_USUAL} * usual_seconds")
        .select(*COMMIT_GAPS.names)
    )


WINDOW = "1 minute"


def commit_rates(commits: DataFrame, groups: DataFrame, window: str = WINDOW) -> DataFrame:
    """The commits of each group in each ``window`` (an interval, as Spark says it).

    There are nearly as many rows to add up as commits, so hashes stand for names; ``groups`` has a column ``group`` with all
    names.
    """
    span = ["window_start", "window_end"]
    by_partition = (
        commits.where("not is_tombstone and commit_ts is not null")
        .select(
            F.xxhash64("group").alias("group_hash"),
            key(),
            "committed_offset",
            F.window("commit_ts", window).alias("window"),
        )
        .select("*", F.col("window.start").alias(span[0]), F.col("window.end").alias(span[1]))
        .groupBy("group_hash", "key", *span)
        .agg(
            F.count("*").alias("commits"),
            F.try_subtract(F.max("committed_offset"), F.min("committed_offset")).alias("advanced"),
        )
    )
    names = groups.select("group").distinct().select("group", F.xxhash64("group").alias("group_hash"))
    return (
        by_partition.groupBy("group_hash", *span)
        .agg(
            F.sum("commits").alias("commits"), F.count("*").alias("partitions"), F.try_sum("advanced").alias("advanced")
        )
        .join(names, "group_hash")
        .select(*COMMIT_RATES.names)
    )
