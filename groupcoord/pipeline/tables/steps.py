"""Each commit beside the one before it: from this come the gaps, the odd commits, and the last ten of each partition.

A sort of all commits would be the dearest step of a run. So each partition of the log is cut into stretches, which are
followed one by one (``follow.py``); what goes on from there is little, and is sorted. What is followed are numbers only: a
hash stands for group, topic, its partition, and the partition of the log. One pair of these in 2⁶⁴ would be taken for one. No
task holds more than some stretches, however many commits a group has.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.tables.follow import FALLEN, FOLLOWED, IN_STRETCH, SHORTEST_GAP_MS, TAKEN, following

RECENT = 10
"""How many commits Burrow looks back on (``intervals``)."""
KEYS = ["group", "topic", "partition", "log_partition"]
STRETCH_BITS = 18
"""A stretch has 2¹⁸ offsets: so many rows at the most."""
ROWS_A_TASK = 500_000
_OVER = "over (partition by key order by log_offset)"


def key() -> Column:
    """What stands for KEYS, as the column ``key``."""
    return F.xxhash64(*KEYS).alias("key")


def key_statistics(commits: DataFrame) -> DataFrame:
    """For each group, topic and partition: its key, how many commits there are, when the first and the last were, where the
    last of them is, and where the last record is, which may be a tombstone.
    """
    alive = "if(is_tombstone, null, {})"
    return (
        commits.groupBy(*KEYS)
        .agg(
            F.expr(f"count({alive.format('commit_ts')})").alias("commits"),
            F.min(F.expr(f"unix_millis({alive.format('commit_ts')})")).alias("first_ms"),
            F.max(F.expr(f"unix_millis({alive.format('commit_ts')})")).alias("last_ms"),
            F.max(F.expr(alive.format("log_offset"))).alias("last_commit"),
            F.max("log_offset").alias("last_record"),
        )
        .select("*", key())
    )


def steps(
    commits: DataFrame,
    statistics: DataFrame,
    ownership: DataFrame,
    *,
    rows: int = 0,
    recent: int = RECENT,
    stretch_bits: int = STRETCH_BITS,
) -> DataFrame:
    """The commits that something may have to be said of: after a pause, among the last ``recent``, or suspect, which are
    those that go back and those for a partition that is nobody's. ``rows`` is about how many commits there are.
    """
    taken = commits.where("not is_tombstone").select(
        key(), "log_partition", "log_offset", F.unix_millis("commit_ts").alias("commit_ms"), "committed_offset"
    )
    stretch = F.expr(f"shiftright(log_offset, {stretch_bits})")
    followed = (
        taken.unionByName(_marks(ownership, statistics, stretch_bits))
        .repartition(rows // ROWS_A_TASK + 2, "log_partition", stretch)
        .select(*IN_STRETCH.names)
        .mapInArrow(following(max(recent, 1), stretch_bits), FOLLOWED.ddl)
    )
    is_recent = f"lead(committed_offset, {recent}) {_OVER} is null" if recent else "false"
    return (
        followed.selectExpr(
            *IN_STRETCH.names,
            f"coalesce(previous_ms, lag(known_ms) ignore nulls {_OVER}) as previous_ms",
            f"coalesce(previous_offset, lag(committed_offset) {_OVER}) as previous_offset",
            f"coalesce(previous_place, lag(log_offset) {_OVER}) as previous_place",
            f"{is_recent} as is_recent",
            "is_nobodys",
        )
        .selectExpr(
            "* except (is_nobodys)",
            f"coalesce(commit_ms - previous_ms >= {SHORTEST_GAP_MS}, false) as is_after_gap",
            "is_nobodys or coalesce(committed_offset < previous_offset, false) as is_suspect",
        )
        .where("is_recent or is_after_gap or is_suspect")
    )


def _marks(ownership: DataFrame, statistics: DataFrame, stretch_bits: int) -> DataFrame:
    """Where partitions fell to nobody and were taken again, as IN_STRETCH, and in which partition of the log; in every stretch
    between, the first again."""
    changes = ownership.select(key(), "log_partition", "log_offset", "member")
    fallen = changes.where("member is null").select("key").distinct()
    committed = statistics.where("last_commit is not null").select("key", "last_commit")
    place = ["key", "log_partition"]
    spans = (
        changes.join(fallen, "key", "left_semi")
        .selectExpr("*", f"lead(log_offset) {_OVER} as next_change", f"lead(member) {_OVER} as next_member")
        .where("member is null")
        .join(committed, "key")
        .where("log_offset < last_commit")
        .selectExpr(
            *place,
            "log_offset as first",
            "least(coalesce(next_change, last_commit), last_commit) as last",
            "if(next_change <= last_commit and next_member is not null, next_change, null) as taken_at",
        )
    )
    begins = spans.selectExpr(
        *place,
        "first",
        f"explode(sequence(shiftright(first, {stretch_bits}), shiftright(last, {stretch_bits}))) as stretch",
    ).selectExpr(*place, f"greatest(first, shiftleft(stretch, {stretch_bits})) as log_offset", f"{FALLEN} as mark")
    ends = spans.where("taken_at is not null").selectExpr(*place, "taken_at as log_offset", f"{TAKEN} as mark")
    return begins.unionByName(ends).selectExpr(
        *place, "log_offset", "cast(mark as bigint) as commit_ms", "cast(null as bigint) as committed_offset"
    )
