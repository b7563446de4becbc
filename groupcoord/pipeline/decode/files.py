"""Where all tasks run on this machine, those that decode write the tables of records themselves, by PyArrow: that is a quarter
of the work that it is to hand every row to Java.

Many tasks write at once and some may be tried again, so a file counts only when the task that wrote it has ended and said its
name; what is there besides is removed before anybody reads it.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from groupcoord.pipeline.decode.split import OF_RECORDS, decoded, divided
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import COMMITS, Column, Table
from groupcoord.pipeline.types import arrow_schema

CODECS = {"none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}
"""Names that Spark has for compressions, and PyArrow's; of others Spark itself knows best what they mean."""
AT_ONCE_BYTES = 32 * 1024 * 1024
"""So much, in memory, becomes one row group of a file."""

WRITTEN = Table(
    "written",
    "What a task has to say when it ends: its files, and in one more row how many records it read.",
    ("file",),
    (
        Column("file", "string", "path in the folder; null: the row is about all that was read"),
        Column("rows", "bigint", "rows in that file, or records that were read", "records"),
        Column("later", "bigint", "of the records that were read, those appended after what is asked for", "records"),
    ),
)


def writing(
    opened: Callable[[Iterator[Any]], Iterator[Any]], folder: Path, codec: str, until: datetime | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function that writes what ``opened`` gives, record batches of LOG, into ``folder``, and gives WRITTEN.

    In ``folder`` is a folder for each table of records that has any. What was appended after ``until`` is counted and not
    written.
    """
    schema = arrow_schema(WRITTEN.columns)

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        read = later = 0
        with ExitStack() as stack:
            files = {name: stack.enter_context(_File(folder, table, codec)) for name, table in OF_RECORDS.items()}
            for batch in filter(len, opened(batches)):
                asked = batch if until is None else _until(batch, until)
                read += len(batch)
                later += len(batch) - len(asked)
                commits, others = divided(asked)
                files[COMMITS.name].add(commits)
                for table, rows in decoded(others):
                    files[table.name].add(rows)
        said = [(file.name, file.rows, None) for file in files.values() if file.rows]
        columns = zip(*said, (None, read, later), strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )

    return write


class Written(NamedTuple):
    """How many records were read, how many of these were later, and how many rows each table has."""

    read: int
    later: int
    rows: dict[str, int]


def written(frame: DataFrame, folder: Path) -> Written:
    """Have all tasks of ``frame`` (WRITTEN) write into ``folder``."""
    folder.mkdir(parents=True)
    said = frame.collect()
    names = {row["file"] for row in said}
    for path in folder.glob("*/*.parquet"):
        if path.relative_to(folder).as_posix() not in names:
            path.unlink()
    totals = [row for row in said if row["file"] is None]
    rows = dict.fromkeys(OF_RECORDS, 0)
    for row in said:
        if row["file"] is not None:
            rows[Path(row["file"]).parent.name] += row["rows"]
    return Written(sum(row["rows"] for row in totals), sum(row["later"] for row in totals), rows)


def _until(batch: Any, until: datetime) -> Any:
    """Without the records of ``batch`` that were appended after ``until``; those without a time are not later."""
    appended = batch.column("append_ts")
    return batch.filter(pc.or_kleene(pc.less_equal(appended, pa.scalar(until, appended.type)), appended.is_null()))


class _File:
    """The Parquet file of one task for ``table``, which there is from the first row on: a context manager."""

    def __init__(self, folder: Path, table: Table, codec: str) -> None:
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

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """What the disk refuses ends the run with one line."""
        try:
            yield
        except OSError as problem:
            raise PipelineError(f"cannot write {self._path}: {problem.strerror or problem}") from None
