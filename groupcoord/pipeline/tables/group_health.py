"""The table group_health: for each group one row of figures from the other tables, and a score of how troubled it is."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.health_symptoms import SYMPTOMS, HealthSymptom
from groupcoord.pipeline.open_and_hanging_transactions import LONG_OPEN_AFTER_S
from groupcoord.pipeline.schemas import GROUP_COUNTS, GROUP_HEALTH

_OF_TABLES = {
    "rebalances": [
        "count(*) as rebalances",
        *(f"sum({name}) as {name}" for name in ("hidden_generations", "moved", "moved_needlessly")),
        "min(at) as first_ts",
        "max(at) as last_ts",
        "max_by(kind, at) as kind_before",
    ],
    "storms": ["count(*) as storms"],
    "commit_pauses": ["count(*) as commit_gaps"],
    "zombies": ["count(*) as zombies"],
    "commit_rates": ["sum(commits) as commits", "min(window_start) as first_ts", "max(window_start) as last_ts"],
    "lag": [
        "count(*) as partitions",
        "try_sum(lag) as lag",
        "max(lag_seconds) as max_lag_seconds",
        "min(if(lag > 0, expire_ts, null)) as expire_ts",
        "max(last_commit_ts) as last_ts",
        "count_if(status <> 'OK' and awaited is null) as late_partitions",
        "count(distinct awaited) as awaited_transactions",
        "count_if(records_lost > 0) as lost_partitions",
    ],
}
"""The aggregates of a group from each table."""
_HIGHEST = (
    *("kind", "kind_before", "state", "protocol", "generation", "members", "last_ts"),
    *("lag", "max_lag_seconds"),
)
_OF_GROUP = [
    *(f"bigint(coalesce(sum({name}), 0)) as {name}" for name in GROUP_COUNTS),
    *(f"max({name}) as {name}" for name in _HIGHEST),
    *(f"min({name}) as {name}" for name in ("first_ts", "expire_ts")),
]
"""The columns that combine several tables."""


def group_health(tables: Mapping[str, DataFrame], of_log: DataFrame, now: datetime | None) -> DataFrame:
    """One row for each group that any of ``tables`` names, as of ``now``. Only small tables are read, none with a row for each
    commit.

    ``of_log`` has pairs of ``group`` and the ``log_partition`` that its records are in.
    """
    tables = {**tables, "lag": _with_awaited(tables["lag"], tables["open_transactions"], now)}
    rows = [tables[name].groupBy("group").agg(*map(F.expr, measures)) for name, measures in _OF_TABLES.items()]
    there = tables["current_groups"].selectExpr(
        *("`group`", "state", "protocol", "generation"),
        *("bigint(size(members)) as members", "if(kind <> 'simple', kind, null) as kind"),
    )
    every = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), [*rows, there])
    holed = tables["log_partitions"].where("missing > 0").select("log_partition", "whole_from_ts")
    gaps = of_log.join(holed, "log_partition").groupBy("group").agg(F.max("whole_from_ts").alias("whole_from_ts"))
    return (
        every.groupBy("group")
        .agg(*map(F.expr, _OF_GROUP))
        .join(gaps, "group", "left")
        # The kind of a group is its current one; if the group is gone, or only its commits are left, its last known kind.
        .withColumn("kind", F.expr("coalesce(kind, kind_before, 'simple')"))
        .selectExpr("*", f"round({' + '.join(map(_points, SYMPTOMS))}, 2) as score")
        .select(*(F.col(column.name).cast(column.type) for column in GROUP_HEALTH.columns))
    )


def _with_awaited(lag: DataFrame, open_transactions: DataFrame, now: datetime | None) -> DataFrame:
    """``lag`` with ``awaited``, the producer of a transaction that has been open for long and that the group waits for in this
    partition. Such a partition does not count as late, too: that is the same incident."""
    awaited = open_transactions.where(is_long_open("since", now)).select(
        F.explode("waiting").alias("group"), "topic", "partition", F.col("producer_id").alias("awaited")
    )
    return lag.join(awaited, ["group", "topic", "partition"], "left")


def is_long_open(since: str, now: datetime | None) -> Column:
    """Has a transaction that began at the column ``since`` been open at ``now`` for longer than is normal? Null: unknown."""
    return F.col(since) < F.lit(now).cast("timestamp") - F.expr(f"interval {LONG_OPEN_AFTER_S} seconds")


def _points(symptom: HealthSymptom) -> str:
    seen = symptom.column if symptom.among is None else f"coalesce({symptom.column} / {symptom.among}, 0)"
    return f"{symptom.points} * log2(1 + {seen})"
