"""From a source to the tables of records: each record is read once, decoded, and written to the table it belongs to.

There are two ways. Where all tasks run on this machine and write to its disk, they write the tables themselves. Anywhere else
Spark writes: first all commits at once, as they will be read, then what is left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupcoord.pipeline.decode.files import CODECS, WRITTEN, writing, written
from groupcoord.pipeline.decode.split import OF_RECORDS, SPLIT, split
from groupcoord.pipeline.output import Output
from groupcoord.pipeline.schemas import COMMITS, Table
from groupcoord.pipeline.sources.plan import Plan
from groupcoord.pipeline.tables.decoded import decode_rest, table_of_rest, undecoded

CODEC = "spark.sql.parquet.compression.codec"
_BY_TASKS = "records"
_SPLIT, _COMMITS = "split", "split/is_commit=true"
_REST = "rest"


@dataclass(frozen=True)
class Records:
    """What was read and decoded: ``read`` records, of which ``later`` ones were appended after the moment that was asked for
    and are in no table; ``rows`` says how many each table has. ``table`` puts one in its place and gives what can be read of
    it; it must have rows."""

    read: int
    later: int
    rows: dict[str, int]
    table: Callable[[Table], DataFrame]


def read_records(spark: SparkSession, plan: Plan, output: Output, until: datetime | None) -> Records:
    """Read and decode all records of ``plan`` that were appended ``until`` then; None: all."""
    folder, codec = output.staged_here(_BY_TASKS), CODECS.get(spark.conf.get(CODEC, ""))
    if folder is not None and codec is not None:
        return _by_tasks(spark, plan, output, until, folder, codec)
    return _by_spark(spark, plan, output, until)


def _by_tasks(
    spark: SparkSession, plan: Plan, output: Output, until: datetime | None, folder: Path, codec: str
) -> Records:
    write = writing(plan.opened, folder, codec, until)
    found = written(plan.read(spark).mapInArrow(write, WRITTEN.ddl), folder)
    return Records(found.read, found.later, found.rows, lambda table: output.adopt(f"{_BY_TASKS}/{table.name}", table))


def _by_spark(spark: SparkSession, plan: Plan, output: Output, until: datetime | None) -> Records:
    counted = Observation()
    is_later = F.expr("false") if until is None else F.ifnull(F.col("append_ts") > F.lit(until), F.expr("false"))
    opened = plan.opened
    seen = (
        plan.read(spark)
        .mapInArrow(lambda batches: split(opened(batches)), SPLIT.ddl)
        .observe(counted, F.count(F.lit(1)).alias("read"), F.count_if(is_later).alias("later"))
    )
    output.stage(seen if until is None else seen.where(~is_later), _SPLIT, partition_by="is_commit")
    left = undecoded(output.staged(_SPLIT, StructType.fromDDL(SPLIT.ddl)))
    rest = output.stage(decode_rest(left), _REST, partition_by="table")
    commits = output.staged_rows(_COMMITS)
    rare = {table.name: output.staged_rows(f"{_REST}/table={table.name}") for table in OF_RECORDS.values()}

    def table_of(table: Table) -> DataFrame:
        if table != COMMITS or not commits:
            return output.write(table_of_rest(rest, table), table)
        adopted = output.adopt(_COMMITS, COMMITS)
        return output.append(table_of_rest(rest, COMMITS), COMMITS) if rare[COMMITS.name] else adopted

    rows = rare | {COMMITS.name: commits + rare[COMMITS.name]}
    return Records(int(counted.get["read"]), int(counted.get["later"]), rows, table_of)
