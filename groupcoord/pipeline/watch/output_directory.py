"""The directory that ``watch`` writes to: its files, who may write, and how a batch comes into its tables at once.

    watch.json                       what is in the tables (manifest.py)
    checkpoint/                      Spark's: up to where the log was read
    tables/commits/batch=12/…        a table that grows
    tables/lag/view.parquet          a view, one file
    state/recent/view.parquet        what the views are made of, beside themselves
    .work/WRITER/…                   what is being written

Everything goes through Hadoop's file systems, so the directory may be one that a cluster shares. A view is replaced by the
rename of one file, which on POSIX and HDFS is one step: who opens it has the old one or the new one. On a local disk a second
watch on the same directory is refused; elsewhere it takes over, and the first one notices before it writes again.
"""

import contextlib
import dataclasses
import json
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import TableSchema
from groupcoord.pipeline.watch.manifest import NONE, BatchDirectory, WatchManifest

ROWS_A_FILE = 2_000_000


MANIFEST = "watch.json"
CHECKPOINT = "checkpoint"
TABLES = "tables"
STATE = "state"
FILE = "view.parquet"
_WORK = ".work"
_LOCK = ".lock"


class WatchDirectory:
    """The directory ``root`` while a watch writes to it: a context manager. Raises PipelineError where it may not be.

    ``before_move`` is called with the target before each move of files: tests use it to stop there.
    """

    def __init__(self, spark: SparkSession, root: str, *, before_move: Callable[[str], object] = str) -> None:
        self.root = root.rstrip("/")
        self._spark = spark
        self._java: Any = spark._jvm  # noqa: SLF001 - the way to Hadoop's file systems
        self._files: Any = None
        self._lock: IO[bytes] | None = None
        self._before_move = before_move
        self._writer = uuid.uuid4().hex
        self._work = f"{_WORK}/{self._writer}"
        self._staged = 0
        self._is_moving = False
        """Does the manifest say that files below ``.work`` belong elsewhere? Then they stay for the next start."""
        self._found: WatchManifest | None = None

    def __enter__(self) -> Self:
        try:
            configuration = self._spark._jsc.hadoopConfiguration()  # noqa: SLF001
            self._files = self._path("").getFileSystem(configuration)
            self._refuse_others()
            if not self._files.mkdirs(self._path(self._work)):
                raise PipelineError(f"cannot write to {self.root}")
            self._take_lock()
            self._found = self._read()
            self._move(self._found.moves if self._found else [])
        except Py4JJavaError as problem:
            self._let_go()
            raise PipelineError(f"cannot write to {self.root}: {_words(problem)}") from None
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_moving:
            with contextlib.suppress(Py4JError, OSError):  # whatever else is wrong is told
                self._files.delete(self._path(self._work), True)  # noqa: FBT003 - Java's signature
        self._let_go()

    def use(self, spark: SparkSession) -> None:
        """Read and write with ``spark``: a batch of a stream has a session of its own."""
        self._spark = spark

    @property
    def checkpoint(self) -> str:
        """Where Spark's checkpoint is."""
        return f"{self.root}/{CHECKPOINT}"

    def begin(self, source: str, identity: dict[str, str]) -> WatchManifest:
        """The manifest as it is, with this process as its writer; a new one where there was none.

        Raises PipelineError if the directory belongs to another source, or its checkpoint is gone or another.
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
        for left in self._files.listStatus(self._path(_WORK)):
            if left.getPath().getName() != self._writer:
                self._files.delete(left.getPath(), True)  # noqa: FBT003 - Java's signature
        return manifest

    def commit(self, manifest: WatchManifest) -> WatchManifest:
        """``manifest`` takes the place of the one before, and its moves are made; returns it without them.

        Raises PipelineError if somebody else has begun to watch here.
        """
        found = self._read()
        there = all(self._files.exists(self._path(origin)) for origin, _ in manifest.moves)
        if found is None or found.writer != manifest.writer or not there:
            raise PipelineError(f"another watch has taken over {self.root}")
        said = dataclasses.replace(manifest, checkpoint=self._checkpoint_id())
        self._is_moving = True
        self._write(said)
        self._move(manifest.moves)
        self._is_moving = False
        return dataclasses.replace(manifest, moves=[])

    def ends_of_batch(self, batch: int) -> str:
        """Where the source said that ``batch`` ends, as Spark keeps it: JSON."""
        [*_, said] = self._text(f"{CHECKPOINT}/offsets/{batch}").splitlines()
        return said

    def stage(self, frame: DataFrame, table: TableSchema) -> str:
        """Write ``frame``, which must have the columns of ``table``, aside; returns the path, to be moved."""
        path = self._aside()
        self._checked(frame, table).write.parquet(f"{self.root}/{path}")
        return path

    def stage_file(self, frame: DataFrame, table: TableSchema, *, rows: int) -> str:
        """The same as one file; ``rows`` is about how many there will be."""
        path = self._aside()
        shown = self._checked(frame, table)
        one = shown.coalesce(1) if rows < _FEW else shown.repartition(1)
        one.write.parquet(f"{self.root}/{path}")
        [name] = [
            found.getPath().getName()
            for found in self._files.listStatus(self._path(path))
            if found.getPath().getName().endswith(".parquet")
        ]
        return f"{path}/{name}"

    def read(self, table: TableSchema, *paths: str) -> DataFrame:
        """The rows of ``table`` at ``paths``, which are below the directory; no rows of what is not there."""
        there = [f"{self.root}/{path}" for path in paths if self._files.exists(self._path(path))]
        if not there:
            return self.empty(table)
        return self._spark.read.schema(table.ddl).parquet(*there)

    def empty(self, table: TableSchema) -> DataFrame:
        """No rows of ``table``."""
        return self._spark.createDataFrame([], table.ddl)

    def out(self) -> str:
        """A path that nothing has, for what is to be moved out; ``tidy`` forgets it."""
        return self._aside()

    def tidy(self) -> None:
        """Forget what was written aside and moved out."""
        for found in self._files.listStatus(self._path(self._work)):
            self._files.delete(found.getPath(), True)  # noqa: FBT003 - Java's signature

    def _checked(self, frame: DataFrame, table: TableSchema) -> DataFrame:
        wanted = self.empty(table).schema
        found = [(field.name, field.dataType.simpleString()) for field in frame.schema]
        expected = [(field.name, field.dataType.simpleString()) for field in wanted]
        if found != expected:
            raise AssertionError(f"{table.name} has other columns than its schema: {found} and not {expected}")
        return frame

    def _aside(self) -> str:
        self._staged += 1
        return f"{self._work}/{self._staged}"

    def _move(self, moves: list[tuple[str, str]]) -> None:
        for origin, target in moves:
            self._before_move(target)
            source, goal = self._path(origin), self._path(target)
            if not self._files.exists(source):
                continue
            self._files.mkdirs(goal.getParent())
            if self._files.isFile(source):
                # The checksum that Hadoop keeps beside a local file cannot be replaced in the same step: better none.
                self._files.delete(self._path(_beside(origin)), False)  # noqa: FBT003 - Java's signature
                self._replace(source, goal)
                continue
            if self._files.exists(goal):
                self._files.delete(goal, True)  # noqa: FBT003 - Java's signature
            if not self._files.rename(source, goal):
                raise PipelineError(f"cannot move {self.root}/{origin} to {self.root}/{target}")

    def _replace(self, source: Any, goal: Any) -> None:
        """Rename a file over another. On a local disk the plain rename does that in one step; HDFS wants to be told."""
        if self._files.rename(source, goal):
            return
        hadoop = self._java.org.apache.hadoop.fs
        overwrite = self._spark.sparkContext._gateway.new_array(hadoop.Options.Rename, 1)  # noqa: SLF001
        overwrite[0] = hadoop.Options.Rename.OVERWRITE
        configuration = self._spark._jsc.hadoopConfiguration()  # noqa: SLF001
        hadoop.FileContext.getFileContext(goal.toUri(), configuration).rename(source, goal, overwrite)

    def _read(self) -> WatchManifest | None:
        if not self._files.exists(self._path(MANIFEST)):
            return None
        return WatchManifest.from_json(self._text(MANIFEST), f"{self.root}/{MANIFEST}")

    def _write(self, manifest: WatchManifest) -> None:
        new = f"{self._work}/{MANIFEST}"
        stream = self._files.create(self._path(new), True)  # noqa: FBT003 - Java's signature
        try:
            stream.write(bytearray(manifest.to_json().encode()))
        finally:
            stream.close()
        self._files.delete(self._path(_beside(new)), False)  # noqa: FBT003 - Java's signature
        self._replace(self._path(new), self._path(MANIFEST))

    def _checkpoint_id(self) -> str | None:
        path = f"{CHECKPOINT}/metadata"
        return json.loads(self._text(path))["id"] if self._files.exists(self._path(path)) else None

    def _text(self, path: str) -> str:
        stream = self._files.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _refuse_others(self) -> None:
        if self._files.isFile(self._path("")):
            raise PipelineError(f"{self.root} is a file; --out wants a directory")
        if self._files.exists(self._path(MANIFEST)):
            return
        if self._files.exists(self._path(TABLES)):
            raise PipelineError(f"{self.root}/{TABLES} is there and not from a watch: choose another --out")

    def _take_lock(self) -> None:
        """On a local disk. The system lets go of it when the process ends, however that is."""
        if self._files.getUri().getScheme() != "file":
            return
        import fcntl  # noqa: PLC0415 - not everywhere

        path = Path(self._files.makeQualified(self._path(_LOCK)).toUri().getPath())
        try:
            self._lock = path.open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"another watch is writing to {self.root}") from None
        except OSError as problem:
            raise PipelineError(f"cannot write to {self.root}: {problem.strerror}") from None

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _path(self, below: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self.root}/{below}" if below else self.root)


def merge_directories(
    output: WatchDirectory, manifest: WatchManifest, tables: Iterable[TableSchema], every: int
) -> WatchManifest:
    """Merge what there is to merge, ``every`` so many directories; 0: never."""
    for table in tables:
        while every and (chosen := directories_to_merge(manifest.directories.get(table.name, []), every)):
            manifest = _merge(output, manifest, table, chosen)
    return manifest


def directories_to_merge(directories: list[BatchDirectory], every: int) -> list[BatchDirectory]:
    """The first ``every`` of the highest level of which there are so many; none if there are not."""
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
    staged = output.stage(frame.coalesce(max(1, whole.rows // ROWS_A_FILE)), table)
    out = output.out()
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


_FEW = 1_000_000
"""So many rows are written by one task that also computes them."""


def _beside(path: str) -> str:
    """The file of checksums that Hadoop keeps beside a local one."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc"


def _words(problem: Py4JJavaError) -> str:
    return str(problem.java_exception.getMessage() or problem.java_exception.getClass().getSimpleName()).splitlines()[0]
