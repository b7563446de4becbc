"""The output directory of ``pipeline watch``: its layout, its lock, and the atomic commit of a batch.

    watch.json                       the manifest: what is in the tables
    checkpoint/                      Spark's checkpoint: up to where the log was read
    tables/commits/batch=12/…        a table to which batches append
    tables/lag/view.parquet          a view, one file
    state/recent/view.parquet        state from which the next views are computed
    state/alerts.json                open incidents, and which alerts were delivered
    .work/WRITER/…                   staged files

``watch.json`` decides which batches are in the tables. The files of a batch are staged first. Then one rename replaces
``watch.json``; it has the number of the batch, and the staged files that are still to be moved into place. Then they are moved.
If a process is killed in between, the next one finds the moves in ``watch.json`` and makes those that are left: a file that was
moved is no longer staged.

The directory may be on HDFS or in an object store. A view is one file and is replaced by a rename, which is atomic on POSIX and
HDFS: a reader opens the old file or the new one. On a local disk a second watch on the same directory is refused; elsewhere it
takes over, and the first one notices that before it writes again.
"""

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.directory_lock import DirectoryLock
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import HadoopFiles, check_columns, java_reason
from groupcoord.pipeline.schemas import TableSchema

FORMAT = 2
NONE = -1
"""The batch number of a watch that has written no batch."""


@dataclass(frozen=True)
class BatchDirectory:
    """A directory of a table with the rows of one batch (``batch=12``), or of several that were merged (``batch=0-99``)."""

    first: int
    last: int
    rows: int
    level: int = 0
    """How many times its rows have been merged."""

    @property
    def folder(self) -> str:
        """The name of the directory."""
        return f"batch={self.first}" if self.level == 0 else f"batch={self.first}-{self.last}"


@dataclass(frozen=True, kw_only=True)
class WatchManifest:
    """The content of ``watch.json``. ``source`` is the text of ``--source``, and ``identity`` tells that source from others.

    ``checkpoint`` is the id in Spark's checkpoint, ``writer`` the id of the watch. ``batch`` is the last batch, ``at`` its
    time, ``records`` the number of records in all batches, and ``positions`` the next offset of each partition of the log.
    ``directories`` are the directories of each table that grows. ``moves`` are pairs of paths: from where to where.
    """

    source: str
    identity: dict[str, str]
    writer: str
    checkpoint: str | None = None
    batch: int = NONE
    at: str | None = None
    records: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    directories: dict[str, list[BatchDirectory]] = field(default_factory=dict)
    moves: list[tuple[str, str]] = field(default_factory=list)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str, where: str) -> "WatchManifest":
        """Parse a manifest. Raises PipelineError if ``text`` is none."""
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields.pop("format") != FORMAT:
                raise PipelineError(f"{where} was written by another version of groupcoord")
            fields["directories"] = {
                name: [BatchDirectory(**directory) for directory in directories]
                for name, directories in fields["directories"].items()
            }
            fields["moves"] = [(origin, target) for origin, target in fields["moves"]]
            return WatchManifest(**fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise PipelineError(f"{where} is not what pipeline watch writes there") from None


MANIFEST = "watch.json"
CHECKPOINT = "checkpoint"
TABLES = "tables"
STATE = "state"
FILE = "view.parquet"
_WORK = ".work"
ROWS_A_FILE = 2_000_000
_FEW = 1_000_000
"""Fewer rows than this are written as one file by the task that computes them, without a shuffle."""


def view_path(table: TableSchema) -> str:
    """The path of the view ``table`` below the directory."""
    return f"{TABLES}/{table.name}/{FILE}"


class WatchDirectory:
    """A context manager for writing the directory ``root``. Raises PipelineError if it cannot be written, or another
    watch is writing to it.

    ``before_move`` is called with the target before each move of a file; tests simulate crashes with it.
    """

    def __init__(self, spark: SparkSession, root: str, *, before_move: Callable[[str], object] = str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._files: HadoopFiles
        self._lock = DirectoryLock()
        self._before_move = before_move
        self._writer = uuid.uuid4().hex
        self._work = f"{_WORK}/{self._writer}"
        self._staged = 0
        self._is_moving = False
        """Does the stored manifest have moves that are not all done? Then the staged files are kept for the next start."""
        self._found: WatchManifest | None = None

    def __enter__(self) -> Self:
        try:
            self._files = HadoopFiles(self._spark, self.root)
            self.root = self._files.root
            self._refuse_others()
            if not self._files.make_directory(self._work):
                raise PipelineError(f"cannot write to {self.root}")
            self._lock.acquire(self._files, self.root, "watch")
            self._found = self._read()
            self._move(self._found.moves if self._found else [])
        except Py4JJavaError as problem:
            self._lock.release()
            raise PipelineError(f"cannot write to {self.root}: {java_reason(problem)}") from None
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_moving:
            with contextlib.suppress(Py4JError, OSError):  # another error is already being raised
                self._files.delete(self._work)
        self._lock.release()

    def use(self, spark: SparkSession) -> None:
        """Use the session ``spark`` from now on: each batch of a stream comes with a session of its own."""
        self._spark = spark

    @property
    def checkpoint(self) -> str:
        """The path of Spark's checkpoint."""
        return f"{self.root}/{CHECKPOINT}"

    def begin(self, source: str, identity: dict[str, str]) -> WatchManifest:
        """Make this process the writer of the manifest and return it; a new one if there was none.

        Raises PipelineError if the directory belongs to another source, or its checkpoint is missing or not the one of the
        tables.
        """
        before = self._found
        held = self._checkpoint_id()
        if before is not None and before.identity != identity:
            was = ", ".join(f"{name} {value}" for name, value in before.identity.items())
            now = ", ".join(f"{name} {value}" for name, value in identity.items())
            raise PipelineError(f"{self.root} watches {was}; {source} is {now}: choose another --out")
        if before is None and held is not None:
            raise PipelineError(f"{self.root} has a checkpoint and no {MANIFEST}: choose another --out")
        if before is not None and before.batch > NONE and before.checkpoint != held:
            raise PipelineError(
                f"the checkpoint in {self.root} is not the one its tables were made with: another --out"
            )
        manifest = before or WatchManifest(source=source, identity=identity, writer=self._writer)
        manifest = dataclasses.replace(manifest, source=source, writer=self._writer, moves=[])
        self._write(manifest)
        for left in self._files.names(_WORK):
            if left != self._writer:
                self._files.delete(f"{_WORK}/{left}")
        return manifest

    def commit(self, manifest: WatchManifest) -> WatchManifest:
        """Replace the stored manifest by ``manifest``, and make its moves; returns the manifest without moves.

        Raises PipelineError if another watch has begun to write here.
        """
        found = self._read()
        there = all(self._files.exists(origin) for origin, _ in manifest.moves)
        if found is None or found.writer != manifest.writer or not there:
            raise PipelineError(f"another watch has taken over {self.root}")
        latest = dataclasses.replace(manifest, checkpoint=self._checkpoint_id())
        self._is_moving = True
        self._write(latest)
        self._move(manifest.moves)
        self._is_moving = False
        return dataclasses.replace(manifest, moves=[])

    def ends_of_batch(self, batch: int) -> str:
        """The offsets at which ``batch`` ends, from Spark's checkpoint: JSON in the format of the source."""
        [*_, offsets] = self._files.read_text(f"{CHECKPOINT}/offsets/{batch}").splitlines()
        return offsets

    def stage(self, frame: DataFrame, table: TableSchema, rows: int = 0) -> str:
        """Write ``frame``, which must have the columns of ``table``, as a staged directory; returns its path. ``rows`` is their
        number, if they may be too many for one file."""
        path = self.aside()
        check_columns(frame, table)
        frame.coalesce(max(1, rows // ROWS_A_FILE)).write.parquet(f"{self.root}/{path}")
        return path

    def stage_file(self, frame: DataFrame, table: TableSchema, *, rows: int) -> str:
        """Like ``stage``, but as one file; ``rows`` is the approximate number of rows."""
        path = self.stage(frame if rows < _FEW else frame.repartition(1), table)
        [name] = [name for name in self._files.names(path) if name.endswith(".parquet")]
        return f"{path}/{name}"

    def read(self, table: TableSchema, *paths: str) -> DataFrame:
        """Read rows of ``table`` from ``paths`` below the directory; paths that do not exist are skipped."""
        there = [f"{self.root}/{path}" for path in paths if self._files.exists(path)]
        if not there:
            return self.empty(table)
        return self._spark.read.schema(table.ddl).parquet(*there)

    def view(self, table: TableSchema, columns: Sequence[str] | None = None) -> Any:
        """Read the view ``table``, or its ``columns``, as an Arrow table without a Spark job. Times are in UTC. Empty if the
        view does not exist."""
        path, schema = view_path(table), arrow_schema(table.columns)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        if not self._files.exists(path):
            return schema.empty_table()
        local = self._files.local(path)
        content = pa.BufferReader(self._files.read_bytes(path)) if local is None else local
        return pq.ParquetFile(content).read(columns=schema.names).select(schema.names).cast(schema, safe=False)

    def empty(self, table: TableSchema) -> DataFrame:
        """An empty DataFrame with the columns of ``table``."""
        return self._spark.createDataFrame([], table.ddl)

    def aside(self) -> str:
        """A new path below ``.work``, for files to be staged or to be removed; ``tidy`` deletes it."""
        self._staged += 1
        return f"{self._work}/{self._staged}"

    def read_note(self, path: str) -> str | None:
        """The text of a file; None if it does not exist."""
        return self._files.read_text(path) if self._files.exists(path) else None

    def write_note(self, path: str, text: str) -> None:
        """Replace a file atomically."""
        self._files.make_parent(path)
        self._put(path, text)

    def tidy(self) -> None:
        """Delete everything below this writer's ``.work``."""
        for name in self._files.names(self._work):
            self._files.delete(f"{self._work}/{name}")

    def _move(self, moves: list[tuple[str, str]]) -> None:
        for origin, target in moves:
            self._before_move(target)
            if not self._files.exists(origin):
                continue
            self._files.make_parent(target)
            if self._files.is_file(origin):
                # The checksum file that Hadoop keeps beside a local file cannot be replaced in the same step, so it is deleted.
                self._files.delete_checksum(origin)
                self._files.replace(origin, target)
                continue
            self._files.delete(target)
            if not self._files.rename(origin, target):
                raise PipelineError(f"cannot move {self.root}/{origin} to {self.root}/{target}")

    def _read(self) -> WatchManifest | None:
        if not self._files.exists(MANIFEST):
            return None
        return WatchManifest.from_json(self._files.read_text(MANIFEST), f"{self.root}/{MANIFEST}")

    def _write(self, manifest: WatchManifest) -> None:
        self._put(MANIFEST, manifest.to_json())

    def _put(self, path: str, text: str) -> None:
        new = f"{self._work}/{path.rpartition('/')[2]}"
        self._files.write_text(new, text)
        self._files.delete_checksum(new)
        self._files.replace(new, path)

    def _checkpoint_id(self) -> str | None:
        path = f"{CHECKPOINT}/metadata"
        return json.loads(self._files.read_text(path))["id"] if self._files.exists(path) else None

    def _refuse_others(self) -> None:
        if self._files.is_file(""):
            raise PipelineError(f"{self.root} is a file; --out wants a directory")
        if self._files.exists(MANIFEST):
            return
        if self._files.exists(TABLES):
            raise PipelineError(f"{self.root}/{TABLES} is there and not from a watch: choose another --out")


def merge_directories(
    output: WatchDirectory, manifest: WatchManifest, tables: Iterable[TableSchema], every: int
) -> WatchManifest:
    """Merge directories of ``tables``: whenever a level has ``every`` directories, into one of the next level; 0: never.

    So a growing table never has more than some hundred directories, and each row is rewritten only once for each level. The
    merged directory is moved into place like a batch; the directories that it replaces are moved out just before.
    """
    for table in tables:
        while every and (chosen := directories_to_merge(manifest.directories.get(table.name, []), every)):
            manifest = _merge(output, manifest, table, chosen)
    return manifest


def directories_to_merge(directories: list[BatchDirectory], every: int) -> list[BatchDirectory]:
    """The first ``every`` directories of the highest level that has as many; empty if no level has."""
    for level in sorted({directory.level for directory in directories}, reverse=True):
        of_level = [directory for directory in directories if directory.level == level]
        if len(of_level) >= every:
            return of_level[:every]
    return []


def _merge(
    output: WatchDirectory, manifest: WatchManifest, table: TableSchema, chosen: list[BatchDirectory]
) -> WatchManifest:
    whole = BatchDirectory(
        chosen[0].first, chosen[-1].last, sum(directory.rows for directory in chosen), chosen[0].level + 1
    )
    folder = f"{TABLES}/{table.name}"
    frame = output.read(table, *(f"{folder}/{directory.folder}" for directory in chosen))
    staged, out = output.stage(frame, table, whole.rows), output.aside()
    moves = [(f"{folder}/{directory.folder}", f"{out}/{directory.folder}") for directory in chosen]
    directories = [whole, *(directory for directory in manifest.directories[table.name] if directory not in chosen)]
    directories.sort(key=lambda directory: directory.first)
    return output.commit(
        dataclasses.replace(
            manifest,
            directories={**manifest.directories, table.name: directories},
            moves=[*moves, (staged, f"{folder}/{whole.folder}")],
        )
    )
