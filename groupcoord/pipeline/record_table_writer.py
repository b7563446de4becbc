"""Reads a source, decodes each record once, and writes it to its table: commits, generations, modern_records or bad_records.

If Spark runs in one process and writes to the local disk, its tasks write the Parquet files themselves with PyArrow, which
takes a quarter of the time of passing every row to Java. They also compute the counts, which saves two passes over all
commits. Tasks run in parallel and may be retried, so a file is kept only if the task that wrote it ended and returned its
name; other files are removed. Everywhere else Spark writes: first all commits, then the other records.
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
from groupcoord.pipeline.parquet_writer import parquet_writer
from groupcoord.pipeline.run_output import RunOutput
from groupcoord.pipeline.schemas import COMMITS, TableSchema, table_schema
from groupcoord.pipeline.sources.factory import SourcePlan
from groupcoord.pipeline.tables.consecutive_commits import PARTIAL_STATISTICS, merge_statistics, partial_statistics
from groupcoord.pipeline.tables.log_coverage import BUCKETS, in_buckets, merge_buckets

HIDDEN = TableSchema(
    "hidden",
    "The places of transaction markers, and of records of aborted or open transactions. Not kept.",
    ("log_partition", "log_offset"),
    columnar_decoder.WHERE,
)
_WRITTEN_BY_TASKS = {
    **columnar_decoder.OF_RECORDS,
    **{table.name: table for table in (HIDDEN, BUCKETS, PARTIAL_STATISTICS)},
}
MERGE_AT = 200_000
"""Partial results with more rows than this are merged."""
AT_ONCE_BYTES = 32 * 1024 * 1024
"""The size in memory of one row group of a file."""

WRITTEN = table_schema("""
    written by file: What a task reports when it ends: a row for each file, and one row for all records it read.
    file string: path in the folder; null: the row is about all records that were read
    rows bigint records: rows in that file, or records that were read
    later bigint records: of the records that were read, those appended after the time that was asked for
""")


def table_writer(
    open_batches: Callable[[Iterator[Any]], Iterator[Any]], folder: Path, codec: str, until: datetime | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that writes the record batches of LOG that ``open_batches`` yields into ``folder``, and yields WRITTEN.

    It creates a subfolder for each table that has rows, also for HIDDEN, BUCKETS and PARTIAL_STATISTICS. Records appended after
    ``until`` are counted and not written.
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
    """Collects partial results; ``merge`` combines their rows by key."""

    def __init__(self, merge: Callable[[Any], Any]) -> None:
        self._merge = merge
        self._found: list[Any] = []
        self._rows = 0

    def add(self, found: Any) -> None:
        """Add a partial result; all are merged whenever they have more than MERGE_AT rows."""
        self._found.append(found)
        self._rows += len(found)
        if self._rows > MERGE_AT:
            self._found = [self._merge(pa.concat_tables(self._found))]
            self._rows = len(self._found[0])

    def batches(self) -> list[Any]:
        """The merged result."""
        batches: list[Any] = self._merge(pa.concat_tables(self._found)).to_batches() if self._found else []
        return batches


class WrittenRecords(NamedTuple):
    """How many records were read, how many of them were appended after the time asked for, and the rows of each table."""

    read: int
    later: int
    rows: dict[str, int]


def collect_written(run: Callable[[], Sequence[Any]], folder: Path) -> WrittenRecords:
    """Call ``run``, which writes into ``folder`` and returns rows of WRITTEN; then remove files that no task reported."""
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
    """``batch`` without the records appended after ``until``; records without a time are kept."""
    appended = batch.column("append_ts")
    return batch.filter(pc.or_kleene(pc.less_equal(appended, pa.scalar(until, appended.type)), appended.is_null()))


class _File:
    """The Parquet file of one task for ``table``, created with its first row: a context manager."""

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
        """Add rows; they are written when a row group is full."""
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
            self._writer = parquet_writer(self._path, self._schema, self._codec)
        self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._waiting_bytes = [], 0

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn an OSError into a PipelineError."""
        try:
            yield
        except OSError as problem:
            raise PipelineError(f"cannot write {self._path}: {problem.strerror or problem}") from None


_BY_TASKS = "records"
_SPLIT, _COMMITS = "split", "split/is_commit=true"
_REST = "rest"


@dataclass(frozen=True)
class DecodedLog:
    """The result of reading a source. ``read`` is the number of records, ``later`` the number of those that were appended after
    the time asked for and are in no table, ``rows`` the number of rows of each table. ``table`` moves a table that has rows to
    its final place and returns it. ``hidden`` has the places of hidden records and markers (HIDDEN); None if there are none.
    ``buckets`` are the BUCKETS of everything, and ``statistics`` is the name that PARTIAL_STATISTICS are staged under; both are
    None if they were not computed while writing."""

    read: int
    later: int
    rows: dict[str, int]
    table: Callable[[TableSchema], DataFrame]
    hidden: DataFrame | None
    buckets: Any = None
    statistics: str | None = None


def read_records(spark: SparkSession, plan: SourcePlan, output: RunOutput, until: datetime | None) -> DecodedLog:
    """Read and decode the records of ``plan`` that were appended up to ``until``; all of them if that is None."""
    if files := output.files_of_tasks(_BY_TASKS):
        return _by_tasks(spark, plan, output, until, *files)
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
    # A copy, because adopting the commits moves files out of the staged directory that these rows are in.
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
