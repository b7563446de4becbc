"""File operations on local disks, HDFS and object stores, through the Hadoop FileSystem API that Spark brings."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from groupcoord.pipeline.schemas import TableSchema

_ANY_COLUMN = "any boolean"
"""A schema for counting rows: no column is read, but without a schema Spark would open a file to infer one."""

_APPEARS_WHOLE = "fs.capability.outputstream.abortable"
"""What object stores such as ``s3a`` say that they can: a file is there only when it was closed, and not if it was aborted."""


class HadoopFiles:
    """The files below ``root``, by their paths relative to it; "" is ``root`` itself. Any method may raise Py4JJavaError.

    A ``root`` without a scheme or authority is on Hadoop's default file system (``fs.defaultFS``). Unless that is the local
    one, the attribute ``root`` is the whole URL: Hadoop's FileContext takes no other.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._java: Any = spark._jvm  # noqa: SLF001 - the way to Hadoop
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._configuration: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._system: Any = self._path("").getFileSystem(self._configuration)
        if self._system.getUri().getScheme() != "file":
            self.root = self._system.makeQualified(self._path("")).toString()

    def exists(self, path: str) -> bool:
        """Is there a file or directory at ``path``?"""
        return bool(self._system.exists(self._path(path)))

    def is_file(self, path: str) -> bool:
        """Is ``path`` a file?"""
        return bool(self._system.isFile(self._path(path)))

    def names(self, path: str) -> list[str]:
        """The names of the entries of a directory."""
        return [status.getPath().getName() for status in self._system.listStatus(self._path(path))]

    def make_directory(self, path: str) -> bool:
        """Create a directory and its parents; returns whether it exists then."""
        return bool(self._system.mkdirs(self._path(path)))

    def make_parent(self, path: str) -> None:
        """Create the parent directory of ``path``."""
        self._system.mkdirs(self._path(path).getParent())

    def delete(self, path: str) -> None:
        """Delete a file, or a directory and everything in it; nothing happens if it does not exist."""
        self._system.delete(self._path(path), True)  # noqa: FBT003 - Java's signature

    def rename(self, source: str, target: str) -> bool:
        """Rename a file or directory; returns whether that succeeded."""
        return bool(self._system.rename(self._path(source), self._path(target)))

    def replace(self, source: str, target: str) -> None:
        """Move a file over another one, so that a reader opens the one before or the new one. Local file systems do so by a
        rename; on HDFS the option OVERWRITE is needed. Object stores have no such rename, but a file that is written to one
        appears whole, when it is closed."""
        hadoop, origin, goal = self._java.org.apache.hadoop.fs, self._path(source), self._path(target)
        if self._system.hasPathCapability(goal, _APPEARS_WHOLE):
            hadoop.FileUtil.copy(self._system, origin, self._system, goal, True, True, self._configuration)  # noqa: FBT003
            return
        if self.rename(source, target):
            return
        overwrite = self._gateway.new_array(hadoop.Options.Rename, 1)
        overwrite[0] = hadoop.Options.Rename.OVERWRITE
        hadoop.FileContext.getFileContext(goal.toUri(), self._configuration).rename(origin, goal, overwrite)

    def read_text(self, path: str) -> str:
        """The content of a file as text."""
        return self.read_bytes(path).decode()

    def read_bytes(self, path: str) -> bytes:
        """The content of a file."""
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Write a text file; an existing one is overwritten."""
        self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file and create its parent directory; an existing file is overwritten."""
        stream = self._system.create(self._path(path), True)  # noqa: FBT003 - Java's signature
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def delete_checksum(self, path: str) -> None:
        """Delete the checksum file (``.NAME.crc``) that Hadoop keeps beside a local file."""
        folder, _, name = path.rpartition("/")
        self._system.delete(self._path(f"{folder}/.{name}.crc"), False)  # noqa: FBT003 - Java's signature

    def local(self, path: str) -> Path | None:
        """``path`` as a local path; None if it is not on the local file system."""
        if self._system.getUri().getScheme() != "file":
            return None
        return Path(self._system.makeQualified(self._path(path)).toUri().getPath())

    def parquet_rows(self, path: str) -> int:
        """The number of rows of the Parquet files in a directory, from their footers. Local footers are read in this process;
        others by a Spark job in parallel, because each may take a tenth of a second."""
        folder = self.local(path)
        if folder is None:
            return self._spark.read.schema(_ANY_COLUMN).parquet(f"{self.root}/{path}").count()
        return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self.root}/{path}" if path else self.root)


def url_of(path: str) -> str:
    """``path``, or its URL if it is a local path, which Spark would look for in Hadoop's default file system instead."""
    return path if "://" in path else f"file://{Path(path).absolute()}"


def java_reason(problem: Py4JJavaError) -> str:
    """The first line of the Java exception's message, or else its class."""
    error = problem.java_exception
    return str(error.getMessage() or error.getClass().getSimpleName()).splitlines()[0]


def check_columns(frame: DataFrame, table: TableSchema) -> None:
    """Raises AssertionError unless ``frame`` has exactly the columns of ``table``."""
    found, expected = (
        [(field.name, field.dataType.simpleString()) for field in schema]
        for schema in (frame.schema, StructType.fromDDL(table.ddl))
    )
    if found != expected:
        raise AssertionError(f"{table.name} has other columns than its schema: {found} and not {expected}")
