"""Runs the streaming query of a watch, and restarts it after outages of the cluster, until the watch is stopped."""

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from groupcoord.pipeline.errors import PipelineError, SourceWarning, plain_reason
from groupcoord.pipeline.sources.kafka_source import ClusterUnavailableError
from groupcoord.pipeline.watch.batch_writer import BatchWriter
from groupcoord.pipeline.watch.output_directory import NONE

_STEP_S = 0.25
"""The interval in seconds at which the loop checks whether to stop."""
_AGAIN_S = 1.0
"""The interval in seconds at which the loop checks whether the cluster is back."""
_IDLE_S = 10.0
"""The interval in seconds at which lags are refreshed while no commits come; not shorter than that of batches."""
_GONE = re.compile(
    r"(?:ClusterUnavailableError: (.+)|org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect)Exception: (.+))"
)
_SLOW = "Python worker failed to connect back"
"""Spark's message when a worker process takes more than ten seconds to start; there is no setting for that."""
_SLOW_TIMES = 5
"""How many times that is retried by a watch with an end (``for_s``, ``is_once``)."""
_TWO = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY")


@dataclass(frozen=True, kw_only=True)
class WatchSchedule:
    """A batch every ``every_s`` seconds, for ``for_s`` seconds (None: until stopped). ``is_once``: read what is in the log
    now, then end."""

    every_s: float = 5.0
    for_s: float | None = None
    is_once: bool = False


def run_watch(spark: SparkSession, batch_writer: BatchWriter, schedule: WatchSchedule, stop: threading.Event) -> None:
    """Watch until ``stop`` is set or the time is over. Raises PipelineError for errors that a retry does not solve."""
    deadline = math.inf if schedule.for_s is None else time.monotonic() + schedule.for_s
    say, is_back, slow = batch_writer.say, True, 0

    def is_over() -> bool:
        return stop.is_set() or time.monotonic() >= deadline

    while not is_over():
        try:
            _check_positions(batch_writer)
            if not is_back:
                say("going on")
                is_back = True
            _run_query(spark, batch_writer, schedule, is_over)
        except (PipelineError, PySparkException, Py4JJavaError) as problem:
            if _SLOW in str(problem) and (slow < _SLOW_TIMES or not schedule.is_once):
                slow, batch_writer.problem = slow + 1, None
                say("this machine was too busy to start a Python process in ten seconds; once more")
                stop.wait(_AGAIN_S)
                continue
            words = _why_gone(batch_writer.problem or problem) or _why_gone(problem)
            if words is None or schedule.is_once:
                raise _plain(batch_writer.problem or problem) from None
            batch_writer.problem = None
            if is_back:
                say(f"{words}; waiting")
            is_back = False
            stop.wait(_AGAIN_S)
        else:
            return


def _check_positions(batch_writer: BatchWriter) -> None:
    """Check that the log still has the next offset of each partition, and that it was not recreated."""
    stream = batch_writer.stream
    bounds = stream.bounds()
    batch_writer.warnings.clear()
    for number, position in sorted(batch_writer.manifest.positions.items(), key=lambda item: int(item[0])):
        partition = int(number)
        if partition not in bounds or bounds[partition][1] < position:
            raise PipelineError(
                f"{stream.spec} has no offset {position} of partition {partition} of the log, up to which it was read before: "
                "it is another log; choose another --out"
            )
        first = bounds[partition][0]
        if first > position:
            what = f"offsets {position} to {first - 1} were deleted from the log before they were read"
            batch_writer.warnings.append(SourceWarning(stream.spec, what, partition, None, None))
    batch_writer.is_resumed = batch_writer.manifest.batch > NONE


def _run_query(
    spark: SparkSession, batch_writer: BatchWriter, schedule: WatchSchedule, is_over: Callable[[], bool]
) -> None:
    """One query, until it ends."""
    trigger = {"availableNow": True} if schedule.is_once else {"processingTime": f"{schedule.every_s} seconds"}
    writer = batch_writer.stream.load(spark).writeStream.foreachBatch(batch_writer).trigger(**trigger)
    query = writer.option("checkpointLocation", batch_writer.output.checkpoint).start()
    try:
        while not query.awaitTermination(_STEP_S):
            if is_over():
                batch_writer.close()
                break
            idle_s = max(_IDLE_S, schedule.every_s)
            if not schedule.is_once and time.monotonic() - batch_writer.last > idle_s:
                batch_writer.refresh(spark, idle_s)
    finally:
        query.stop()


def _why_gone(problem: BaseException) -> str | None:
    """The message if the cluster cannot be reached, which may pass; None for any other error."""
    if isinstance(problem, ClusterUnavailableError):
        return str(problem)
    found = _GONE.search(str(problem))
    return None if found is None else str(found[1] or found[2]).strip()


def _plain(problem: BaseException) -> BaseException:
    """``problem`` as a PipelineError of one line, if its kind is known."""
    if isinstance(problem, PipelineError):
        return problem
    if not isinstance(problem, Py4JError | PySparkException):
        return problem
    if _TWO.search(str(problem)):
        return PipelineError("another watch is using this checkpoint")
    return PipelineError(_why_gone(problem) or plain_reason(problem))
