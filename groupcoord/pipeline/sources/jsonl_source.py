"""``jsonl:FILE``: records as lines of JSON, as ``groupcoord offsets dump --raw`` or another tool writes them.

One object a line: ``{"partition": 12, "offset": 345, "timestamp": 1700000000000, "key": "AAEA…", "value": "AAQA…"}``; key and
value are Base64, null or missing is null; the timestamp is in milliseconds, and may be missing. A record of a transaction has
``"transaction": {"producerId": 7}``, and the end of one has ``"marker": "commit"`` or ``"abort"`` beside it: records of aborted
or open transactions are left out, as by a consumer with isolation.level read_committed (KIP-98).
"""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import url_of
from groupcoord.pipeline.schemas import LOG

_SCHEMA = (
    "`partition` int, `offset` bigint, `timestamp` bigint, `key` string, `value` string, "
    "`transaction` struct<producerId: bigint>, `marker` string, `broken` string"
)
_LONGEST = 1 << 20
"""The most bytes of the first line that are checked."""


def check(path: str) -> None:
    """Raise PipelineError if ``path`` is a local file that cannot be read or has another format."""
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
    """Raise PipelineError if ``first`` is a line of another JSON format that groupcoord writes."""
    try:
        record = json.loads(first)
    except ValueError:
        return  # lines that are no JSON become bad records
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


_PLACES = (
    "coalesce(`partition`, -1) as log_partition",
    "coalesce(`offset`, -1L) as log_offset",
    "timestamp_millis(if(`timestamp` >= 0, `timestamp`, null)) as append_ts",
)
_IS_PLAIN = "transaction.producerId is null and marker is null"
_IS_COMMITTED = "marker is null and end = 'commit'"
_END = """first(if(marker in ('commit', 'abort'), marker, null)) ignore nulls over (
    partition by `partition`, transaction.producerId
    order by `offset` rows between current row and unbounded following) as end"""
"""How the transaction of a record ends: by the next commit or abort marker of the same producer. Other markers are ignored."""


def read(spark: SparkSession, path: str) -> DataFrame:
    """The records as LOG. A line in another format becomes a record without a key whose value is the bytes of the line."""
    rows = _lines(spark, path)
    return (
        rows.where(_IS_PLAIN)
        .unionByName(_decided(rows).where(_IS_COMMITTED).select(*rows.columns))
        .selectExpr("*", *(f"try_to_binary({name}, 'base64') as {name}_bytes" for name in ("key", "value")))
        .selectExpr("*", "key is not null and key_bytes is null or value is not null and value_bytes is null as is_odd")
        .selectExpr(
            *_PLACES,
            "if(is_odd, null, key_bytes) as key",
            "coalesce(binary(if(is_odd, concat_ws(' ', key, value), broken)), value_bytes) as value",
        )
        .select(*LOG.names)
    )


def hidden(spark: SparkSession, path: str) -> DataFrame:
    """The PLACES of transaction markers, and of records of transactions that were aborted or have no end."""
    return _decided(_lines(spark, path)).where(f"not coalesce({_IS_COMMITTED}, false)").selectExpr(*_PLACES)


def _lines(spark: SparkSession, path: str) -> DataFrame:
    reader = spark.read.schema(_SCHEMA).option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", "broken")
    return reader.json(url_of(path))


def _decided(rows: DataFrame) -> DataFrame:
    """The markers and the records of transactions, with a column ``end``: how the transaction ended."""
    return rows.where(f"not ({_IS_PLAIN})").selectExpr("*", _END)
