"""How many partitions topics had, and since when.

The log does not say so; it shows which partitions were assigned and committed. A leader assigns all partitions that there are,
so that this is what it knew, as long as anybody's assignment is there.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

ALWAYS = 0
"""Since when, where no time is known: before all records."""


def partition_counts(
    statistics: DataFrame, generations: DataFrame, modern: DataFrame, ends: DataFrame | None
) -> DataFrame:
    """``topic``, ``since`` (microseconds) and ``count``: a row for each time that the log shows more partitions than before.

    ``statistics`` is what ``key_statistics`` gives of commits. Where ``ends`` (END_OFFSETS) knows of more, a topic has had
    these since the last growth that the log shows.
    """
    committed = (
        statistics.where("last_commit is not null")
        .groupBy("topic", "partition")
        .agg(F.min("first_ms").alias("at"))
        .select("topic", F.expr("partition + 1").alias("count"), F.timestamp_millis("at").alias("at"))
    )
    both = [
        frame.select(
            F.coalesce("append_ts", "state_ts").alias("at"),
            F.expr("inline(flatten(transform(filter(members, m -> m.assigned is not null), m -> m.assigned)))"),
        )
        .groupBy("topic", F.array_max("partitions").alias("highest"))
        .agg(F.min("at").alias("at"))
        .select("topic", F.expr("highest + 1").alias("count"), "at")
        for frame in (generations, modern)
    ]
    in_time = Window.partitionBy("topic").orderBy("since")
    grown = (
        committed.unionByName(both[0])
        .unionByName(both[1])
        .where("count > 0")
        .groupBy("topic", F.coalesce(F.unix_micros("at"), F.lit(ALWAYS)).alias("since"))
        .agg(F.max("count").alias("count"))
        .select("*", F.max("count").over(in_time.rowsBetween(Window.unboundedPreceding, -1)).alias("count_before"))
        .where("count_before is null or count > count_before")
        .select("topic", "since", "count", F.lead("count").over(in_time).isNull().alias("is_last"))
    )
    if ends is None:
        return grown.select("topic", "since", "count")
    known = ends.groupBy("topic").agg((F.max("partition") + 1).alias("known"))
    return grown.join(known, "topic", "full").select(
        "topic",
        F.coalesce("since", F.lit(ALWAYS)).alias("since"),
        F.expr("if(coalesce(is_last, true), greatest(count, known), count)").alias("count"),
    )
