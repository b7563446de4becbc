"""The source that ``--source`` names, to be read once or followed as a stream.

There are ``kafka:HOST:PORT``, ``segments:DIR``, ``jsonl:FILE`` and ``connector:HOST:PORT``. The first and the last can be
followed.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from groupcoord.client.log_reader import READ_UNCOMMITTED
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.sources import jsonl_source, kafka_source, spark_kafka_source
from groupcoord.pipeline.sources.end_offsets import ends_of_cluster
from groupcoord.pipeline.sources.kafka_source import ClusterReader
from groupcoord.pipeline.sources.segment_files import (
    PIECE_BYTES,
    Folder,
    SegmentSlice,
    SegmentSurvey,
    Survey,
    find_segments,
    hidden_remarks,
    read_piece,
    survey,
)

FEW = 50_000
"""Fewer records are read in this process."""
BYTES_A_RECORD = 85
"""A commit in a large batch without compression."""
BYTES_A_LINE = 250
"""The same, as a line of JSON."""
BYTES_TO_SURVEY = 4 * PIECE_BYTES
"""So many bytes are looked through in the time that a task of Spark takes to begin."""


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """One reading of a source.

    ``spec`` is the text after ``--source``. ``about`` is about how many records there are, as far as that is known before Spark
    starts. ``read`` gives the records as LOG, or the numbers of the tasks that will read them, of which there are ``tasks``;
    ``open_batches`` turns its record batches into such of LOG, and of PLACES for what is hidden, inside the task that decodes
    them. ``records`` is how many there must be; None if the source cannot know. ``ends``, of a live cluster, turns
    CURRENT_OFFSETS into END_OFFSETS. ``hidden`` are the PLACES of what is hidden, if batches do not have them. ``remarks`` are
    what is known once all was read. ``offsets_retention_ms`` is how long the cluster keeps offsets, if it tells. ``survey``
    gives the plan to read by, where tasks of Spark have to look through the source before it is read.
    """

    spec: str
    read: Callable[[SparkSession], DataFrame]
    about: int | None = None
    tasks: int | None = None
    open_batches: Callable[[Iterator[Any]], Iterator[Any]] = iter
    records: int | None = None
    warnings: list[SourceWarning] = field(default_factory=list)
    ends: Callable[[DataFrame], DataFrame] | None = None
    hidden: Callable[[SparkSession], DataFrame] | None = None
    remarks: Callable[[], list[SourceWarning]] = list
    offsets_retention_ms: int | None = None
    survey: "Callable[[SparkSession], SourcePlan] | None" = None

    @property
    def is_read_here(self) -> bool:
        """Are there so few records that this process has read them before a task of Spark has begun?"""
        return self.tasks is not None and self.about is not None and self.about < FEW

    def surveyed(self, spark: SparkSession) -> "SourcePlan":
        """The plan to read by. Raises PipelineError if there is nothing that could be read."""
        return self if self.survey is None else self.survey(spark)


def plan_source(spec: str, options: Mapping[str, str]) -> SourcePlan:
    """The plan for the source that ``spec`` names; ``options`` are those of the source. Raises PipelineError."""
    kind, _, what = spec.partition(":")
    if kind not in _PLANS or not what:
        raise PipelineError(
            f"{spec!r} is no source; there are kafka:HOST:PORT, segments:DIR, jsonl:FILE and connector:HOST:PORT"
        )
    return _PLANS[kind](spec, what, options)


Range = tuple[int, int]
"""A partition of the log, and where in it a task begins to read."""


class _MergedCounts(AccumulatorParam[dict[Range, tuple[int, int]]]):
    """What tasks tell of ranges; who tells it twice, because a task was tried again, is heard once."""

    def zero(self, value: dict[Range, tuple[int, int]]) -> dict[Range, tuple[int, int]]:
        del value
        return {}

    def addInPlace(  # noqa: N802 - Spark's name
        self, value1: dict[Range, tuple[int, int]], value2: dict[Range, tuple[int, int]]
    ) -> dict[Range, tuple[int, int]]:
        return {**value1, **value2}


def _plan_kafka(spec: str, bootstrap: str, options: Mapping[str, str]) -> SourcePlan:
    asked = {**options, "bootstrap": bootstrap}
    parts = kafka_source.ranges_to_the_end(asked)
    if not parts:
        raise PipelineError(
            f"{asked.get('topic', kafka_source.TOPIC)} of {bootstrap} is empty: no group has ever committed there"
        )
    about = sum(part.end - part.start for part in parts)
    with ClusterReader(asked) as cluster:
        retention_ms = cluster.offsets_retention_ms()
    now_ms = time.time_ns() // 1_000_000
    ends = partial(ends_of_cluster, options=asked, now_ms=now_ms)

    def survey(spark: SparkSession) -> SourcePlan:
        hidden = spark.sparkContext.accumulator({}, _MergedCounts())

        def tell(part: kafka_source.OffsetRange, aborted: int, without_end: int) -> None:
            hidden.add({(part.partition, part.start): (aborted, without_end)})

        def remarks() -> list[SourceWarning]:
            found = groupby(sorted(hidden.value.items()), key=lambda item: item[0][0])
            return [
                remark
                for partition, told in found
                for remark in hidden_remarks(partition, *map(sum, zip(*(counts for _, counts in told), strict=True)))
            ]

        return SourcePlan(
            spec=spec,
            read=_numbers(len(parts)),
            about=about,
            tasks=len(parts),
            open_batches=_by_number(lambda number: kafka_source.fetch_with_places(asked, parts[number], tell)),
            ends=ends,
            remarks=remarks,
        )

    return SourcePlan(
        spec=spec, read=_not_surveyed, about=about, ends=ends, offsets_retention_ms=retention_ms, survey=survey
    )


def _numbers(tasks: int) -> Callable[[SparkSession], DataFrame]:
    """The numbers of the tasks that read, one in each."""
    return lambda spark: spark.range(0, tasks, 1, tasks)


def _by_number(read: Callable[[int], Iterable[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Reads what the tasks are to read whose numbers come in: keys and values never go through Java."""
    return lambda batches: (
        found for batch in batches for number in batch.column(0).to_pylist() for found in read(number)
    )


def _plan_segments(spec: str, directory: str, _: Mapping[str, str]) -> SourcePlan:
    if "://" in directory:
        raise PipelineError(
            f"{directory} is no directory of a disk: copy the folders {kafka_source.TOPIC}-N to one, or mount what they are in"
        )
    folder = Path(directory).absolute()  # executors of a cluster are in directories of their own
    size = sum(path.stat().st_size for _, paths in find_segments(folder) for path in paths)
    survey = partial(_survey_segments, spec, folder, size)
    return SourcePlan(spec=spec, read=_not_surveyed, about=size // BYTES_A_RECORD, survey=survey)


def _not_surveyed(_: SparkSession) -> DataFrame:
    raise AssertionError("it is read by the plan that the survey gives")


def _survey_segments(spec: str, directory: Path, size: int, spark: SparkSession) -> SourcePlan:
    def in_tasks(look: Survey, folders: list[Folder]) -> list[SegmentSurvey]:
        tasks = min(len(folders), size // BYTES_TO_SURVEY + 2 * spark.sparkContext.defaultParallelism)
        return spark.sparkContext.parallelize(folders, tasks).map(look).collect()

    found = survey(directory) if size < BYTES_TO_SURVEY else survey(directory, each=in_tasks)
    tasks = split_into_tasks(found.pieces, PIECE_BYTES)
    return SourcePlan(
        spec=spec,
        read=_numbers(len(tasks)),
        about=found.records,
        tasks=len(tasks),
        open_batches=_by_number(lambda number: chain.from_iterable(map(read_piece, tasks[number]))),
        records=found.records,
        warnings=found.warnings,
    )


def split_into_tasks(pieces: list[SegmentSlice], most_bytes: int) -> list[list[SegmentSlice]]:
    """The pieces in lists of at most ``most_bytes``, in order: fifty small files are no work for fifty tasks."""
    tasks: list[list[SegmentSlice]] = []
    size = 0
    for piece in pieces:
        size += piece.end - piece.start
        if not tasks or size > most_bytes:
            tasks.append([])
            size = piece.end - piece.start
        tasks[-1].append(piece)
    return tasks


def _plan_jsonl(spec: str, path: str, _: Mapping[str, str]) -> SourcePlan:
    jsonl_source.check(path)
    return SourcePlan(
        spec=spec,
        about=None if "://" in path else Path(path).stat().st_size // BYTES_A_LINE,
        read=partial(jsonl_source.read, path=path),
        hidden=partial(jsonl_source.hidden, path=path),
    )


def _plan_connector(spec: str, bootstrap: str, options: Mapping[str, str]) -> SourcePlan:
    return SourcePlan(spec=spec, read=partial(spark_kafka_source.read, bootstrap=bootstrap, options=options))


_PLANS = {"kafka": _plan_kafka, "segments": _plan_segments, "jsonl": _plan_jsonl, "connector": _plan_connector}


MOST = "500000"
"""How many offsets are read a batch, at most, unless the option ``maxrecords`` says otherwise."""

Positions = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """``identity`` tells one source from another. ``load`` gives LOG, for ever. ``positions`` are where each partition of the
    log is at, as Spark's checkpoint says it. ``bounds`` and ``ends`` ask the cluster: the first offsets and ends of the log,
    and, at a time in milliseconds, END_OFFSETS for CURRENT_OFFSETS; None where there is no way to ask.
    ``offsets_retention_ms`` is how long the cluster keeps offsets, if it tells. ``topic`` is the topic of the log.
    """

    spec: str
    identity: dict[str, str]
    topic: str = kafka_source.TOPIC
    load: Callable[[SparkSession], DataFrame]
    positions: Callable[[str], Positions]
    bounds: Callable[[], kafka_source.Bounds] | None = None
    ends: Callable[[DataFrame, int], DataFrame] | None = None
    offsets_retention_ms: int | None = None


def open_stream(spec: str, options: Mapping[str, str]) -> StreamSource:
    """The stream that ``spec`` names. Raises PipelineError if it is no stream, or does not answer."""
    kind, _, bootstrap = spec.partition(":")
    if kind == "kafka" and bootstrap:
        return _stream_kafka(spec, bootstrap, options)
    if kind == "connector" and bootstrap:
        return _stream_connector(spec, bootstrap, options)
    raise PipelineError(f"{spec!r} cannot be watched; kafka:HOST:PORT and connector:HOST:PORT can")


def _stream_kafka(spec: str, bootstrap: str, options: Mapping[str, str]) -> StreamSource:
    asked = {"maxrecords": MOST, **options, "bootstrap": bootstrap}
    topic = asked.get("topic", kafka_source.TOPIC)
    with ClusterReader(asked) as cluster:
        identity = {"topic": topic, "of cluster": cluster.cluster_id() or bootstrap}
        retention_ms = cluster.offsets_retention_ms()

    def load(spark: SparkSession) -> DataFrame:
        spark.dataSource.register(kafka_source.OffsetsSource)
        return spark.readStream.format(kafka_source.NAME).options(**asked).load()

    return StreamSource(
        spec=spec,
        identity=identity,
        topic=topic,
        load=load,
        positions=json.loads,
        bounds=partial(kafka_source.bounds, asked, READ_UNCOMMITTED),
        ends=lambda wanted, now_ms: ends_of_cluster(wanted, asked, now_ms),
        offsets_retention_ms=retention_ms,
    )


def _stream_connector(spec: str, bootstrap: str, options: Mapping[str, str]) -> StreamSource:
    asked = {"maxOffsetsPerTrigger": MOST, **options}
    return StreamSource(
        spec=spec,
        identity={"topic": spark_kafka_source.TOPIC, "by the connector at": bootstrap},
        load=partial(spark_kafka_source.stream, bootstrap=bootstrap, options=asked),
        positions=lambda text: dict(json.loads(text)[spark_kafka_source.TOPIC]),
    )
