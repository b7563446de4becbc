"""Each commit beside the one before it: from this come the gaps, the odd commits, and the last ten of each partition.

A sort of all commits would be the dearest step of a run. So each partition of the log is cut into stretches, which are
followed one by one (``follow.py``); what goes on from there is little, and is sorted. What is followed are numbers only:
instead of group and topic their hash, which together with the partition of the topic and of the log stands for them. One pair
of partitions in 2⁶⁴ would be taken for one. No task holds more than some stretches, however many commits a group has.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.tables.follow import FALLEN, FOLLOWED, IN_STRETCH, SHORTEST_GAP_MS, TAKEN, following

RECENT = 10
"""How many commits Burrow looks back on (``intervals``)."""
KEY = ["hash", "partition", "log_partition"]
STRETCH_BITS = 18
"""A stretch has 2¹⁸ offsets: so many rows at the most."""
ROWS_A_TASK = 500_000
_OVER = f"over (partition by {', '.join(KEY)} order by log_offset)"


def key_hash() -> Column:
    """Instead of group and topic."""
    return F.xxhash64("group", "topic").alias("hash")


def key_statistics(commits: DataFrame) -> DataFrame:
    """For each group, topic and partition: its hash, how many commits there are, when the first and the last were, where the
    last of them is, and where the last record is, which may be a tombstone.
    """
    alive = "if(is_tombstone, null, {})"
    return (
        commits.groupBy("group", "topic", "partition", "log_partition")
        .agg(
            F.expr(f"count({alive.format('commit_ts')})").alias("commits"),
            F.min(F.expr(f"unix_millis({alive.format('commit_ts')})")).alias("first_ms"),
            F.max(F.expr(f"unix_millis({alive.format('commit_ts')})")).alias("last_ms"),
            F.max(F.expr(alive.format("log_offset"))).alias("last_commit"),
            F.max("log_offset").alias("last_record"),
        )
        .select("*", key_hash())
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
    stretch = f"shiftright(log_offset, {stretch_bits}) as stretch"
    taken = commits.where("not is_tombstone").select(
        key_hash(),
        "partition",
        "log_partition",
        "log_offset",
        F.expr(stretch),
        F.unix_millis("commit_ts").alias("commit_ms"),
        "committed_offset",
        F.lit(None).cast("int").alias("mark"),
    )
    followed = (
        taken.unionByName(_marks(ownership, statistics, stretch_bits))
        .repartition(rows // ROWS_A_TASK + 2, "log_partition", "stretch")
        .select(*IN_STRETCH.names)
        .mapInArrow(following(max(recent, 1)), FOLLOWED.ddl)
    )
    is_recent = f"lead(committed_offset, {recent}) {_OVER} is null" if recent else "false"
    return (
        followed.selectExpr(
            *KEY,
            "log_offset",
            "commit_ms",
            "committed_offset",
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
    """Where partitions fell to nobody and were taken again, as IN_STRETCH; in every stretch between, the first again."""
    changes = ownership.select(key_hash(), "partition", "log_partition", "log_offset", "member")
    fallen = changes.where("member is null").select(*KEY).distinct()
    committed = statistics.where("last_commit is not null").select(*KEY, "last_commit")
    spans = (
        changes.join(fallen, KEY, "left_semi")
        .selectExpr("*", f"lead(log_offset) {_OVER} as next_change", f"lead(member) {_OVER} as next_member")
        .where("member is null")
        .join(committed, KEY)
        .where("log_offset < last_commit")
        .selectExpr(
            *KEY,
            "log_offset as first",
            "least(coalesce(next_change, last_commit), last_commit) as last",
            "if(next_change <= last_commit and next_member is not null, next_change, null) as taken_at",
        )
    )
    begins = spans.selectExpr(
        *KEY,
        "first",
        f"explode(sequence(shiftright(first, {stretch_bits}), shiftright(last, {stretch_bits}))) as stretch",
    ).selectExpr(*KEY, f"greatest(first, shiftleft(stretch, {stretch_bits})) as log_offset", f"{FALLEN} as mark")
    ends = spans.where("taken_at is not null").selectExpr(*KEY, "taken_at as log_offset", f"{TAKEN} as mark")
    return begins.unionByName(ends).selectExpr(
        *KEY,
        "log_offset",
        f"shiftright(log_offset, {stretch_bits}) as stretch",
        "cast(null as bigint) as commit_ms",
        "cast(null as bigint) as committed_offset",
        "mark",
    )
