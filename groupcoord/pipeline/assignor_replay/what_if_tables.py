"""The tables what_if and what_if_summary: prepares the records of each group and distributes the replays by group and assignor.

Spark's grouped map would hold all rows of a group in memory. So the rows are sorted, and a task reads them as a stream: a group
with a long history takes more time, but not more memory.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.assignor_replay.assignor_choice import RECORDED_HISTORY, AssignorChoice
from groupcoord.pipeline.assignor_replay.recorded_and_simulated_assignments import RECORD_FIELDS
from groupcoord.pipeline.assignor_replay.replay import rows
from groupcoord.pipeline.schemas import MEMBER, WHAT_IF, WHAT_IF_SUMMARY
from groupcoord.pipeline.tables.ownership_changes import IDENTITY, IN_GROUP

ALWAYS = 0
"""The value of ``since`` if no time is known: before all records."""


def partition_counts(statistics: DataFrame, generations: DataFrame, ends: DataFrame | None) -> DataFrame:
    """The numbers of partitions of topics: ``topic``, ``since`` (microseconds) and ``count``, a row for each time that the
    log shows more partitions than before.

    ``statistics`` is the result of ``partition_statistics``. If ``ends`` (END_OFFSETS) has more partitions than the log
    shows, they are taken to exist since the last growth that the log shows.
    """
    committed = (
        statistics.where("last_commit is not null")
        .groupBy("topic", "partition")
        .agg(F.min("first_ms").alias("at"))
        .select("topic", F.expr("partition + 1").alias("count"), F.timestamp_millis("at").alias("at"))
    )
    given = (
        generations.select(
            F.coalesce("append_ts", "state_ts").alias("at"),
            F.expr("inline(flatten(transform(filter(members, m -> m.assigned is not null), m -> m.assigned)))"),
        )
        .groupBy("topic", F.array_max("partitions").alias("highest"))
        .agg(F.min("at").alias("at"))
        .select("topic", F.expr("highest + 1").alias("count"), "at")
    )
    in_time = Window.partitionBy("topic").orderBy("since")
    grown = (
        committed.unionByName(given)
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


BATCH = 4096
"""The number of rows that are returned to Spark at a time."""
SLICE = 64
"""The number of generations that are converted to Python objects at a time: those of a large group are large."""


def playing(chosen: Sequence[AssignorChoice]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that replays record batches of ``moments``, in order, with the assignors ``chosen``."""
    by_name = {choice.spec: choice for choice in chosen}

    def play(batches: Iterator[Any]) -> Iterator[Any]:
        schema = arrow_schema(WHAT_IF.columns)
        moments = (
            batch.slice(start, SLICE).to_pylist() for batch in batches for start in range(0, batch.num_rows, SLICE)
        )
        found = rows(chain.from_iterable(moments), by_name)
        while some := list(islice(found, BATCH)):
            yield pa.RecordBatch.from_pylist(some, schema=schema)

    return play


TOPICS_FIRST = -1
"""The ``log_offset`` of rows about topics, which sorts them before all records."""
_NO_NUMBERS = "cast(array() as array<int>)"
_GIVES_UP = f"""
    coalesce(exists(members, m -> m.assigned is not null and exists(m.owned, o -> size(array_except(o.partitions,
        coalesce(flatten(transform(filter(m.assigned, a -> a.topic = o.topic), a -> a.partitions)), {_NO_NUMBERS}))) > 0)),
    false)
"""
"""SQL: is there a member that owned partitions and was not assigned all of them again? It revokes them and rejoins."""
_WISHES = f"sort_array(transform(members, m -> concat({IDENTITY}, ' ', array_join(m.topics, ' '))))"
"""SQL: the members and their subscriptions, to see whether they have changed."""
_MEMBERS = f"""transform(members, m -> struct(m.member_id, {IDENTITY} as who, m.instance_id, m.topics, m.rack,
    if(is_real, m.owned, null) as owned, if(is_real or name = protocol, m.assigned, null) as assigned))"""
"""SQL: the fields that a replay needs. Real assignments are most of the bytes, and are only kept for the real history and for
the assignor that the group used."""
_OF_CONSUMERS = f"if(protocol_type = 'consumer', members, cast(array() as array<{MEMBER}>))"
_WANTED = "flatten(transform(members, m -> coalesce(m.topics, array())))"


def what_if(generations: DataFrame, counts: DataFrame, chosen: Sequence[AssignorChoice], tasks: int) -> DataFrame:
    """WHAT_IF: the groups in ``generations`` (of all kinds) replayed with the assignors ``chosen`` in ``tasks`` tasks.

    ``counts`` is the result of ``partition_counts``.
    """
    return (
        moments(generations, counts, chosen)
        .repartition(tasks, "group", "assignor")
        .sortWithinPartitions("group", "assignor", "log_offset", "topic", "at")
        .mapInArrow(playing(chosen), WHAT_IF.ddl)
        .select(*WHAT_IF.names)
    )


_SUMMED = ("moved", "moved_needlessly", "pauses", "rebalances")


def what_if_summary(played: DataFrame) -> DataFrame:
    """WHAT_IF_SUMMARY from the rows of WHAT_IF."""
    return (
        played.groupBy("group", "assignor")
        .agg(
            F.count_if(F.col("problem").isNull()).alias("generations"),
            F.count("problem").alias("problems"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMMED),
            F.sum("paused_partition_seconds").alias("paused_partition_seconds"),
            F.avg("imbalance").alias("imbalance_mean"),
            F.max("imbalance").alias("imbalance_worst"),
            F.sum(F.col("agrees").cast("bigint")).alias("agrees"),
        )
        .select(*WHAT_IF_SUMMARY.names)
    )


def moments(generations: DataFrame, counts: DataFrame, chosen: Sequence[AssignorChoice]) -> DataFrame:
    """The input of replays, for each of ``chosen`` and for the real history. Rows with a ``topic`` say how many partitions it
    had since ``at`` (in microseconds); the others are records of generations (GroupRecord)."""
    every = [(RECORDED_HISTORY, "", True), *((choice.spec, choice.name, False) for choice in chosen)]
    assignors = [
        F.struct(F.lit(spec).alias("assignor"), F.lit(name).alias("name"), F.lit(real).alias("is_real"))
        for spec, name, real in every
    ]
    described = _described(generations)
    records = described.select("*", F.inline(F.array(*assignors))).selectExpr(
        "`group`", "assignor", *RECORD_FIELDS, f"{_MEMBERS} as members"
    )
    topics = (
        described.selectExpr("`group`", f"explode(array_distinct({_WANTED})) as topic")
        .distinct()
        .join(counts, "topic")
        .select("*", F.inline(F.array(*assignors)))
        .selectExpr(
            "`group`",
            "assignor",
            "topic",
            "count as partitions",
            "since as at",
            f"bigint({TOPICS_FIRST}) as log_offset",
        )
    )
    return records.unionByName(topics, allowMissingColumns=True)


def _described(generations: DataFrame) -> DataFrame:
    """The records of generations of all groups of consumers, with the columns that compare each with the one before and
    after."""
    return (
        generations.selectExpr("* except (members)", "kind <> 'classic' as modern", f"{_OF_CONSUMERS} as members")
        .selectExpr(
            "*",
            "unix_micros(coalesce(append_ts, state_ts)) as at",
            "if(modern, null, unix_millis(append_ts) - unix_millis(state_ts)) as assign_and_sync_ms",
            f"not modern and {_GIVES_UP} as gives_up",
            f"{_WISHES} as wishes",
        )
        .selectExpr(
            "*",
            *(f"lag({name}) {IN_GROUP} as old_{name}" for name in ("generation", "is_tombstone", "gives_up", "wishes")),
            *(f"lead({name}) {IN_GROUP} as next_{name}" for name in ("generation", "wishes")),
        )
        .selectExpr(
            "*",
            "not is_tombstone and (old_is_tombstone is null or old_is_tombstone or generation <> old_generation) as begins",
            "coalesce(old_gives_up and generation = old_generation + 1 and wishes = old_wishes, false) as follows",
            """coalesce(gives_up and next_generation = generation + 1 and size(next_wishes) > 0 and wishes <> next_wishes,
                false) as goes_on""",
        )
    )
