"""All groups that the log knows of, the troubled ones first: what the other tables say of each, in one row."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.health_symptoms import SYMPTOMS, HealthSymptom
from groupcoord.pipeline.schemas import GROUP_COUNTS, GROUP_HEALTH

_HIGHEST = ("kind", "kind_before", "state", "protocol", "generation", "members", "last_ts")
"""Columns of which the highest value counts."""


def group_health(tables: Mapping[str, DataFrame], of_log: DataFrame) -> DataFrame:
    """One row for each group that any of ``tables`` names. Only small tables are read: none with a row for each commit.

    ``of_log`` says which partitions of the log (``log_partition``) a ``group`` is in.
    """
    rows = [
        tables["rebalances"]
        .groupBy("group")
        .agg(
            F.count("*").alias("rebalances"),
            *(F.sum(name).alias(name) for name in ("hidden_generations", "moved", "moved_needlessly")),
            F.min("at").alias("first_ts"),
            F.max("at").alias("last_ts"),
            F.max_by("kind", "at").alias("kind_before"),
        ),
        tables["storms"].groupBy("group").agg(F.count("*").alias("storms")),
        tables["commit_pauses"].groupBy("group").agg(F.count("*").alias("commit_gaps")),
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
            F.max("lag_seconds").alias("max_lag_seconds"),
            F.min(F.when(F.col("lag") > 0, F.col("expire_ts"))).alias("expire_ts"),
            F.max("last_commit_ts").alias("last_ts"),
            F.count_if(F.col("status") != "OK").alias("late_partitions"),
            F.count_if(F.col("records_lost") > 0).alias("lost_partitions"),
        ),
        tables["current_groups"].select(
            "group",
            "state",
            "protocol",
            "generation",
            F.size("members").cast("bigint").alias("members"),
            F.when(F.col("kind") != "simple", F.col("kind")).alias("kind"),
        ),
    ]
    every = rows[0]
    for more in rows[1:]:
        every = every.unionByName(more, allowMissingColumns=True)
    summed = every.groupBy("group").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).cast("bigint").alias(name) for name in GROUP_COUNTS),
        *(F.max(name).alias(name) for name in _HIGHEST),
        *(F.max(name).alias(name) for name in ("lag", "max_lag_seconds")),
        *(F.min(name).alias(name) for name in ("first_ts", "expire_ts")),
    )
    # A group that is there is what it is now; one that is gone, or of which only commits are left, is what it was.
    holed = tables["log_partitions"].where("missing > 0").select("log_partition", "whole_from_ts")
    gaps = of_log.join(holed, "log_partition").groupBy("group").agg(F.max("whole_from_ts").alias("whole_from_ts"))
    return (
        summed.join(gaps, "group", "left")
        .withColumn("kind", F.coalesce("kind", "kind_before", F.lit("simple")))
        .select(
            "*",
            F.round(sum(map(_points, SYMPTOMS), F.lit(0.0)), 2).alias("score"),
        )
        .select(*(F.col(column.name).cast(column.type) for column in GROUP_HEALTH.columns))
    )


def _points(symptom: HealthSymptom) -> Column:
    seen = F.col(symptom.column)
    if symptom.among is not None:
        seen = F.coalesce(seen / F.col(symptom.among), F.lit(0))
    return F.lit(symptom.points) * F.log2(F.lit(1) + seen)
