"""How far groups are behind, and what Burrow would say of it.

Burrow's rules (its wiki: Consumer Lag Evaluation Rules; its ``evaluator/caching.go``) look at the last commits of a partition,
at the lag that each had, and at the last ends of the partition. Here lags are known where the ends of topics were observed more
than once; a lag that is not known is passed over, as in Burrow. Lags of which fewer than two are known do not make WARN; in
Burrow, which then has only just been started, they do.
"""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.schemas import LAG
from groupcoord.pipeline.tables.consecutive_commits import RECENT

PARTITION = ["topic", "partition"]
_REWOUND_AT = "array_position(transform(recent, (r, i) -> i > 0 and r.offset < recent[i - 1].offset), true)"
"""Which of the recent commits is the first that went back, counted from 1; 0: none."""
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


def lag(
    current: DataFrame,
    consecutive_commits: DataFrame,
    statistics: DataFrame,
    ends: DataFrame | None,
    now: datetime | None,
) -> DataFrame:
    """The lag of ``current`` offsets behind ``ends`` (END_OFFSETS; None: no end is known), and the status as of ``now``."""
    offsets = current.select("group", *PARTITION, "committed_offset", F.col("commit_ts").alias("last_commit_ts"))
    if ends is None:
        unknown = {"end_offset": "bigint", "lag": "bigint", "status": "string"}
        return offsets.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in unknown.items())).select(
            *LAG.names
        )
    last = ends.groupBy(*PARTITION).agg(
        F.max_by("end_offset", F.coalesce(F.unix_millis("at"), F.lit(1 << 62))).alias("end_offset"),
        F.expr(
            "transform(slice(sort_array(collect_list(struct(coalesce(unix_millis(at), shiftleft(1L, 62)) as ms, end_offset)), "
            f"false), 1, {RECENT}), e -> e.end_offset)"
        ).alias("last_ends"),
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
        )
        .select("*", F.expr(_STATUS).alias("status"))
        .select(*LAG.names)
    )


def _recent(consecutive_commits: DataFrame, statistics: DataFrame, ends: DataFrame) -> DataFrame:
    """For each partition of each group its last commits, in order, each with the lag that it had, if that is known."""
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
