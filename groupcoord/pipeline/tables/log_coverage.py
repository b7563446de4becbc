"""The table log_partitions: how many records each partition of the log has, how many are missing, and from where on none is.

Records are counted in buckets of a thousand offsets while they are read; so the counts fit into the memory of this process.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupcoord.pipeline.arrow_columns import TIMESTAMP, arrow_schema
from groupcoord.pipeline.schemas import LOG_PARTITIONS, table_schema
from groupcoord.pipeline.spark_session import map_in_arrow

BUCKET = 1000
"""The number of offsets of a bucket. Counting by buckets needs no sort; only buckets with the last hole are examined in
detail."""
BUCKETS = table_schema(f"""
    buckets by log_partition, bucket: How much is there of each {BUCKET:,} offsets.
    log_partition
    bucket bigint: offsets divided by {BUCKET:,}
    low bigint: lowest offset that is there
    high bigint: highest one
    count bigint offsets: how many are there
    hidden bigint offsets: how many of them are markers, or hidden by a transaction
    first_ts timestamp: earliest append
    last_ts timestamp: latest append
    low_ts timestamp: when the record at the lowest offset was appended
""")
_MERGED_BY = {"low": "min", "high": "max", "count": "sum", "hidden": "sum", "first_ts": "min", "last_ts": "max"}


def in_buckets(places: Any, *, is_hidden: bool) -> Any:
    """Count records, given their ``log_partition``, ``log_offset`` and ``append_ts``, as BUCKETS. ``is_hidden``: they are
    markers, or hidden by their transactions."""
    offset, when = places["log_offset"], places["append_ts"].cast(TIMESTAMP)
    one = pa.repeat(pa.scalar(1, pa.int64()), len(places))
    hidden = pa.repeat(pa.scalar(int(is_hidden), pa.int64()), len(places))
    columns = [places["log_partition"], pc.divide(offset, BUCKET), offset, offset, one, hidden, when, when, when]
    return merge_buckets(pa.table(columns, schema=arrow_schema(BUCKETS.columns)))


def buckets_of(places: DataFrame, *, is_hidden: bool) -> Any:
    """Like ``in_buckets``, but counted in Spark's tasks; the result is still to be merged."""

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in filter(len, batches):
            yield from in_buckets(batch, is_hidden=is_hidden).to_batches()

    return map_in_arrow(places, count, BUCKETS).toArrow().cast(arrow_schema(BUCKETS.columns))


def merge_buckets(buckets: Any) -> Any:
    """Merge BUCKETS to one row for each bucket, in order."""
    partition, low = buckets["log_partition"].to_numpy(), buckets["low"].to_numpy()
    step = np.diff(partition)
    if ((step < 0) | ((step == 0) & (np.diff(low) < 0))).any():
        buckets = buckets.sort_by([("log_partition", "ascending"), ("low", "ascending")])
    first = ("low_ts", "first", pc.ScalarAggregateOptions(skip_nulls=False))
    merged = buckets.group_by(["log_partition", "bucket"], use_threads=False).aggregate([*_MERGED_BY.items(), first])
    names = [f"{name}_{_MERGED_BY.get(name, 'first')}" for name in BUCKETS.names[2:]]
    columns = [merged[name] for name in (*BUCKETS.names[:2], *names)]
    # Arrow's group_by returns groups in any order.
    in_order = pa.table(columns, schema=arrow_schema(BUCKETS.columns)).sort_by(
        [("log_partition", "ascending"), ("bucket", "ascending")]
    )
    return in_order.combine_chunks()


def log_partitions(buckets: Any, places: Callable[[Any], Any]) -> Any:
    """LOG_PARTITIONS from merged ``buckets``. ``places`` returns the places of all records in the given buckets
    (``log_partition``, ``bucket``); it is only called for buckets that contain the last hole of a partition."""
    partition, low, high = (buckets[name].to_numpy() for name in ("log_partition", "low", "high"))
    count, hidden = buckets["count"].to_numpy(), buckets["hidden"].to_numpy()
    begins = np.append(True, partition[1:] != partition[:-1])
    starts = np.nonzero(begins)[0]
    is_holed = high - low + 1 > count
    is_behind_hole = begins | (low > np.roll(high, 1) + 1) | is_holed
    last = np.maximum.reduceat(np.where(is_behind_hole, np.arange(len(low)), -1), starts)
    whole_from, when = low[last], buckets["low_ts"].take(pa.array(last)).to_pylist()
    if is_holed[last].any():
        behind = _behind(places(buckets.select(["log_partition", "bucket"]).take(pa.array(last[is_holed[last]]))))
        for place in np.nonzero(is_holed[last])[0].tolist():
            whole_from[place], when[place] = behind[int(partition[last[place]])]
    first, final = low[starts], np.maximum.reduceat(high, starts)
    seen, hidden = np.add.reduceat(count, starts), np.add.reduceat(hidden, starts)
    times = (
        buckets.group_by("log_partition").aggregate([("first_ts", "min"), ("last_ts", "max")]).sort_by("log_partition")
    )
    columns = {
        "log_partition": partition[starts],
        "first_offset": first,
        "last_offset": final,
        "records": seen - hidden,
        "hidden": hidden,
        "missing": final - first + 1 - seen,
        "first_ts": times["first_ts_min"],
        "last_ts": times["last_ts_max"],
        "whole_from_offset": whole_from,
        "whole_from_ts": pa.array(when, TIMESTAMP),
    }
    return pa.table([columns[name] for name in LOG_PARTITIONS.names], schema=arrow_schema(LOG_PARTITIONS.columns))


def places_in(places: DataFrame, buckets: DataFrame) -> DataFrame:
    """The ``places`` that are in one of ``buckets`` (``log_partition``, ``bucket``)."""
    with_bucket = places.select("*", F.expr(f"log_offset div {BUCKET}").alias("bucket"))
    return with_bucket.join(F.broadcast(buckets), ["log_partition", "bucket"], "left_semi")


def _behind(places: Any) -> dict[int, tuple[int, Any]]:
    """For each partition of the log in ``places``: the first offset after the last hole, and its time."""
    places = places.sort_by([("log_partition", "ascending"), ("log_offset", "ascending")])
    partition, offset = places["log_partition"].to_numpy(), places["log_offset"].to_numpy()
    is_behind = (np.diff(partition, prepend=-2) != 0) | (np.diff(offset, prepend=0) > 1)
    at = np.nonzero(is_behind)[0]
    times = places["append_ts"].take(pa.array(at)).to_pylist()
    return {int(one): (int(where), when) for one, where, when in zip(partition[at], offset[at], times, strict=True)}
