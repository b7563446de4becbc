"""The output directory of ``pipeline run``: everything is staged first, and moved into place only when it is complete.

    tables/NAME/…     Parquet files
    report.json       the report
    report.html       the page that is rendered from it
    run.json          what was read, when, and how many rows each table has

``--out`` may be a directory, HDFS or an object store. A failed run removes what it wrote; the output of an earlier run
stays until the new one is complete. ``run.json`` exists only while everything beside it is complete. On a local disk a second
run at the same time is refused, and the staged files of a killed run are removed by the next one. Elsewhere a killed run cannot
be told from one that is still writing, so its files stay.
"""

import contextlib
import json
import os
import uuid
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from groupcoord.pipeline import schemas
from groupcoord.pipeline.directory_lock import DirectoryLock
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import HadoopFiles, check_columns, java_reason
from groupcoord.pipeline.local_files import LocalFiles
from groupcoord.pipeline.report.arrow_table_reader import ArrowTableReader, local_scan, spark_scan
from groupcoord.pipeline.report.report_files import PAGE, REPORT, render_page, report_to_json
from groupcoord.pipeline.report.report_model import Report
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.spark_session import is_connect, is_one_process

CODEC = "spark.sql.parquet.compression.codec"
CODECS = {"none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd"}
"""Spark's names of compression codecs, and PyArrow's names of the same. With any other codec Spark writes the tables."""
TABLES = "tables"
STAGED = "staged"
RUN = "run.json"
_BEGIN, PARTIAL = "run-", ".partial"
_SEEN = "seen"


def refuse_unwritable(out: Path, mark: str = RUN, what: str = "run") -> None:
    """Raise PipelineError if a ``what`` (a run, a watch) cannot write to the local directory ``out``: ``out`` is not
    writable, or has tables but not the file ``mark`` that a ``what`` leaves. Other file systems are not checked.

    This needs no Spark, so the error comes before Spark is started.
    """
    if "://" in str(out) or str(out).startswith("file:"):
        return
    there = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not there.is_dir():
        raise PipelineError(f"cannot write to {out}: {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PipelineError(f"cannot write to {out}: there is no right to write to {there}")
    is_whole = (out / mark).exists() or any(out.glob(f"{_BEGIN}*{PARTIAL}/{mark}"))
    if (out / TABLES).exists() and not is_whole:
        raise PipelineError(f"{out}/{TABLES} is there and not from a {what}: choose another --out")


class RunOutput:
    """A context manager for writing the output directory ``root``. Raises PipelineError if it cannot be written."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._work = f"{_BEGIN}{uuid.uuid4().hex[:12]}{PARTIAL}"
        self._lock = DirectoryLock()
        self._files: HadoopFiles | LocalFiles
        self._report: Report | None = None
        self._schemas: dict[str, StructType] = {}
        self._by_tasks: set[str] = set()

    def __enter__(self) -> Self:
        if is_connect(self._spark) and "://" in self.root:
            raise PipelineError(
                f"over Spark Connect --out is a directory that this process and the server share, and not {self.root}"
            )
        try:
            self._files = LocalFiles(self.root) if is_connect(self._spark) else HadoopFiles(self._spark, self.root)
            self.root = self._files.root
            left = self._left() if self._files.exists("") else []
            whole = [name for name in left if self._files.exists(f"{name}/{RUN}")]
            if self._files.exists(TABLES) and not self._files.exists(RUN) and not whole:
                raise PipelineError(f"{self.root}/{TABLES} is there and not from a run: choose another --out")
            if not self._files.make_directory(self._work):
                raise PipelineError(f"cannot write to {self.root}")
            if is_connect(self._spark):
                self._check_shared()
            if self._lock.acquire(self._files, self.root, "run"):
                for name in left:  # of killed runs; a complete one is first moved into place
                    if name in whole:
                        self._put_in_place(name)
                    self._files.delete(name)
        except Py4JJavaError as problem:
            raise PipelineError(f"cannot write to {self.root}: {java_reason(problem)}") from None
        except OSError as problem:
            raise PipelineError(f"cannot write to {self.root}: {problem.strerror}") from None
        except PipelineError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(
            Py4JError
        ):  # Java has died, which is reported elsewhere; the next run removes the files
            self._files.delete(self._work)
        self._lock.release()

    def _check_shared(self) -> None:
        """Raise PipelineError if the server of Spark Connect does not see what this process writes."""
        self._files.write_text(f"{self._work}/{_SEEN}", _SEEN)
        try:
            self._spark.read.text(f"{self.root}/{self._work}/{_SEEN}").collect()  # one line
        except PySparkException:
            raise PipelineError(
                f"the server of Spark Connect does not see {self.root}: --out is a directory that it and this process share"
            ) from None

    def _left(self) -> list[str]:
        """The staging directories of runs that are writing or were killed."""
        return [name for name in self._files.names("") if name.startswith(_BEGIN) and name.endswith(PARTIAL)]

    def write(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        """Write ``frame``, which must have exactly the columns of ``table``; returns the written table."""
        return self._write(frame, table, "error")

    def append(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        """Append ``frame`` to ``table``; returns the whole table."""
        return self._write(frame, table, "append")

    def put(self, rows: Any, name: str) -> int:
        """Write ``rows``, a DataFrame or an Arrow table, beside ``files_of_tasks`` if there are any, and return the number of
        all rows. If ``name`` is not one of ``schemas.TABLES``, they are an intermediate result, which is removed at the end of
        the run."""
        path = self._path(name)
        if isinstance(rows, DataFrame):
            if name in schemas.TABLES:
                check_columns(rows, schemas.TABLES[name])
            self._schemas[name] = rows.schema
            mode = "append" if name in self._by_tasks else "error"
            rows.write.mode(mode).parquet(f"{self.root}/{path}")
            return self._files.parquet_rows(path)
        self._schemas[name] = from_arrow_schema(rows.schema)
        content = BytesIO()
        pq.write_table(rows, content, compression=CODECS.get(self._spark.conf.get(CODEC), "none"))
        self._files.write_bytes(f"{path}/part-0.parquet", content.getvalue())
        return self._files.parquet_rows(path) if name in self._by_tasks else len(rows)

    def get(self, name: str, spark: SparkSession) -> DataFrame:
        """Read what was ``put`` as ``name``, in the session ``spark``."""
        table = schemas.TABLES.get(name)
        if table is not None:
            return self._read(table, spark)
        return spark.read.schema(self._schemas[name]).parquet(f"{self.root}/{self._staged(name)}")

    def adopt(self, name: str, table: TableSchema) -> DataFrame:
        """Turn what is staged as ``name``, which has exactly the columns of ``table`` and at least one row, into that table."""
        self._files.make_directory(f"{self._work}/{TABLES}")
        if not self._files.rename(self._staged(name), self._table(table)):
            raise PipelineError(f"cannot write to {self.root}/{self._table(table)}")
        return self._read(table)

    def stage(self, frame: DataFrame, name: str, *, partition_by: str | None = None) -> DataFrame:
        """Write ``frame`` as an intermediate result, which is removed at the end of the run; returns it, read back."""
        writer = frame.write if partition_by is None else frame.write.partitionBy(partition_by)
        writer.parquet(f"{self.root}/{self._staged(name)}")
        return self.staged(name, frame.schema)

    def staged(self, name: str, schema: StructType) -> DataFrame:
        """Read what is staged as ``name``, without the parts that were adopted."""
        self._schemas[name] = schema
        return self._spark.read.schema(schema).parquet(f"{self.root}/{self._staged(name)}")

    def files_of_tasks(self, name: str) -> tuple[Path, str] | None:
        """The local directory into which tasks write ``name`` themselves, and the codec for PyArrow. None if they cannot: the
        directory is not local, tasks run in other processes, or PyArrow does not have the codec."""
        codec = CODECS.get(self._spark.conf.get(CODEC))
        if is_connect(self._spark) or codec is None or not is_one_process(self._spark.sparkContext.master):
            return None
        folder = self._files.local(self._path(name))
        if folder is None:
            return None
        self._by_tasks.add(name)
        return folder, codec

    def staged_rows(self, name: str) -> int:
        """The number of rows that are staged as ``name``; 0 if nothing is."""
        path = self._staged(name)
        return self._files.parquet_rows(path) if self._files.exists(path) else 0

    def reader(self) -> ArrowTableReader:
        """A reader of the tables written so far: it reads in this process if they are local, else in Spark's tasks."""
        folder = self._files.local(f"{self._work}/{TABLES}")
        if folder is not None and folder.is_dir():
            return ArrowTableReader(local_scan(folder))
        return ArrowTableReader(spark_scan(self._spark, f"{self.root}/{self._work}/{TABLES}"))

    def finish(self, summary: dict[str, Any], report: Report) -> None:
        """Write ``report``, its page and ``summary``, and replace the output of an earlier run by all of it and the tables."""
        self._files.write_text(f"{self._work}/{REPORT}", report_to_json(report))
        self._files.write_text(f"{self._work}/{PAGE}", render_page(report))
        self._files.write_text(f"{self._work}/{RUN}", json.dumps(summary, indent=2) + "\n")
        self._put_in_place(self._work)
        self._report = report

    def finished(self) -> Report:
        """The report of the run. Raises AssertionError before ``finish``."""
        if self._report is None:
            raise AssertionError("the run is not finished")
        return self._report

    def _put_in_place(self, work: str) -> None:
        """Move the complete output from ``work`` into place, ``run.json`` last: while that is still in ``work``, an interrupted
        move can be continued.

        During the move ``run.json`` does not exist at the target. So readers can see that they have to wait: in an object store
        a move is a copy and takes time.
        """
        if self._files.exists(f"{work}/{RUN}"):
            self._files.delete(RUN)
        for name in (TABLES, REPORT, PAGE, RUN):
            if not self._files.exists(f"{work}/{name}"):
                continue
            self._files.delete(name)
            if not self._files.rename(f"{work}/{name}", name):
                raise PipelineError(f"what was written could not be moved to {self.root}/{name}")

    def _write(self, frame: DataFrame, table: TableSchema, mode: str) -> DataFrame:
        check_columns(frame, table)
        frame.write.mode(mode).parquet(f"{self.root}/{self._table(table)}")
        return self._read(table)

    def _read(self, table: TableSchema, spark: SparkSession | None = None) -> DataFrame:
        return (
            (spark or self._spark)
            .read.schema(StructType.fromDDL(table.ddl))
            .parquet(f"{self.root}/{self._table(table)}")
        )

    def _table(self, table: TableSchema) -> str:
        return f"{self._work}/{TABLES}/{table.name}"

    def _path(self, name: str) -> str:
        table = schemas.TABLES.get(name)
        return self._staged(name) if table is None else self._table(table)

    def _staged(self, name: str) -> str:
        return f"{self._work}/{STAGED}/{name}"
