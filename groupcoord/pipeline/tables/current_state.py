"""Offsets and groups as the coordinator would know them after reading the log.

The last record of a key counts, and a tombstone removes it. A commit for an unknown group creates a group without members, and
a tombstone of the group removes that, too. Sources: ``OffsetMetadataManager.replay``, ``GroupMetadataManager.replay``.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import CURRENT_GROUPS, CURRENT_OFFSETS, MEMBER

PLACE = ["log_partition", "log_offset"]
_MOST_PARTITIONS = 1 << 20
_WHEN = (
    f"least(coalesce(unix_millis(append_ts), 0), {1 << 42}) * {_MOST_PARTITIONS} + log_partition"  # until the year 2109
)
"""What orders records of different partitions of the log: when they were appended, and of two at once the higher partition."""


def latest_places(records: DataFrame, keys: list[str]) -> DataFrame:
    """Where the last record of each of ``keys`` is.

    All records of a key are in one partition of the log, as those of a group are, unless there was another number of partitions
    before: then the partition counts in which the last one was appended. Maxima of numbers are aggregated in a hash table; a
    maximum of whole rows would first sort all records and take five times as long.
    """
    in_partition = (
        records.select(*keys, *PLACE, F.expr(_WHEN).alias("when"))
        .groupBy(*keys, "log_partition")
        .agg(F.max("log_offset").alias("log_offset"), F.max("when").alias("when"))
    )
    return in_partition.groupBy(*keys).agg(*(F.max_by(name, "when").alias(name) for name in PLACE)).select(*PLACE)


def at_places(records: DataFrame, places: DataFrame) -> DataFrame:
    """The records at ``places``. Spark sends these to all tasks where they are few, as its own estimate says."""
    return records.join(places, PLACE, "left_semi").select(*records.columns)


def current_offsets(commits: DataFrame, places: DataFrame) -> DataFrame:
    """``commits`` at ``places`` (the last of each group, topic and partition) that are no tombstones."""
    return at_places(commits, places).where("not is_tombstone").select(*CURRENT_OFFSETS.names)


def current_groups(commits: DataFrame, generations: DataFrame, places: DataFrame, modern: DataFrame) -> DataFrame:
    """Groups with a record at ``places`` (the last of each group), those in ``modern`` (CURRENT_GROUPS), and those that only
    commit."""
    last = at_places(generations, places)
    state = F.expr("if(size(members) > 0, 'Stable', 'Empty')")
    described = last.where("not is_tombstone").withColumns({"kind": F.lit("classic"), "state": state})
    ended = last.selectExpr(
        "`group`",
        "is_tombstone",
        "log_partition as described_in",
        "log_offset as described_at",
        f"{_WHEN} as described_when",
    )
    in_partition = (
        commits.where("not is_tombstone")
        .selectExpr("`group`", "log_partition", "log_offset", f"{_WHEN} as when")
        .groupBy("group", "log_partition")
        .agg(F.max("log_offset").alias("committed_at"), F.max("when").alias("when"))
    )
    committed = in_partition.groupBy("group").agg(
        *(F.max_by(name, "when").alias(name) for name in ("log_partition", "committed_at")), F.max("when").alias("when")
    )
    simple = (
        committed.join(ended, "group", "left")
        .where(
            "is_tombstone is null or (is_tombstone and "
            "if(log_partition = described_in, committed_at > described_at, when > described_when))"
        )
        .join(modern, "group", "left_anti")
        .selectExpr(
            *("log_partition", "`group`", "'simple' as kind", "'Empty' as state", "'' as protocol_type"),
            "0 as generation",
            f"cast(array() as array<{MEMBER}>) as members",
        )
    )
    every = described.unionByName(simple, allowMissingColumns=True).unionByName(modern, allowMissingColumns=True)
    return every.select(*CURRENT_GROUPS.names)
