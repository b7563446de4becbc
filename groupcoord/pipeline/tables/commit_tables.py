"""The tables about commits: commit_rates, commit_gaps, commit_pauses, zombies (commits by former owners), lag,
open_transactions.

``zombies``: the coordinator refuses commits of older generations (ILLEGAL_GENERATION). It accepts those of a current member for
a partition that another member owns, and any commit once the group is empty, which is also how an administrator sets offsets.
The log does not say who committed, so the table is a list of suspects. In a cooperative rebalance a member commits the
partitions that it gives up after the generation has begun; that is correct and not listed.

``lag``: Burrow's rules (``docs/pipeline.md`` has them; its wiki: Consumer Lag Evaluation Rules; ``evaluator/caching.go``) look
at the last commits of a partition, at the lag of each when it was made, and at the last end offsets of the partition. Here lags
are known where end offsets were observed more than once; an unknown lag is skipped, as in Burrow. If fewer than two lags are
known the status is not WARN; in Burrow, for which this only happens just after its start, it is.
"""

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import COMMIT_GAPS, COMMIT_PAUSES, COMMIT_RATES, LAG, OPEN_TRANSACTIONS, ZOMBIES
from groupcoord.pipeline.tables.consecutive_commits import KEYS, RECENT, SHORTEST_GAP_MS, TIMES_USUAL, key

_USUAL = "(last_ms - first_ms) / (commits - 1) / 1000.0D"


def commit_gaps(
    consecutive_commits: DataFrame, statistics: DataFrame, current: DataFrame, log_end: datetime | None
) -> DataFrame:
    """Pauses between two commits, and those that lasted until ``log_end``, the time of the last record of the log."""
    between = (
        consecutive_commits.where("is_after_gap")
        .selectExpr(
            "key",
            "previous_place as log_offset",
            "previous_ms as from_ms",
            "commit_ms as to_ms",
            "commit_ms as until_ms",
            "previous_offset as offset_before",
            "committed_offset as offset_after",
        )
        .join(statistics, "key")
    )
    places = current.selectExpr("`group`", "topic", "partition", "log_offset", "committed_offset as offset_before")
    until_the_end = (
        statistics.where("commits > 1")
        .join(places, ["group", "topic", "partition"])
        .select("*", F.unix_millis(F.lit(log_end).cast("timestamp")).alias("until_ms"))
        .where(f"until_ms - last_ms >= {SHORTEST_GAP_MS}")
        .selectExpr("*", "last_ms as from_ms", "cast(null as bigint) as to_ms", "cast(null as bigint) as offset_after")
    )
    pauses = [
        frame.selectExpr(
            "* except (from_ms, to_ms, until_ms)",
            "timestamp_millis(from_ms) as from_ts",
            "timestamp_millis(to_ms) as to_ts",
            "(until_ms - from_ms) / 1000.0D as gap_seconds",
            f"{_USUAL} as usual_seconds",
        ).select(*COMMIT_GAPS.names)
        for frame in (between, until_the_end)
    ]
    return pauses[0].unionByName(pauses[1]).where(f"gap_seconds >= {TIMES_USUAL} * usual_seconds")


_NEVER = "9999-12-31"
"""The end of a pause that lasts until the end of the log, for comparisons."""


def commit_pauses(commit_gaps: DataFrame) -> DataFrame:
    """Merge the ``commit_gaps`` of a group that overlap in time into one pause, over all partitions."""
    in_group = Window.partitionBy("group").orderBy("from_ts", "to_ts")
    end = F.coalesce("to_ts", F.lit(_NEVER).cast("timestamp"))
    until = F.max(end).over(in_group.rowsBetween(Window.unboundedPreceding, -1))
    from_ms = F.unix_millis("from_ts")
    until_ms = from_ms + F.round(1000 * F.col("gap_seconds")).cast("bigint")
    return (
        commit_gaps.select("*", (until.isNull() | (F.col("from_ts") > until)).cast("int").alias("is_another"))
        .select("*", F.sum("is_another").over(in_group).alias("pause"))
        .groupBy("group", "pause")
        .agg(
            F.min("from_ts").alias("from_ts"),
            F.when(F.bool_and(F.col("to_ts").isNotNull()), F.max("to_ts")).alias("to_ts"),
            ((F.max(until_ms) - F.min(from_ms)) / 1000).alias("seconds"),
            F.count_distinct("topic", "partition").alias("partitions"),
        )
        .select(*COMMIT_PAUSES.names)
    )


WINDOW = "1 minute"


def commit_rates(commits: DataFrame, groups: DataFrame, window: str = WINDOW) -> DataFrame:
    """The commits of each group in each ``window`` (an interval in Spark's syntax).

    Nearly as many rows are aggregated as there are commits, so they are grouped by as little as possible: a hash and a time.
    Groups are named at the end, from ``groups``.
    """
    by_partition = (
        commits.where("not is_tombstone and commit_ts is not null")
        .select(
            key(),
            F.window("commit_ts", window)["start"].alias("window_start"),
            F.xxhash64("group").alias("group_hash"),
            "committed_offset",
        )
        .groupBy("key", "window_start")
        .agg(
            F.max("group_hash").alias("group_hash"),
            F.count("*").alias("commits"),
            F.try_subtract(F.max("committed_offset"), F.min("committed_offset")).alias("advanced"),
        )
    )
    names = groups.select("group").distinct().select("group", F.xxhash64("group").alias("group_hash"))
    return (
        by_partition.groupBy("group_hash", "window_start")
        .agg(
            F.sum("commits").alias("commits"), F.count("*").alias("partitions"), F.try_sum("advanced").alias("advanced")
        )
        .join(names, "group_hash")
        .withColumn("window_end", F.expr(f"window_start + interval '{window}'"))
        .select(*COMMIT_RATES.names)
    )


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
    """The suspects of ``consecutive_commits`` for which there is a reason, with the owner of the partition at that time."""
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
    """The suspects whose partition had no owner, or whose offset is below one that was committed since the partition moved.

    ``mark`` is twice the log offset of the last change of owner, plus one if the partition has had no owner since.
    """
    suspects = consecutive_commits.where("is_suspect").select(
        "key", "log_offset", "commit_ms", "committed_offset", "previous_offset", "previous_place"
    )
    changes = ownership.select(
        key(), "log_offset", (F.col("log_offset") * 2 + F.col("member").isNull().cast("bigint")).alias("change")
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
    """Add to ``odd`` the generation at that time: its number, the log offset of its record, and whether it had no members."""
    described = generations.select(
        "group",
        "log_offset",
        F.struct(
            "kind",
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


PARTITION = ["topic", "partition"]
_REWOUND_AT = "array_position(transform(recent, (r, i) -> i > 0 and r.offset < recent[i - 1].offset), true)"
"""The position, from 1, of the first recent commit that is below the commit before it; 0: none."""
_STATUS = """case
    when lag is null then null
    when lag = 0 then 'OK'
    when now_ms - recent[size(recent) - 1].ms > recent[size(recent) - 1].ms - recent[0].ms
         and not exists(last_ends, e -> e <= committed_offset) then 'STOP'
    when rewound_at > 0 and not exists(slice(recent, int(rewound_at), size(recent)),
                                       r -> r.offset >= recent[int(rewound_at) - 2].offset) then 'REWIND'
    when exists(lags, l -> l = 0) then 'OK'
    when array_min(offsets) = array_max(offsets) then 'STALL'
    when size(lags) >= 2 and lags = sort_array(lags) then 'WARN'
    else 'OK'
    end"""


_FETCHED = "get(filter(unread, u -> u.committed_offset = committed_offset), 0)"
"""The entry of ``unread`` about the first record that the group has not read, as fetched from the cluster."""
_BEFORE = "try_element_at(filter(observed, o -> o.end_offset <= committed_offset), -1)"
"""The last observation of the end offset before that record was appended."""
_AFTER = "get(filter(observed, o -> o.ms > before.ms), 0)"
"""The first observation after it: its end offset is above the committed offset."""
_APPENDED_MS = """coalesce(unix_millis(fetched.at), before.ms + (after.ms - before.ms)
    * (double(committed_offset) - before.end_offset) / (double(after.end_offset) - before.end_offset))"""
_LAG_SECONDS = """case
    when lag = 0 or (lag > 0 and fetched is not null and fetched.at is null) then 0D
    when lag > 0 and appended_ms is not null then greatest(0D, (now_ms - appended_ms) / 1000D)
    end"""


_RECORDS_LOST = "if(log_start_offset is not null, greatest(0L, try_subtract(log_start_offset, committed_offset)), null)"

_WAITS = f"""committed_offset = stable_offset
    or (committed_offset < stable_offset and {_FETCHED}.at >= since)"""
"""Has the group read up to the open transaction? Not all clients commit the position behind the marker of the transaction
before it: then the first unread record is that with which the open one began."""


def open_transactions(held_up: DataFrame, current: DataFrame) -> DataFrame:
    """OPEN_TRANSACTIONS from ``held_up``, rows of END_OFFSETS with an open transaction, and the groups with ``current``
    offsets there."""
    there = held_up.join(current.select("group", *PARTITION, "committed_offset"), PARTITION, "left")
    return (
        there.select("*", "open_transaction.*")
        .groupBy(*PARTITION, "end_offset", "stable_offset", "producer_id", "transactional_id", "since")
        .agg(
            F.expr("sort_array(collect_set(`group`)) as groups"),
            F.expr(f"sort_array(collect_set(`group`) filter (where {_WAITS})) as waiting"),
        )
        .select(*OPEN_TRANSACTIONS.names)
    )


def lag(
    current: DataFrame,
    consecutive_commits: DataFrame,
    statistics: DataFrame,
    ends: DataFrame | None,
    now: datetime | None,
) -> DataFrame:
    """The lag of the ``current`` offsets behind ``ends`` (END_OFFSETS; None: unknown), and the status as of ``now``.

    ``current`` has ``expire_ts`` from ``with_expiry``.
    """
    offsets = current.select(
        "group", *PARTITION, "committed_offset", F.col("commit_ts").alias("last_commit_ts"), "expire_ts"
    )
    if ends is None:
        unknown = [column for column in LAG.columns if column.name not in offsets.columns]
        return offsets.select("*", *(F.lit(None).cast(column.type).alias(column.name) for column in unknown)).select(
            *LAG.names
        )
    last = ends.groupBy(*PARTITION).agg(
        *(
            F.max_by(name, F.coalesce(F.unix_millis("at"), F.lit(1 << 62))).alias(name)
            for name in ("end_offset", "log_start_offset", "unread")
        ),
        F.expr(
            "transform(slice(sort_array(collect_list(struct(coalesce(unix_millis(at), shiftleft(1L, 62)) as ms, end_offset)), "
            f"false), 1, {RECENT}), e -> e.end_offset)"
        ).alias("last_ends"),
        F.expr(
            "sort_array(collect_list(struct(unix_millis(at) as ms, end_offset)) filter (where at is not null))"
        ).alias("observed"),
    )
    return (
        offsets.join(last, PARTITION, "left")
        .join(_recent(consecutive_commits, statistics, ends), ["group", *PARTITION], "left")
        .select(
            "*",
            F.greatest(F.lit(0), F.try_subtract("end_offset", "committed_offset")).alias("lag_if_known"),
            F.unix_millis(F.lit(now).cast("timestamp")).alias("now_ms"),
        )
        .select("*", F.when(F.col("end_offset").isNotNull(), F.col("lag_if_known")).alias("lag"))
        .selectExpr(
            "*",
            f"{_REWOUND_AT} as rewound_at",
            "transform(recent, r -> r.offset) as offsets",
            "transform(filter(recent, r -> r.lag is not null), r -> r.lag) as lags",
            f"{_FETCHED} as fetched",
            f"{_BEFORE} as before",
        )
        .selectExpr("*", f"{_AFTER} as after")
        .selectExpr("*", f"{_APPENDED_MS} as appended_ms")
        .selectExpr("*", f"{_STATUS} as status", f"{_LAG_SECONDS} as lag_seconds", f"{_RECORDS_LOST} as records_lost")
        .select(*LAG.names)
    )


def _recent(consecutive_commits: DataFrame, statistics: DataFrame, ends: DataFrame) -> DataFrame:
    """The last commits of each group, topic and partition, in order, each with its lag when it was made, if known."""
    commits = consecutive_commits.where("is_recent").join(statistics.select("key", "group", *PARTITION), "key")
    observed = ends.where("at is not null").select(*PARTITION, "end_offset", F.unix_millis("at").alias("observed_ms"))
    key = ["group", *PARTITION, "log_offset"]
    then = (
        commits.select(*key, "commit_ms")
        .join(observed, PARTITION)
        .where("observed_ms <= commit_ms")
        .groupBy(*key)
        .agg(F.max_by("end_offset", "observed_ms").alias("end_then"))
    )
    return (
        commits.join(then, key, "left")
        .groupBy("group", *PARTITION)
        .agg(
            F.sort_array(
                F.collect_list(
                    F.struct(
                        "log_offset",
                        F.col("commit_ms").alias("ms"),
                        F.col("committed_offset").alias("offset"),
                        F.expr(
                            "if(end_then is null, null, greatest(0, try_subtract(end_then, committed_offset)))"
                        ).alias("lag"),
                    )
                )
            ).alias("recent")
        )
    )
