"""Creates the Spark session with the pipeline's default settings, on this machine or on a cluster."""

import contextlib
import json
import logging
import os
import re
import socket
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import groupcoord
from groupcoord.pipeline.arrow_columns import arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.java_runtime import class_archive_options, find_java
from groupcoord.pipeline.schemas import TableSchema

LOCAL = "local[*]"
DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # an overflow gives null instead of an error: clients may have written any number
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",  # 15 % faster than 10,000
    "spark.sql.maxConcurrentOutputFileWriters": "16",  # rows of several kinds are written without being sorted first
    "spark.sql.codegen.hugeMethodLimit": "8000",  # Java does not compile methods with more bytes, but interprets them
    "spark.sql.autoBroadcastJoinThreshold": "32m",  # the size of files; in memory the rows take ten times as much
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96, the default, is outdated and takes a third longer
}
SMALL = 200_000
"""Below this number of rows it takes longer to compile a query to Java bytecode than to interpret it."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
FOR_SMALL = {**INTERPRETED, "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
MAP_HERE = "spark.groupcoord.mapHere"
"""A session setting: run Arrow functions in this process. Starting a Python worker for a task takes a second."""
CONNECT = "sc://"
"""Begins the address of a server of Spark Connect."""
CONNECT_PORT = 15002
"""The port of such a server, unless its address has another."""
CONNECT_S = 10.0
"""It has to accept a connection within so many seconds."""
OVER_CONNECT = ("run", "session")
"""The commands that need no Java in this process."""
_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""The environment variable that is set if ``spark-submit`` has already started Java."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
LOCAL_DEFAULTS = {
    # ParallelGC: throughput counts, not latency. Stack size: when a stream fails, Spark searches the
    # message with a regular expression that recurses as deep as the message is long.
    JAVA_OPTIONS: "-XX:+UseParallelGC -XX:CompileThresholdScaling=5 -Xss16m",
    DRIVER_MEMORY: "3g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "16",
    # Memory that is taken at a time, and cleared, however few rows there are: by default up to 64 MB by each sort and each
    # aggregation of a task, and 4 MB by each broadcast, of which a query has one for each table that it reads.
    "spark.buffer.pageSize": "2m",
    "spark.broadcast.blockSize": "256k",
    "spark.sql.extensions.test.loadFromCp": "false",  # otherwise it takes a second to register MLlib
}
QUICK = 2_000_000
"""Below this number of records Java's optimising compiler (C2) costs more time than it saves: a third of the processor time of
a run on a million records."""
QUICK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss16m"
QUICK_JAVA_MEMORY = "-XX:MetaspaceSize=300m -XX:ReservedCodeCacheSize=128m -Xms1500m -Xmn800m"
"""Initial sizes of Java's memory areas. By default they are smaller, and Java collects garbage before each time it grows them,
which takes a tenth of the processor time of a run on a small log."""
CLUSTER_DEFAULTS = ("mapred-default.xml", "yarn-default.xml")
"""Files with Hadoop's defaults for jobs on a cluster."""
ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Settings for when all processes are on this machine: Spark listens on the loopback address only."""


_SILENCE = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
appender.console.filter.none.type = ThresholdFilter
appender.console.filter.none.level = off
"""
"""A log4j configuration that prints nothing. It has an appender, because Spark replaces a configuration without one, and level
``warn``, because Spark prints a message when it changes another level."""


def session(
    master: str | None,
    conf: Mapping[str, str],
    *,
    packages: str | None = None,
    is_verbose: bool = False,
    about: int | None = None,
    command: str = "session",
) -> contextlib.AbstractContextManager[SparkSession]:
    """A context manager for a Spark session. If ``master`` is None, Spark runs where ``spark-submit`` says, or on all cores
    of this machine; ``sc://HOST:PORT`` is a server of Spark Connect. ``about`` is the approximate number of records, if known:
    Java, or the queries of that server, are configured for it. ``command`` is the command that asks for it: each has an archive
    of the classes that it needs.

    Unless ``is_verbose``, Spark's log is silent; errors are raised. Raises PipelineError if there is no Java or Spark does not
    start; if no server of Spark Connect answers, or if ``command`` or ``packages`` are nothing for it.
    """
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    master = chosen_master(master)
    if master is not None and master.startswith(CONNECT):
        if command not in OVER_CONNECT:
            raise PipelineError(f"{command} cannot use Spark Connect: choose another --master than {master}")
        if packages:
            raise PipelineError(
                f"--packages is for a Spark that begins with this command: {master} has the jars it began with"
            )
        return _connected(master, {**DEFAULTS, **(FOR_SMALL if about is not None and about < SMALL else {}), **conf})
    return _started(master, conf, packages, about, command, is_verbose=is_verbose)


@contextlib.contextmanager
def _started(
    master: str | None,
    conf: Mapping[str, str],
    packages: str | None,
    about: int | None,
    command: str,
    *,
    is_verbose: bool,
) -> Iterator[SparkSession]:
    """A session of a Spark that this process starts, or that ``spark-submit`` has started."""
    is_submitted = _GATEWAY in os.environ
    java = None if is_submitted else find_java()
    is_local, is_here = is_one_process(master), is_one_machine(master)
    if is_here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {**DEFAULTS, **(LOCAL_DEFAULTS if is_local else {}), **(ON_THIS_MACHINE if is_here else {})}
    is_quick = is_local and about is not None and about < QUICK
    if is_quick:
        settings[JAVA_OPTIONS] = (
            QUICK_JAVA_OPTIONS if DRIVER_MEMORY in conf else f"{QUICK_JAVA_OPTIONS} {QUICK_JAVA_MEMORY}"
        )
        os.environ.setdefault(
            "SPARK_LAUNCHER_OPTS", QUICK_JAVA_OPTIONS
        )  # of Spark's launcher, a Java process of its own
    settings["spark.ui.showConsoleProgress"] = "false"  # progress.py prints lines instead
    if packages:
        settings["spark.jars.packages"] = packages
    builder = SparkSession.builder.appName("groupcoord pipeline")
    if master is not None:
        builder = builder.master(master)
    with tempfile.TemporaryDirectory(prefix="groupcoord-spark-") as folder:
        settings["spark.sql.warehouse.dir"] = folder
        settings.update(conf)
        if is_local and not is_verbose:
            quiet = Path(folder) / "log4j2.properties"
            quiet.write_text(_SILENCE, encoding="utf-8")
            settings[JAVA_OPTIONS] += f" -Dlog4j2.configurationFile={quiet}"
        if is_local and java is not None and JAVA_OPTIONS not in conf:
            # Java would print its messages about the archive on stdout.
            settings[JAVA_OPTIONS] += (
                f" {class_archive_options(java, command, is_quick=is_quick)}{'' if is_verbose else ' -Xlog:disable'}"
            )
        said = Path(folder) / "stderr.txt"
        is_silent = not is_verbose and not is_submitted
        try:
            with _java_says_it_to(said) if is_silent else contextlib.nullcontext():
                spark = builder.config(map=settings).getOrCreate()
        except PySparkException as problem:
            told = said.read_text(errors="replace").split("\n") if is_silent else []
            why = next((line for line in told if line.startswith(("Error", "Exception"))), "")
            raise PipelineError(f"Spark does not start: {problem}{f' ({why})' if why else ''}") from None
        try:
            spark.sparkContext.setLogLevel("WARN" if is_verbose else "OFF")
            logging.getLogger("DataFrameQueryContextLogger").setLevel(
                logging.NOTSET if is_verbose else logging.CRITICAL + 1
            )
            if is_local:
                _forget_cluster_defaults(spark)
            else:
                spark.sparkContext.addPyFile(str(packed(Path(folder))))
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _connected(remote: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session of the server of Spark Connect at ``remote``, whose Python processes get the package groupcoord."""
    host, _, port = remote.removeprefix(CONNECT).partition("/")[0].partition(":")
    try:
        socket.create_connection((host, int(port or CONNECT_PORT)), timeout=CONNECT_S).close()
    except (OSError, ValueError) as problem:  # PySpark itself would try again for minutes
        raise PipelineError(f"no server of Spark Connect answers at {remote}: {problem}") from None
    try:
        spark = SparkSession.builder.remote(remote).config(map=dict(settings)).create()
    except ImportError as problem:
        raise PipelineError(f"Spark Connect needs pip install 'groupcoord[connect]': {problem}") from None
    try:
        with tempfile.TemporaryDirectory(prefix="groupcoord-spark-") as folder:
            spark.addArtifacts(str(packed(Path(folder))), pyfile=True)
            yield spark
    finally:
        spark.stop()


def _forget_cluster_defaults(spark: SparkSession) -> None:
    """Remove the defaults of YARN and MapReduce, two thirds of Hadoop's configuration, which Spark sends to the tasks of each
    query once for each table that it reads. In one process nobody asks for them; what a user has set stays."""
    java: Any = spark._jvm  # noqa: SLF001 - the way to Hadoop
    configuration: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    java.org.apache.hadoop.fs.FileSystem.getLocal(configuration)  # adds defaults of its own, and reads all anew
    written = java.java.io.StringWriter()
    java.org.apache.hadoop.conf.Configuration.dumpConfiguration(configuration, written)
    for one in json.loads(written.toString())["properties"]:
        if one["resource"] in CLUSTER_DEFAULTS:
            configuration.unset(one["key"])


def map_in_arrow(frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], table: TableSchema) -> DataFrame:
    """Apply ``function``, which yields record batches of ``table``, to ``frame``: in tasks, or in this process (MAP_HERE)."""
    spark = frame.sparkSession
    if spark.conf.get(MAP_HERE, "false") == "false":
        return frame.mapInArrow(function, table.ddl)
    made = pa.Table.from_batches(function(iter(frame.toArrow().to_batches())), schema=arrow_schema(table.columns))
    return spark.createDataFrame(made)


def is_connect(spark: SparkSession) -> bool:
    """Is it a session of Spark Connect? It has no SparkContext and no Java in this process, and its tables cannot be joined
    with those of another session, such as a clone."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def twin(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """A clone of the session ``spark`` with the settings ``conf`` on top; ``spark`` itself is not changed. Over Spark Connect
    it is ``spark`` as it is."""
    if is_connect(spark):
        return spark
    java: Any = spark._jsparkSession.cloneSession()  # noqa: SLF001 - Python has no name for it
    made = SparkSession(spark.sparkContext, java)
    for name, value in conf.items():
        made.conf.set(name, value)
    return made


def tag_jobs(spark: SparkSession, tag: str) -> None:
    """Let ``cancel_jobs`` cancel what this thread asks of ``spark`` from now on."""
    (spark.addTag if is_connect(spark) else spark.sparkContext.addJobTag)(tag)


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel all running jobs that threads have tagged with ``tag``."""
    (spark.interruptTag if is_connect(spark) else spark.sparkContext.cancelJobsWithTag)(tag)


def chosen_master(master: str | None) -> str | None:
    """The master URL: ``master`` if it is given, else SPARK_MASTER, else all local cores; None if ``spark-submit`` decides."""
    return master if master or _GATEWAY in os.environ else os.environ.get("SPARK_MASTER") or LOCAL


@contextlib.contextmanager
def _java_says_it_to(path: Path) -> Iterator[None]:
    """Redirect what Java writes to stderr directly (not through its log), such as warnings about modules, to a file.

    A process that is started in the block keeps the file as its stderr until it ends.
    """
    sys.stderr.flush()
    before = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def is_one_process(master: str | None) -> bool:
    """Does Spark run in one process? Not with ``local-cluster[…]``, and not if ``spark-submit`` decides (None)."""
    return master is not None and re.fullmatch(r"local(\[.*\])?", master) is not None


def is_one_machine(master: str | None) -> bool:
    """Does all of Spark run on this machine? Also with ``local-cluster[…]``."""
    return master is not None and (is_one_process(master) or master.startswith("local-cluster["))


def packed(folder: Path) -> Path:
    """Pack the package groupcoord into a zip file, for executors on which it is not installed."""
    root = Path(groupcoord.__file__).parent
    path = folder / "groupcoord.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(root.rglob("*.py")):
            archive.write(source, source.relative_to(root.parent))
    return path
