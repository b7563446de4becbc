"""``jsonl:FILE``: records as lines of JSON, as ``groupcoord offsets dump --raw`` prints them, or something else.

One object a line: ``{"partition": 12, "offset": 345, "timestamp": 1700000000000, "key": "AAEA…", "value": "AAQA…"}``; key and
value are Base64, null or missing is null; the timestamp is in milliseconds, and may be missing. A record of a transaction has
``"transaction": {"producerId": 7}``, and the end of one has ``"marker": "commit"`` or ``"abort"`` beside it: what was aborted,
or has no end, is not read, as a consumer that reads committed does not (KIP-98).
"""

import json
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from groupcoord.pipeline.errors import PipelineError

_SCHEMA = (
    "`partition` int, `offset` bigint, `timestamp` bigint, `key` string, `value` string, "
    "`transaction` struct<producerId: bigint>, `marker` string, `broken` string"
)
_LONGEST = 1 << 20
"""Bytes of the first line that are looked at."""


def check(path: str) -> None:
    """Raises PipelineError if ``path`` is on this machine and cannot be read, or is not what it should be."""
    if "://" in path:
        return
    try:
        with Path(path).open("rb") as file:
            first = file.readline(_LONGEST)
    except IsADirectoryError:
        raise PipelineError(f"{path} is a directory; jsonl:FILE wants a file") from None
    except OSError as problem:
        raise PipelineError(f"cannot read {path}: {problem.strerror}") from None
    if not first:
        raise PipelineError(f"{path} is empty")
    _refuse_others(path, first)


def _refuse_others(path: str, first: bytes) -> None:
    """Raises PipelineError for other JSON lines that groupcoord writes."""
    try:
        record = json.loads(first)
    except ValueError:
        return  # lines that are none become bad records
    if not isinstance(record, dict):
        return
    if record.get("schema") == "groupcoord-trace":
        raise PipelineError(
            f"{path} is a trace, which tells what happened and does not hold the log; groupcoord offsets dump --raw writes that"
        )
    if isinstance(record.get("key"), dict):
        raise PipelineError(
            f"{path} tells keys and values in words; groupcoord offsets dump --raw writes them as they are in the log"
        )


def read(spark: SparkSession, path: str) -> DataFrame:
    """The records as LOG. A line that is no such object becomes a record without a key, its value the bytes of the line."""
    rows = _lines(spark, path)
    key, value = (F.try_to_binary(F.col(name), F.lit("base64")) for name in ("key", "value"))
    no_base64 = (F.col("key").isNotNull() & key.isNull()) | (F.col("value").isNotNull() & value.isNull())
    unreadable = F.when(no_base64, F.concat_ws(" ", "key", "value")).otherwise(F.col("broken")).cast("binary")
    committed = rows.where(_IS_PLAIN).unionByName(_decided(rows).where(_IS_COMMITTED).select(*rows.columns))
    return committed.select(
        _partition(),
        _offset(),
        F.when(~no_base64, key).alias("key"),
        F.coalesce(unreadable, value).alias("value"),
        _appended(),
    )


def hidden(spark: SparkSession, path: str) -> DataFrame:
    """Where ends of transactions are, and records of those that were aborted or have no end: PLACES."""
    left = _decided(_lines(spark, path)).where(f"not coalesce({_IS_COMMITTED}, false)")
    return left.select(_partition(), _offset(), _appended())


_IS_PLAIN = "transaction.producerId is null and marker is null"
_IS_COMMITTED = "marker is null and end = 'commit'"


def _lines(spark: SparkSession, path: str) -> DataFrame:
    reader = spark.read.schema(_SCHEMA).option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", "broken")
    return reader.json(path)


def _partition() -> Column:
    return F.coalesce("partition", F.lit(-1)).alias("log_partition")


def _offset() -> Column:
    return F.coalesce("offset", F.lit(-1)).cast("bigint").alias("log_offset")


def _appended() -> Column:
    return F.timestamp_millis(F.when(F.col("timestamp") >= 0, F.col("timestamp"))).alias("append_ts")


def _decided(rows: DataFrame) -> DataFrame:
    """The ends of transactions and their records, with their ``end``: the next one of the same producer decides."""
    later = (
        Window.partitionBy("partition", "transaction.producerId")
        .orderBy("offset")
        .rowsBetween(0, Window.unboundedFollowing)
    )
    return rows.where(f"not ({_IS_PLAIN})").select("*", F.first(_end(), ignorenulls=True).over(later).alias("end"))


def _end() -> Column:
    """The marker of that record, if it ends a transaction; there are other markers."""
    return F.when(F.col("marker").isin("commit", "abort"), F.col("marker"))
