"""How often groups commit, and how fast they get on."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import COMMIT_RATES
from groupcoord.pipeline.tables.steps import key

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
