"""Commits that look as if a former member or owner made them.

The coordinator refuses commits of older generations (ILLEGAL_GENERATION). It accepts those of a current member for a partition
that another member owns, and any commit once the group is empty, which is also how an administrator sets offsets. The log does
not say who committed, so this is a list of commits to look at. In a cooperative rebalance a member commits what it gives up
after the generation has begun; that is correct and not listed.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import ZOMBIES
from groupcoord.pipeline.tables.consecutive_commits import KEYS, key

SOON_MS = 300_000
"""How long after a move the former owner may still commit: Kafka's ``max.poll.interval.ms``."""
_REASON = f"""case
    when is_empty then 'nobody in the group'
    when owner is null and described_at > log_changed_at then 'nobody has the partition'
    when owner is not null and previous_owner <> owner and committed_offset < previous_offset
         and commit_ms - changed_ms <= {SOON_MS} then 'back behind its owner'
    end"""


def zombies(
    consecutive_commits: DataFrame,
    statistics: DataFrame,
    ownership: DataFrame,
    generations: DataFrame,
    commits: DataFrame,
) -> DataFrame:
    """The suspects of ``consecutive_commits`` that remain suspect, with the owner of the partition at that time."""
    odd = _odd(consecutive_commits, ownership).join(statistics.select("key", *KEYS), "key").drop("key")
    changes = ownership.select(
        "group",
        "topic",
        "partition",
        F.col("log_offset").alias("log_changed_at"),
        F.unix_millis("append_ts").alias("changed_ms"),
        F.col("member").alias("owner"),
        F.col("previous_member").alias("previous_owner"),
    )
    placed = odd.withColumn("log_changed_at", F.expr("mark div 2")).join(
        changes, ["group", "topic", "partition", "log_changed_at"]
    )
    placed_in_generation = _with_generation(placed, generations)
    appended = commits.select("log_partition", "log_offset", "append_ts")
    return (
        placed_in_generation.withColumn("reason", F.expr(_REASON))
        .where("reason is not null")
        .join(appended, ["log_partition", "log_offset"])
        .select(*ZOMBIES.names)
    )


def _odd(consecutive_commits: DataFrame, ownership: DataFrame) -> DataFrame:
    """The suspects without an owner, or with an offset below one that was committed since the partition moved.

    ``mark`` is twice the offset of the last change of owner, plus one if the partition has no owner since.
    """
    suspects = consecutive_commits.where("is_suspect").select(
        "key", "log_offset", "commit_ms", "committed_offset", "previous_offset", "previous_place"
    )
    changes = ownership.select(
        key(),
        "log_offset",
        (F.col("log_offset") * 2 + F.col("member").isNull().cast("bigint")).alias("change"),
    ).join(suspects.select("key").distinct(), "key", "left_semi")
    so_far = Window.partitionBy("key").orderBy("log_offset").rowsBetween(Window.unboundedPreceding, 0)
    return (
        suspects.unionByName(changes, allowMissingColumns=True)
        .select("*", F.last("change", ignorenulls=True).over(so_far).alias("mark"))
        .where("change is null")
        .where("mark % 2 = 1 or (committed_offset < previous_offset and previous_place > mark div 2)")
        .drop("change")
    )


def _with_generation(odd: DataFrame, generations: DataFrame) -> DataFrame:
    """``odd`` with the generation at that time: its number, the offset of its record, and whether it had no members."""
    described = generations.select(
        "group",
        "log_offset",
        F.struct(
            "generation",
            F.col("log_offset").alias("described_at"),
            (F.coalesce(F.size("members"), F.lit(0)) <= 0).alias("is_empty"),
        ).alias("then"),
    )
    so_far = Window.partitionBy("group").orderBy("log_offset").rowsBetween(Window.unboundedPreceding, 0)
    both = odd.unionByName(described, allowMissingColumns=True)
    return (
        both.withColumn("then", F.last("then", ignorenulls=True).over(so_far))
        .where("mark is not null")
        .select("*", "then.*")
    )
