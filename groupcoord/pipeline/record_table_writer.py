"""From a source to the tables of records: each record is read once, decoded, and written to the table it belongs to.

If all tasks run on this machine and write to its disk, they write the tables themselves with PyArrow: that is a quarter of the
work of handing every row to Java. While they are at it they count, which saves two passes over all commits. Many tasks write at
once and some may be retried, so a file counts only if the task that wrote it has ended and returned its name; other files are
removed. Anywhere else Spark writes: first all commits, then the rest.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupcoord.pipeline import columnar_decoder
from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.run_output import CODEC, CODECS, RunOutput
from groupcoord.pipeline.schemas import COMMITS, TableSchema, table_schema
from groupcoord.pipeline.sources.factory import SourcePlan
from groupcoord.pipeline.tables.consecutive_commits import PARTIAL_STATISTICS, merge_statistics, partial_statistics
from groupcoord.pipeline.tables.log_coverage import BUCKETS, in_buckets, merge_buckets

HIDDEN = TableSchema(
    "hidden",
    "Where markers are, and records of transactions that were aborted or are open. Not kept.",
    ("log_partition", "log_offset"),
    columnar_decoder.WHERE,
)
_WRITTEN_BY_TASKS = {
    **columnar_decoder.OF_RECORDS,
    **{table.name: table for table in (HIDDEN, BUCKETS, PARTIAL_STATISTICS)},
}
MERGE_AT = 200_000
"""When partial sums have so many rows, they are merged."""
AT_ONCE_BYTES = 32 * 1024 * 1024
"""The size in memory of one row group of a file."""

WRITTEN = table_schema("""
    written by file: What a task reports when it ends: its files, and in one more row how many records it read.
    file string: path in the folder; null: the row is about all that was read
    rows bigint records: rows in that file, or records that were read
    later bigint records: of the records that were read, those appended after what is asked for
""")


def table_writer(
    open_batches: Callable[[Iterator[Any]], Iterator[Any]], folder: Path, codec: str, until: datetime | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that writes what ``open_batches`` gives, record batches of LOG, into ``folder``, and gives WRITTEN.

    In ``folder`` is a folder for each table of records that has any, and for the sums BUCKETS and PARTIAL_STATISTICS. What was
    appended after ``until`` is counted and not written.
    """
    schema = arrow_schema(WRITTEN.columns)

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        read = later = 0
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(_File(folder, table, codec)) for name, table in _WRITTEN_BY_TASKS.items()
            }
            buckets, statistics = _Sums(merge_buckets), _Sums(merge_statistics)
            for batch in filter(len, open_batches(batches)):
                asked = batch if until is None else _until(batch, until)
                if columnar_decoder.is_of_places(batch):
                    files[HIDDEN.name].add(asked)
                    buckets.add(in_buckets(asked, is_hidden=True))
                    continue
                read += len(batch)
                later += len(batch) - len(asked)
                buckets.add(in_buckets(asked, is_hidden=False))
                commits, others = columnar_decoder.split_batch(asked)
                files[COMMITS.name].add(commits)
                statistics.add(partial_statistics(commits))
                for table, rows in columnar_decoder.decode_records(others):
                    files[table.name].add(rows)
                    if table == COMMITS:
                        statistics.add(partial_statistics(rows))
            for name, sums in ((BUCKETS.name, buckets), (PARTIAL_STATISTICS.name, statistics)):
                for batch in sums.batches():
                    files[name].add(batch)
        reported = [(file.name, file.rows, None) for file in files.values() if file.rows]
        columns = zip(*reported, (None, read, later), strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )

    return write


class _Sums:
    """Partial sums, which ``merge`` makes one of."""

    def __init__(self, merge: Callable[[Any], Any]) -> None:
        self._merge = merge
        self._found: list[Any] = []
        self._rows = 0

    def add(self, found: Any) -> None:
        """Some more; they do not pile up."""
        self._found.append(found)
        self._rows += len(found)
        if self._rows > MERGE_AT:
            self._found = [self._merge(pa.concat_tables(self._found))]
            self._rows = len(self._found[0])

    def batches(self) -> list[Any]:
        """All together."""
        batches: list[Any] = self._merge(pa.concat_tables(self._found)).to_batches() if self._found else []
        return batches


class WrittenRecords(NamedTuple):
    """How many records were read, how many of these were later, and how many rows each table has."""

    read: int
    later: int
    rows: dict[str, int]


def collect_written(run: Callable[[], Sequence[Any]], folder: Path) -> WrittenRecords:
    """Let ``run`` write into ``folder``, and report rows of WRITTEN."""
    folder.mkdir(parents=True)
    reported = run()
    names = {row["file"] for row in reported}
    for path in folder.glob("*/*.parquet"):
        if path.relative_to(folder).as_posix() not in names:
            path.unlink()
    totals = [row for row in reported if row["file"] is None]
    rows = dict.fromkeys(_WRITTEN_BY_TASKS, 0)
    for row in reported:
        if row["file"] is not None:
            rows[Path(row["file"]).parent.name] += row["rows"]
    return WrittenRecords(sum(row["rows"] for row in totals), sum(row["later"] for row in totals), rows)


def _until(batch: Any, until: datetime) -> Any:
    """Without the records of ``batch`` that were appended after ``until``; those without a time are not later."""
    appended = batch.column("append_ts")
    return batch.filter(pc.or_kleene(pc.less_equal(appended, pa.scalar(until, appended.type)), appended.is_null()))


class _File:
    """The Parquet file of one task for ``table``, which there is from the first row on: a context manager."""

    def __init__(self, folder: Path, table: TableSchema, codec: str) -> None:
        self.name = f"{table.name}/part-{uuid.uuid4()}.parquet"
        self.rows = 0
        self._path = folder / self.name
        self._schema = arrow_schema(table.columns)
        self._codec = codec
        self._waiting: list[Any] = []
        self._waiting_bytes = 0
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._told():
            if self._waiting:
                self._write()
            if self._writer is not None:
                self._writer.close()

    def add(self, batch: Any) -> None:
        """Rows of the table."""
        if not len(batch):
            return
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self.rows += len(batch)
        if self._waiting_bytes >= AT_ONCE_BYTES:
            with self._told():
                self._write()

    def _write(self) -> None:
        if self._writer is None:
            self._path.parent.mkdir(exist_ok=True)
            self._writer = pq.ParquetWriter(self._path, self._schema, compression=self._codec)
        self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._waiting_bytes = [], 0

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an error of the disk into a PipelineError of one line."""
        try:
            yield
        except OSError as problem:
            raise PipelineError(f"cannot write {self._path}: {problem.strerror or problem}") from None


_BY_TASKS = "records"
_SPLIT, _COMMITS = "split", "split/is_commit=true"
_REST = "rest"


@dataclass(frozen=True)
class DecodedLog:
    """What was read and decoded: ``read`` records, of which ``later`` ones were appended after the moment that was asked for
    and are in no table; ``rows`` says how many each table has. ``table`` puts one in its place and gives what can be read of
    it; it must have rows. ``hidden`` (HIDDEN) is where transactions hide something; None: nowhere. ``buckets`` are BUCKETS
    of all of that, and ``statistics`` is what PARTIAL_STATISTICS are staged as; None: nobody has counted."""

    read: int
    later: int
    rows: dict[str, int]
    table: Callable[[TableSchema], DataFrame]
    hidden: DataFrame | None
    buckets: Any = None
    statistics: str | None = None


def read_records(spark: SparkSession, plan: SourcePlan, output: RunOutput, until: datetime | None) -> DecodedLog:
    """Read and decode all records of ``plan`` that were appended ``until`` then; None: all."""
    folder, codec = output.local_stage(_BY_TASKS), CODECS.get(spark.conf.get(CODEC, ""))
    if folder is not None and codec is not None:
        return _by_tasks(spark, plan, output, until, folder, codec)
    return _by_spark(spark, plan, output, until)


def _by_tasks(
    spark: SparkSession, plan: SourcePlan, output: RunOutput, until: datetime | None, folder: Path, codec: str
) -> DecodedLog:
    write = table_writer(plan.open_batches, folder, codec, until)

    def here() -> list[dict[str, Any]]:
        numbers = pa.record_batch({"id": pa.array(range(plan.tasks or 0))})
        rows: list[dict[str, Any]] = pa.Table.from_batches(write(iter([numbers]))).to_pylist()
        return rows

    def in_tasks() -> list[Row]:
        return plan.read(spark).mapInArrow(write, WRITTEN.ddl).collect()

    found = collect_written(here if plan.is_read_here else in_tasks, folder)
    is_any_hidden = found.rows[HIDDEN.name] > 0
    statistics = f"{_BY_TASKS}/{PARTIAL_STATISTICS.name}" if found.rows[PARTIAL_STATISTICS.name] else None
    if statistics is not None:
        output.staged(statistics, StructType.fromDDL(PARTIAL_STATISTICS.ddl))
    return DecodedLog(
        found.read,
        found.later,
        found.rows,
        lambda table: output.adopt(f"{_BY_TASKS}/{table.name}", table),
        output.staged(f"{_BY_TASKS}/{HIDDEN.name}", StructType.fromDDL(HIDDEN.ddl)) if is_any_hidden else None,
        merge_buckets(pq.read_table(folder / BUCKETS.name)) if found.rows[BUCKETS.name] else None,
        statistics,
    )


def _by_spark(spark: SparkSession, plan: SourcePlan, output: RunOutput, until: datetime | None) -> DecodedLog:
    counted = Observation()
    is_later = F.expr("false") if until is None else F.ifnull(F.col("append_ts") > F.lit(until), F.expr("false"))
    open_batches = plan.open_batches
    seen = (
        plan.read(spark)
        .mapInArrow(lambda batches: columnar_decoder.split_batches(open_batches(batches)), columnar_decoder.SPLIT.ddl)
        .observe(
            counted,
            F.count("is_commit").alias("read"),
            F.count_if(is_later & F.col("is_commit").isNotNull()).alias("later"),
        )
    )
    output.stage(seen if until is None else seen.where(~is_later), _SPLIT, partition_by="is_commit")
    left = columnar_decoder.undecoded(output.staged(_SPLIT, StructType.fromDDL(columnar_decoder.SPLIT.ddl)))
    rest = output.stage(columnar_decoder.decode_rest(left), _REST, partition_by="table")
    commits = output.staged_rows(_COMMITS)
    rare = {
        table.name: output.staged_rows(f"{_REST}/table={table.name}") for table in columnar_decoder.OF_RECORDS.values()
    }

    def table_of(table: TableSchema) -> DataFrame:
        if table != COMMITS or not commits:
            return output.write(columnar_decoder.table_of_rest(rest, table), table)
        adopted = output.adopt(_COMMITS, COMMITS)
        return output.append(columnar_decoder.table_of_rest(rest, COMMITS), COMMITS) if rare[COMMITS.name] else adopted

    rows = rare | {COMMITS.name: commits + rare[COMMITS.name]}
    # It is put aside: other parts of what it is among are moved to their places.
    hidden = output.stage(
        output.staged(_SPLIT, StructType.fromDDL(columnar_decoder.SPLIT.ddl))
        .where("is_commit is null")
        .select(*columnar_decoder.PLACES),
        HIDDEN.name,
    )
    is_any_hidden = output.staged_rows(HIDDEN.name) > 0
    return DecodedLog(
        int(counted.get["read"]), int(counted.get["later"]), rows, table_of, hidden if is_any_hidden else None
    )
