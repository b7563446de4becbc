"""All groups that the log knows of, the troubled ones first: what the other tables say of each, in one row."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.health_symptoms import SYMPTOMS
from groupcoord.pipeline.schemas import GROUP_HEALTH

# What each table adds to a group's row; the names are columns that are summed up, or of which the highest counts.
_SUMS = (
    "rebalances",
    "hidden_generations",
    "moved",
    "moved_needlessly",
    "storms",
    "commits",
    "commit_gaps",
    "zombies",
    "partitions",
    "late_partitions",
)
_HIGHEST = ("is_classic", "is_modern", "state", "protocol", "generation", "members", "last_ts")


def group_health(tables: Mapping[str, DataFrame]) -> DataFrame:
    """One row for each group that any of ``tables`` names. Only small tables are read: none with a row for each commit."""
    rows = [
        _of_rebalances(tables["rebalances"]).withColumn("is_classic", F.lit(1)),
        _of_rebalances(tables["modern_rebalances"]).withColumn("is_modern", F.lit(1)),
        tables["storms"].groupBy("group").agg(F.count("*").alias("storms")),
        tables["commit_gaps"].groupBy("group").agg(F.count("*").alias("commit_gaps")),
        tables["zombies"].groupBy("group").agg(F.count("*").alias("zombies")),
        tables["commit_rates"]
        .groupBy("group")
        .agg(
            F.sum("commits").alias("commits"),
            F.min("window_start").alias("first_ts"),
            F.max("window_start").alias("last_ts"),
        ),
        tables["lag"]
        .groupBy("group")
        .agg(
            F.count("*").alias("partitions"),
            F.try_sum("lag").alias("lag"),
            F.max("last_commit_ts").alias("last_ts"),
            F.count_if(F.col("status") != "OK").alias("late_partitions"),
        ),
        tables["current_groups"].select(
            "group", "state", "protocol", "generation", F.size("members").cast("bigint").alias("members")
        ),
        tables["modern_current_groups"].select(
            "group",
            F.when(F.size("members") > 0, "Stable").otherwise("Empty").alias("state"),
            F.col("assignment_epoch").alias("generation"),
            F.size("members").cast("bigint").alias("members"),
        ),
    ]
    every = rows[0]
    for more in rows[1:]:
        every = every.unionByName(more, allowMissingColumns=True)
    summed = every.groupBy("group").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).cast("bigint").alias(name) for name in _SUMS),
        *(F.max(name).alias(name) for name in _HIGHEST),
        F.max("lag").alias("lag"),
        F.min("first_ts").alias("first_ts"),
    )
    kind = F.when(F.expr("is_modern = 1"), "consumer").when(F.expr("is_classic = 1"), "classic").otherwise("simple")
    return summed.select(
        "*",
        kind.alias("kind"),
        F.round(sum((_points(one.column, one.points) for one in SYMPTOMS), F.lit(0.0)), 2).alias("score"),
    ).select(*(F.col(column.name).cast(column.type) for column in GROUP_HEALTH.columns))


def _of_rebalances(rebalances: DataFrame) -> DataFrame:
    return rebalances.groupBy("group").agg(
        F.count("*").alias("rebalances"),
        F.sum("hidden_generations").alias("hidden_generations"),
        F.sum("moved").alias("moved"),
        F.sum("moved_needlessly").alias("moved_needlessly"),
        F.min("at").alias("first_ts"),
        F.max("at").alias("last_ts"),
    )


def _points(column: str, points: int) -> Column:
    return F.lit(points) * F.log2(F.lit(1) + F.col(column))
