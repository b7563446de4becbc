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
"""The order of records in different partitions of the log: by time, and at the same time by partition."""


def latest_places(records: DataFrame, keys: list[str]) -> DataFrame:
    """The partition and offset of the last record of each value of ``keys``.

    All records of a key are in one partition of the log, unless ``offsets.topic.num.partitions`` was changed: then the
    partition counts to which a record was appended last. The maxima are of numbers, which Spark aggregates in a hash table;
    for a maximum of whole rows it would sort all records, which takes five times as long.
    """
    in_partition = (
        records.select(*keys, *PLACE, F.expr(_WHEN).alias("when"))
        .groupBy(*keys, "log_partition")
        .agg(F.max("log_offset").alias("log_offset"), F.max("when").alias("when"))
    )
    return in_partition.groupBy(*keys).agg(*(F.max_by(name, "when").alias(name) for name in PLACE)).select(*PLACE)


def at_places(records: DataFrame, places: DataFrame) -> DataFrame:
    """The records at ``places``. Spark broadcasts ``places`` if it estimates them to be small."""
    return records.join(places, PLACE, "left_semi").select(*records.columns)


def current_offsets(commits: DataFrame, places: DataFrame) -> DataFrame:
    """CURRENT_OFFSETS: the ``commits`` at ``places`` (the last of each group, topic and partition) that are not tombstones."""
    return at_places(commits, places).where("not is_tombstone").select(*CURRENT_OFFSETS.names)


def current_groups(commits: DataFrame, generations: DataFrame, places: DataFrame, modern: DataFrame) -> DataFrame:
    """CURRENT_GROUPS: classic groups with a record at ``places`` (the last of each group), the groups in ``modern``
    (CURRENT_GROUPS), and groups that only commit."""
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
