"""Each commit beside the one before it: from this come the gaps, the odd commits, and the last ten of each partition.

A sort of all commits would be the most expensive step of a run. So each partition of the log is cut into slices, and the
commits of each stretch are compared with numpy. Only those that stand out, or that join a stretch with the next one, are sorted
afterwards. Only numbers are compared: a hash stands for group, topic, its partition, and the partition of the log; one pair of
these in 2⁶⁴ would be taken for one. No task holds more than some slices, however many commits a group has.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.schemas import table_schema
from groupcoord.pipeline.spark_session import map_in_arrow

SHORTEST_GAP_MS = 60_000
FALLEN, TAKEN = 1, 0
"""Marks: from here on the partition has no owner, or has one again."""

IN_STRETCH = table_schema("""
    in_stretch by key, log_offset: What is followed: commits, and marks among them.
    key bigint: instead of group, topic, its partition, and the partition of the log
    log_offset bigint: where the commit is, or from where on the mark holds
    commit_ms bigint: time of the commit, in ms; of a mark: FALLEN or TAKEN
    committed_offset bigint: what was committed; null: a mark
""")
FOLLOWED = table_schema(
    """
    followed by key, log_offset: Commits that go on: the first and the last of each key in the stretch, those after a pause,
        those that go back, and those for a partition without an owner.
    previous_place bigint: where the one before is; null: not in this stretch
    previous_offset bigint: what that committed
    previous_ms bigint ms: the last time before; null: none is known in this stretch
    known_ms bigint: the last time up to here
    is_unowned boolean: had the partition no owner then?
    """,
    IN_STRETCH.columns,
)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def compare_commits(recent: int, stretch_bits: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function from record batches of IN_STRETCH, with whole slices of 2 to the power of ``stretch_bits`` offsets, to such
    of FOLLOWED.

    ``recent`` is how many of the last commits of each key go on: at least one.
    """

    def follow(batches: Iterator[Any]) -> Iterator[Any]:
        if found := list(batches):
            yield _follow(pa.Table.from_batches(found), recent, stretch_bits)

    return follow


def _follow(rows: Any, recent: int, stretch_bits: int) -> Any:
    numbers = {name: rows.column(name).fill_null(0).to_numpy() for name in IN_STRETCH.names}
    marked = rows.column("committed_offset").is_null().to_numpy()
    timed = rows.column("commit_ms").is_valid().to_numpy()
    del rows
    key = _in_stretch(numbers["key"], numbers["log_offset"] >> stretch_bits)
    if marked.any():
        # At one place, what a stretch begins with counts before a change, and that before a commit.
        rank = np.where(marked, 1 - numbers["commit_ms"], 2).astype(np.int8)
        order = np.lexsort((rank, numbers["log_offset"], key))
        marked = marked[order]
        last = _last(marked, _begins(key[order]))
        unowned = (marked[last] & (numbers["commit_ms"][order][last] == FALLEN))[~marked]
        order = order[~marked]
    else:
        order = np.lexsort((numbers["log_offset"], key))
        unowned = np.zeros(len(order), bool)
    key = key[order]
    return _chosen({name: numbers[name][order] for name in IN_STRETCH.names}, timed[order], unowned, key, recent)


def _chosen(commits: dict[str, Any], timed: Any, unowned: Any, key: Any, recent: int) -> Any:
    """Those of ``commits``, in order, that go on."""
    if not len(key):
        return pa.RecordBatch.from_pylist([], schema=arrow_schema(FOLLOWED.columns))
    begins = _begins(key)
    place, offset, ms = commits["log_offset"], commits["committed_offset"], commits["commit_ms"]
    known = _last(timed, begins)
    is_known, known_ms = timed[known], ms[known]
    was_known = np.roll(is_known, 1) & ~begins
    before_ms, before, before_place = np.roll(known_ms, 1), np.roll(offset, 1), np.roll(place, 1)
    starts = np.nonzero(begins)[0]
    sizes = np.diff(starts, append=len(key))
    from_end = np.repeat(starts + sizes, sizes) - np.arange(len(key))
    goes_on = (
        (from_end <= recent)
        | begins
        | unowned
        | (before > offset)
        | (timed & ~was_known)
        | (timed & was_known & (ms - before_ms >= SHORTEST_GAP_MS))
    )
    at = np.nonzero(goes_on)[0]
    first = begins[at]
    columns = {name: pa.array(commits[name][at]) for name in FOLLOWED.names[:2]}
    columns |= {
        "commit_ms": pa.array(ms[at], mask=~timed[at]),
        "committed_offset": pa.array(offset[at]),
        "previous_place": pa.array(before_place[at], mask=first),
        "previous_offset": pa.array(before[at], mask=first),
        "previous_ms": pa.array(before_ms[at], mask=~was_known[at]),
        "known_ms": pa.array(known_ms[at], mask=~is_known[at]),
        "is_unowned": pa.array(unowned[at]),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in FOLLOWED.names], schema=arrow_schema(FOLLOWED.columns))


def _in_stretch(key: Any, stretch: Any) -> Any:
    """One number for both; two pairs in 2⁶⁴ would be taken for one."""
    key = key.astype(np.uint64)
    return (key ^ (key >> np.uint64(29))) * _MIX + stretch.astype(np.uint64)


def _begins(key: Any) -> Any:
    """Where another key begins."""
    begins = np.ones(len(key), bool)
    begins[1:] = key[1:] != key[:-1]
    return begins


def _last(chosen: Any, begins: Any) -> Any:
    """For each row, which is the last of those ``chosen`` up to it; the first row of the key, where there is none."""
    return np.maximum.accumulate(np.where(chosen | begins, np.arange(len(chosen)), 0))


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


def partition_statistics(commits: DataFrame) -> DataFrame:
    """For each group, topic and partition: its key, how many commits there are, when the first and the last were, where the
    last of them is, and where the last record is, which may be a tombstone, and when it was appended.
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
            F.max("append_ts").alias("append_ts"),
        )
        .select("*", key())
    )


PARTIAL_STATISTICS = table_schema("""
    partial_statistics by group, topic, partition, log_partition: Of some commits, what partition_statistics says of all.
    group, topic, partition, log_partition
    commits bigint commits: commits with a time
    first_ms bigint: the earliest of these times, in ms
    last_ms bigint: the latest
    last_commit bigint: offset of the last record that is no tombstone
    last_record bigint: offset of the last record
    append_ts
""")
_MERGED_BY = {
    "commits": "sum",
    "first_ms": "min",
    "last_ms": "max",
    "last_commit": "max",
    "last_record": "max",
    "append_ts": "max",
}


def partial_statistics(commits: Any) -> Any:
    """PARTIAL_STATISTICS of a record batch of COMMITS."""
    alive, place = pc.invert(commits["is_tombstone"]), commits["log_offset"]
    nothing = pa.scalar(None, pa.int64())
    ms = pc.if_else(alive, pc.divide(commits["commit_ts"].cast(pa.int64()), 1000), nothing)
    known = ms.is_valid().cast(pa.int64())
    columns = [known, ms, ms, pc.if_else(alive, place, nothing), place, commits["append_ts"]]
    keys = [commits[name] for name in KEYS]
    return merge_statistics(pa.table([*keys, *columns], schema=arrow_schema(PARTIAL_STATISTICS.columns)))


def merge_statistics(partials: Any) -> Any:
    """An Arrow table of PARTIAL_STATISTICS, with each key once."""
    merged = partials.group_by(KEYS).aggregate(list(_MERGED_BY.items()))
    names = [*KEYS, *(f"{name}_{how}" for name, how in _MERGED_BY.items())]
    return pa.table([merged[name] for name in names], schema=arrow_schema(PARTIAL_STATISTICS.columns))


def whole_statistics(partials: DataFrame) -> DataFrame:
    """What ``partition_statistics`` gives, from PARTIAL_STATISTICS of all commits."""
    measures = [F.expr(f"{how}({name})").alias(name) for name, how in _MERGED_BY.items()]
    return partials.groupBy(*KEYS).agg(*measures).select("*", key())


def consecutive_commits(
    commits: DataFrame,
    statistics: DataFrame,
    ownership: DataFrame,
    *,
    rows: int = 0,
    recent: int = RECENT,
    stretch_bits: int = STRETCH_BITS,
) -> DataFrame:
    """The commits that something may have to be said of: after a pause, among the last ``recent``, or suspect, which are
    those that go back and those for a partition without an owner. ``rows`` is about how many commits there are.
    """
    taken = commits.where("not is_tombstone").select(
        key(), "log_partition", "log_offset", F.unix_millis("commit_ts").alias("commit_ms"), "committed_offset"
    )
    stretch = F.expr(f"shiftright(log_offset, {stretch_bits})")
    stretches = (
        taken.unionByName(_marks(ownership, statistics, stretch_bits))
        .repartition(rows // ROWS_A_TASK + 2, "log_partition", stretch)
        .select(*IN_STRETCH.names)
    )
    followed = map_in_arrow(stretches, compare_commits(max(recent, 1), stretch_bits), FOLLOWED)
    is_recent = f"lead(committed_offset, {recent}) {_OVER} is null" if recent else "false"
    return (
        followed.selectExpr(
            *IN_STRETCH.names,
            f"coalesce(previous_ms, lag(known_ms) ignore nulls {_OVER}) as previous_ms",
            f"coalesce(previous_offset, lag(committed_offset) {_OVER}) as previous_offset",
            f"coalesce(previous_place, lag(log_offset) {_OVER}) as previous_place",
            f"{is_recent} as is_recent",
            "is_unowned",
        )
        .selectExpr(
            "* except (is_unowned)",
            f"coalesce(commit_ms - previous_ms >= {SHORTEST_GAP_MS}, false) as is_after_gap",
            "is_unowned or coalesce(committed_offset < previous_offset, false) as is_suspect",
        )
        .where("is_recent or is_after_gap or is_suspect")
    )


def _marks(ownership: DataFrame, statistics: DataFrame, stretch_bits: int) -> DataFrame:
    """Where partitions lost their owner and got one again, as IN_STRETCH, and in which partition of the log; in every stretch
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
