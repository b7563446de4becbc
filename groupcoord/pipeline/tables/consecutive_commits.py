"""Compares each commit with the previous one of its key, to find gaps, suspects (offsets that went back, commits without an
owner) and the last ten commits of each partition.

Sorting all commits would be the most expensive step of a run. So each partition of the log is cut into stretches of 2¹⁸
offsets, and numpy compares the commits within each stretch. Only the first and last commits of a stretch, and those that
stand out, go on to a sort by Spark. The key of a commit (group, topic, partition, partition of the log) is a 64-bit hash, so
that only numbers are compared; two keys collide with a probability of 1 in 2⁶⁴. No task holds more than some stretches,
however long the log is.
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
from groupcoord.pipeline.spark_session import QUICK, map_in_arrow

SHORTEST_GAP_MS = 60_000
TIMES_USUAL = 10
"""A pause is at least SHORTEST_GAP_MS long, and this many times as long as the mean time between two commits of its
partition."""
FALLEN, TAKEN = 1, 0
"""Marks, rows that say that from here on the partition has no owner (FALLEN), or has one again (TAKEN)."""

IN_STRETCH = table_schema("""
    in_stretch by key, log_offset: The input of compare_commits: commits, and marks among them.
    key bigint: hash of group, topic, partition, and the partition of the log
    log_offset bigint: offset of the commit, or from which on the mark holds
    commit_ms bigint: time of the commit, in ms; of a mark: FALLEN or TAKEN
    committed_offset bigint: what was committed; null: a mark
""")
FOLLOWED = table_schema(
    """
    followed by key, log_offset: Commits to be compared further: the first and the last ones of each key in the stretch,
        those after a pause, those below the commit before, and those for a partition without an owner.
    previous_place bigint: log offset of the commit before; null: not in this stretch
    previous_offset bigint: offset that it committed
    previous_ms bigint ms: the last commit time before; null: none is known in this stretch
    known_ms bigint: the last commit time up to and including this commit
    is_unowned boolean: had the partition no owner then?
    """,
    IN_STRETCH.columns,
)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def compare_commits(recent: int, stretch_bits: int, slow: Any = None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function from record batches of IN_STRETCH, with complete stretches of 2 to the power of ``stretch_bits``
    offsets, to batches of FOLLOWED.

    ``recent`` (at least one) is how many of the last commits of each key are always returned. ``slow`` is an Arrow table
    with each ``key`` for which a pause is longer than SHORTEST_GAP_MS, in order, and how long it is: ``pause_ms``.
    """
    keys, pauses = (np.array(slow[name] if slow else [], np.int64) for name in ("key", "pause_ms"))
    known, shortest = np.append(0, keys), np.append(SHORTEST_GAP_MS, pauses)  # the first place is of all other keys

    def shortest_pause(key: Any) -> Any:
        place = np.searchsorted(keys, key, "right")
        return shortest[np.where(known[place] == key, place, 0)]

    def follow(batches: Iterator[Any]) -> Iterator[Any]:
        if found := list(batches):
            yield _follow(pa.Table.from_batches(found), recent, stretch_bits, shortest_pause)

    return follow


def _follow(rows: Any, recent: int, stretch_bits: int, shortest_pause: Callable[[Any], Any]) -> Any:
    numbers = {name: rows.column(name).fill_null(0).to_numpy() for name in IN_STRETCH.names}
    marked = rows.column("committed_offset").is_null().to_numpy()
    timed = rows.column("commit_ms").is_valid().to_numpy()
    del rows
    key = _in_stretch(numbers["key"], numbers["log_offset"] >> stretch_bits)
    if marked.any():
        # At the same offset, the mark at the begin of a stretch comes before a change, and that before a commit.
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
    commits = {name: numbers[name][order] for name in IN_STRETCH.names}
    return _chosen(commits, timed[order], unowned, key, recent, shortest_pause(commits["key"]))


def _chosen(commits: dict[str, Any], timed: Any, unowned: Any, key: Any, recent: int, pause_ms: Any) -> Any:
    """The rows of FOLLOWED from ``commits``, which are in order."""
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
        | (timed & was_known & (ms - before_ms >= pause_ms))
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
    """A hash of ``key`` and ``stretch``."""
    key = key.astype(np.uint64)
    return (key ^ (key >> np.uint64(29))) * _MIX + stretch.astype(np.uint64)


def _begins(key: Any) -> Any:
    """A mask of the first row of each key."""
    begins = np.ones(len(key), bool)
    begins[1:] = key[1:] != key[:-1]
    return begins


def _last(chosen: Any, begins: Any) -> Any:
    """For each row, the index of the last row up to it that is ``chosen``; the first row of the key if there is none."""
    return np.maximum.accumulate(np.where(chosen | begins, np.arange(len(chosen)), 0))


RECENT = 10
"""The number of commits that Burrow evaluates (its setting ``intervals``)."""
KEYS = ["group", "topic", "partition", "log_partition"]
MOST_SLOW = 200_000
"""The most keys whose pauses are looked up: they come to the driver and from there to all tasks."""
STRETCH_BITS = 18
"""A stretch has 2¹⁸ offsets, so at most as many rows."""
ROWS_A_TASK = 500_000
_OVER = "over (partition by key order by log_offset)"


def key() -> Column:
    """The hash of the columns KEYS, as the column ``key``."""
    return F.xxhash64(*KEYS).alias("key")


def partition_statistics(commits: DataFrame) -> DataFrame:
    """For each of KEYS: its hash, the number of commits, the times of the first and the last one, the log offset of the last
    one, and the log offset and time of the last record, which may be a tombstone.
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
    partial_statistics by group, topic, partition, log_partition: partition_statistics of some of the commits, to be merged.
    group, topic, partition, log_partition
    commits bigint commits: commits with a time
    first_ms bigint: the earliest of these times, in ms
    last_ms bigint: the latest
    last_commit bigint: offset of the last record that is not a tombstone
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
    """Merge an Arrow table of PARTIAL_STATISTICS to one row for each of KEYS."""
    merged = partials.group_by(KEYS).aggregate(list(_MERGED_BY.items()))
    names = [*KEYS, *(f"{name}_{how}" for name, how in _MERGED_BY.items())]
    return pa.table([merged[name] for name in names], schema=arrow_schema(PARTIAL_STATISTICS.columns))


def whole_statistics(partials: DataFrame) -> DataFrame:
    """The result of ``partition_statistics``, from the PARTIAL_STATISTICS of all commits."""
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
    """The commits that later steps need: those after a gap of SHORTEST_GAP_MS (of many ``rows``, the approximate number of all
    commits, only those after a pause), the last ``recent`` of each key, and suspects (below the commit before, or for a
    partition without an owner).
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
    compare = compare_commits(max(recent, 1), stretch_bits, _slow(statistics) if rows >= QUICK else None)
    followed = map_in_arrow(stretches, compare, FOLLOWED)
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


def _slow(statistics: DataFrame) -> Any:
    """The keys for which a pause is longer than SHORTEST_GAP_MS, with its length in ms: without them, nearly all commits of a
    partition that commits once a minute would go on to the sort. At most MOST_SLOW."""
    pause = f"bigint(floor({TIMES_USUAL} * (last_ms - first_ms) / (commits - 1))) as pause_ms"
    slow = statistics.where("commits > 1").selectExpr("key", pause).where(f"pause_ms > {SHORTEST_GAP_MS}")
    return slow.limit(MOST_SLOW).toArrow().sort_by("key")


def _marks(ownership: DataFrame, statistics: DataFrame, stretch_bits: int) -> DataFrame:
    """Marks where partitions lost their owner and got one again: IN_STRETCH with ``log_partition``. FALLEN is repeated at the
    begin of every stretch in between, because stretches are compared separately."""
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
