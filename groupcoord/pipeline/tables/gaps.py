"""Where commits stopped."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import COMMIT_GAPS
from groupcoord.pipeline.tables.follow import SHORTEST_GAP_MS

TIMES_USUAL = 10
"""A pause is one if it is so many times as long as the mean time between two commits."""
_USUAL = "(last_ms - first_ms) / (commits - 1) / 1000.0D"


def commit_gaps(steps: DataFrame, statistics: DataFrame, current: DataFrame, log_end: datetime | None) -> DataFrame:
    """Pauses between two commits, and those that lasted until ``log_end``, the time of the last record of the log."""
    between = (
        steps.where("is_after_gap")
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
