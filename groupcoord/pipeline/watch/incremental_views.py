"""The views after a batch, from what they were made of before it and what came: the same rows as from the whole log.

Only as much of the past is kept as the functions of ``tables/`` need when the records of a batch follow it:

- ``current_offsets`` is kept as it is: of each key the last record counts;
- ``recent`` (RECENT_COMMITS): of each key the last ten commits, for Burrow's rules, and because a group that has no record of
  its own is there if it has committed; ``ends`` (END_OFFSETS): where topics ended at the last observations;
- ``modern`` (MODERN_RECORDS): of each group of KIP-848 the record that says whether there is one;
- ``generations``: of each classic group the last record, and those in which some partition was assigned for the last time;
- ``rebalances``: of each group those that follow one another up to now, which may be part of a storm.

So the state grows with the number of groups and partitions that ever existed, not with the number of records.
"""

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import COMMITS, CURRENT_OFFSETS, END_OFFSETS, STORMS, table_schema
from groupcoord.pipeline.tables import current_state
from groupcoord.pipeline.tables.commit_tables import PARTITION
from groupcoord.pipeline.tables.commit_tables import lag as lag_of
from groupcoord.pipeline.tables.consecutive_commits import RECENT, key
from groupcoord.pipeline.tables.current_state import PLACE, at_places, latest_places
from groupcoord.pipeline.tables.ownership_changes import find_ownership_changes
from groupcoord.pipeline.tables.rebalances import APART_S
from groupcoord.pipeline.tables.rebalances import rebalances as rebalances_of
from groupcoord.pipeline.tables.rebalances import storms as storms_of

OBSERVATIONS = 20
"""How many ends of each partition are remembered: about as many batches as there are between the first and the last of ten
commits that come once a batch, twice."""

RECENT_COMMITS = table_schema("""
    recent by log_partition, log_offset: The last ten commits of each group, topic and partition.
    log_partition, log_offset, group, topic, partition, committed_offset, commit_ts
""")


def offsets_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """``current_offsets``."""
    known = before.select(*CURRENT_OFFSETS.names, F.lit(False).alias("is_tombstone"))  # noqa: FBT003 - Spark's signature
    records = known.unionByName(commits.select(*COMMITS.names))
    return current_state.current_offsets(records, latest_places(records, ["group", *PARTITION]))


def modern_after(before: DataFrame, modern: DataFrame) -> DataFrame:
    """``modern``."""
    records = before.unionByName(modern.where(F.col("record") == current_state.GROUP_OF_KIP_848))
    return at_places(records, latest_places(records, ["group"]))


def groups_after(recent: DataFrame, generations: DataFrame, modern: DataFrame) -> DataFrame:
    """``current_groups``, from what is kept after the batch."""
    commits = recent.select("*", F.lit(False).alias("is_tombstone"))  # noqa: FBT003 - Spark's signature
    return current_state.current_groups(commits, generations, latest_places(generations, ["group"]), modern)


def generations_after(records: DataFrame) -> DataFrame:
    """``generations``, of ``records``: what was kept, and what came."""
    last = latest_places(records, ["group"])
    given = (
        records.where("not is_tombstone")
        .selectExpr("`group`", *PLACE, "inline(flatten(transform(members, m -> coalesce(m.assigned, array()))))")
        .select("group", *PLACE, "topic", F.explode("partitions").alias("partition"))
    )
    return at_places(records, last.unionByName(latest_places(given, ["group", *PARTITION])).distinct())


def rebalances_in(kept: DataFrame, came: DataFrame) -> DataFrame:
    """``rebalances`` that ``came`` (GENERATIONS) brought, behind the generations that were ``kept``."""
    records = kept.unionByName(came)
    return at_places(rebalances_of(records, find_ownership_changes(records)), came.select(*PLACE))


def storms_after(before: DataFrame, kept: DataFrame, came: DataFrame) -> DataFrame:
    """``storms``: those of runs that had ended, and those of the rebalances that were ``kept`` with those that ``came``."""
    going_on = kept.groupBy("group").agg(F.max("at").alias("to"))
    ended = before.join(going_on, ["group", "to"], "left_anti").select(*STORMS.names)
    return ended.unionByName(storms_of(kept.unionByName(came)))


def open_runs(rebalances: DataFrame) -> DataFrame:
    """``rebalances`` to be kept: of each group the last that follow one another."""
    backwards = Window.partitionBy("group").orderBy(F.desc("log_offset"))
    begins = F.when(F.col("seconds_since_previous") <= APART_S, 0).otherwise(1)
    return (
        rebalances.select("*", (F.sum(begins).over(backwards) - begins).alias("runs_behind"))
        .where("runs_behind = 0")
        .select(*rebalances.columns)
    )


def recent_after(before: DataFrame, commits: DataFrame) -> DataFrame:
    """``recent``."""
    came = commits.where("not is_tombstone").select(*RECENT_COMMITS.names)
    backwards = Window.partitionBy("group", *PARTITION, "log_partition").orderBy(F.desc("log_offset"))
    numbered = before.unionByName(came).select("*", F.row_number().over(backwards).alias("number"))
    return numbered.where(F.col("number") <= RECENT).select(*RECENT_COMMITS.names)


def ends_after(before: DataFrame, observed: DataFrame) -> DataFrame:
    """``ends``, of those partitions that there still are."""
    backwards = Window.partitionBy(*PARTITION).orderBy(F.desc("at"))
    known = before.join(observed, PARTITION, "left_semi").select(*END_OFFSETS.names).unionByName(observed)
    numbered = known.select("*", F.row_number().over(backwards).alias("number"))
    return numbered.where(F.col("number") <= OBSERVATIONS).select(*END_OFFSETS.names)


def lag_after(offsets: DataFrame, recent: DataFrame, ends: DataFrame | None, now: datetime) -> DataFrame:
    """``lag``, from what is kept after the batch; ``ends`` is None if the ends of topics are unknown."""
    consecutive_commits = recent.select(
        key(),
        "log_offset",
        F.unix_millis("commit_ts").alias("commit_ms"),
        "committed_offset",
        F.lit(True).alias("is_recent"),  # noqa: FBT003 - Spark's signature
    )
    statistics = recent.select(key(), "group", *PARTITION).distinct()
    return lag_of(offsets, consecutive_commits, statistics, ends, now)
