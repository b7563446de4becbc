"""Where the tables go: written aside, and put in their place only when all of them are whole.

Everything goes through Hadoop's file system, so that ``--out`` may be a directory, HDFS or an object store. What a run that
failed had written is removed; the tables of an earlier run stay until the new ones are there.
"""

import json
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.report.arrow_reader import ArrowReader
from groupcoord.pipeline.report.page import render_page
from groupcoord.pipeline.report.report_model import Report
from groupcoord.pipeline.report.spark_reader import SparkTableReader
from groupcoord.pipeline.report.table_reader import TableReader
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.spark_session import is_one_process

TABLES = "tables"
STAGED = "staged"
RUN = "run.json"
PAGE = "report.html"
PARTIAL = ".partial"


class RunOutput:
    """The directory ``root`` while a run writes to it: a context manager. Raises PipelineError where it may not be written."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._work = f"{self.root}/run-{uuid.uuid4().hex[:12]}{PARTIAL}"
        self._java: Any = spark._jvm  # noqa: SLF001 - the way to Hadoop's file systems
        self._files: Any = None
        self._report: Report | None = None

    def __enter__(self) -> Self:
        try:
            configuration = self._spark._jsc.hadoopConfiguration()  # noqa: SLF001
            self._files = self._path(self.root).getFileSystem(configuration)
            foreign = self._exists(f"{self.root}/{TABLES}") and not self._exists(f"{self.root}/{RUN}")
            if not foreign and not self._files.mkdirs(self._path(self._work)):
                raise PipelineError(f"cannot write to {self.root}")
        except Py4JJavaError as problem:
            raise PipelineError(f"cannot write to {self.root}: {_words(problem)}") from None
        if foreign:
            raise PipelineError(f"{self.root}/{TABLES} is there and not from a run: choose another --out")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.delete(self._path(self._work), True)  # noqa: FBT003 - Java's signature

    def write(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        """Write ``frame``, which must have just the columns of ``table``, as one of the tables; returns what can be read
        back."""
        return self._write(frame, table, "errorifexists")

    def append(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        """Write ``frame`` behind what ``table`` has already; returns all of it."""
        return self._write(frame, table, "append")

    def adopt(self, name: str, table: TableSchema) -> DataFrame:
        """What is staged as ``name``, which has just the columns of ``table`` and at least one row, becomes that table."""
        self._files.mkdirs(self._path(f"{self._work}/{TABLES}"))
        if not self._files.rename(self._path(f"{self._work}/{STAGED}/{name}"), self._path(self._table(table))):
            raise PipelineError(f"cannot write to {self._table(table)}")
        return self._read(table)

    def stage(self, frame: DataFrame, name: str, *, partition_by: str | None = None) -> DataFrame:
        """Write ``frame`` as something that later steps read and nobody keeps."""
        path = f"{self._work}/{STAGED}/{name}"
        writer = frame.write if partition_by is None else frame.write.partitionBy(partition_by)
        writer.parquet(path)
        return self.staged(name, frame.schema)

    def staged(self, name: str, schema: StructType) -> DataFrame:
        """What is staged as ``name``, as far as it was not adopted."""
        return self._spark.read.schema(schema).parquet(f"{self._work}/{STAGED}/{name}")

    def staged_here(self, name: str) -> Path | None:
        """Where on this machine ``name`` is to be staged; None if not all tasks see it there."""
        is_here = is_one_process(self._spark.sparkContext.master)
        return self._here(f"{self._work}/{STAGED}/{name}") if is_here else None

    def rows(self, table: TableSchema) -> int:
        """How many rows ``table`` has."""
        return self._rows(self._table(table))

    def staged_rows(self, name: str) -> int:
        """How many rows are staged as ``name``; none, if nothing is."""
        path = f"{self._work}/{STAGED}/{name}"
        return self._rows(path) if self._exists(path) else 0

    def reader(self) -> TableReader:
        """All tables that are written so far, for the report: by PyArrow, if this process sees their files."""
        folder = self._here(f"{self._work}/{TABLES}")
        if folder is not None and folder.is_dir():
            return ArrowReader(folder)
        return SparkTableReader(self._spark, f"{self._work}/{TABLES}")

    def finish(self, summary: dict[str, Any], report: Report) -> None:
        """All tables are whole: they take the place of those of an earlier run, ``summary`` says what they are, and the
        page of ``report`` shows them."""
        write_bytes(self._spark, f"{self._work}/{PAGE}", render_page(report).encode())
        write_bytes(self._spark, f"{self._work}/{RUN}", json.dumps(summary, indent=2).encode() + b"\n")
        for name in (TABLES, PAGE, RUN):
            place = self._path(f"{self.root}/{name}")
            if self._exists(f"{self.root}/{name}"):
                self._files.rename(place, self._path(f"{self._work}/before-{name}"))
            if not self._files.rename(self._path(f"{self._work}/{name}"), place):
                raise PipelineError(f"what was written could not be put in its place, {self.root}/{name}")
        self._report = report

    def finished(self) -> Report:
        """The report of the run, which must be finished."""
        if self._report is None:
            raise AssertionError("the run is not finished")
        return self._report

    def _write(self, frame: DataFrame, table: TableSchema, mode: str) -> DataFrame:
        wanted = StructType.fromDDL(table.ddl)
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        expected = [(field.name, field.dataType.simpleString()) for field in wanted]
        if found != expected:
            raise AssertionError(f"{table.name} has other columns than its schema: {found} and not {expected}")
        frame.write.mode(mode).parquet(self._table(table))
        return self._read(table)

    def _read(self, table: TableSchema) -> DataFrame:
        return self._spark.read.schema(StructType.fromDDL(table.ddl)).parquet(self._table(table))

    def _rows(self, path: str) -> int:
        """The files themselves say it at their ends; a query would be a job for Spark."""
        parquet = self._java.org.apache.parquet.hadoop
        rows = 0
        for status in self._files.listStatus(self._path(path)):
            if status.getPath().getName().endswith(".parquet"):
                file = parquet.util.HadoopInputFile.fromStatus(status, self._files.getConf())
                reader = parquet.ParquetFileReader.open(file)
                rows += reader.getRecordCount()
                reader.close()
        return rows

    def _table(self, table: TableSchema) -> str:
        return f"{self._work}/{TABLES}/{table.name}"

    def _here(self, path: str) -> Path | None:
        """``path`` on this machine's own file system; None if it is on another."""
        if self._files.getUri().getScheme() != "file":
            return None
        return Path(self._files.makeQualified(self._path(path)).toUri().getPath())

    def _exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(path)


def write_bytes(spark: SparkSession, path: str, content: bytes) -> None:
    """Write a file wherever Spark can. Raises Py4JJavaError."""
    java: Any = spark._jvm  # noqa: SLF001 - the way to Hadoop's file systems
    place = java.org.apache.hadoop.fs.Path(path)
    files = place.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    stream = files.create(place, True)  # noqa: FBT003 - Java's signature
    try:
        stream.write(bytearray(content))
    finally:
        stream.close()


def _words(problem: Py4JJavaError) -> str:
    return str(problem.java_exception.getMessage() or problem.java_exception.getClass().getSimpleName()).splitlines()[0]
