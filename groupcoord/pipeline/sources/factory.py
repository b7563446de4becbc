"""Creates the source that ``--source`` names: a SourcePlan to read it once, or a StreamSource to follow it.

Sources are ``kafka:HOST:PORT``, ``segments:DIR``, ``jsonl:FILE`` and ``connector:HOST:PORT``; ``kafka`` and ``connector`` can
be followed.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from groupcoord.client.log_reader import READ_UNCOMMITTED
from groupcoord.pipeline.errors import PipelineError, SourceWarning
from groupcoord.pipeline.sources import jsonl_source, kafka_source
from groupcoord.pipeline.sources.end_offsets import EarlierEnds, ends_of_cluster, latest_ends
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
from groupcoord.pipeline.sources.spark_kafka_source import ConnectorCluster
from groupcoord.pipeline.spark_session import is_connect

FEW = 50_000
"""A source with fewer records is read in this process, not in Spark's tasks."""
BYTES_A_RECORD = 85
"""The size of a commit in a large uncompressed batch, to estimate the number of records."""
BYTES_A_LINE = 250
"""The size of a commit as a line of JSON."""
BYTES_TO_SURVEY = 4 * PIECE_BYTES
"""The bytes of segments that can be surveyed in the time that Spark takes to start a task."""


@dataclass(frozen=True, kw_only=True)
class SourcePlan:
    """How to read a source once.

    - ``spec``: the text after ``--source``.
    - ``read``: gives the records as LOG, or, if ``tasks`` is set, that many rows with the numbers of the tasks that read them.
    - ``open_batches``: in a task, turns the record batches of ``read`` into batches of LOG, and of PLACES for hidden records.
    - ``about``: the approximate number of records, if known before Spark starts; ``records``: the exact number, if known.
    - ``ends``: turns CURRENT_OFFSETS into END_OFFSETS by asking a live cluster.
    - ``asked_at``: when that cluster was asked where the log ends. What was committed later is not read.
    - ``hidden``: the PLACES of hidden records, for sources whose batches do not contain them.
    - ``warnings`` are known before reading, ``remarks`` gives those that are known after it.
    - ``offsets_retention_ms``: the cluster's retention of offsets, if known.
    - ``survey``: gives the plan to use instead, for sources that are surveyed with Spark before they can be read.
    """

    spec: str
    read: Callable[[SparkSession], DataFrame]
    about: int | None = None
    tasks: int | None = None
    open_batches: Callable[[Iterator[Any]], Iterator[Any]] = iter
    records: int | None = None
    warnings: list[SourceWarning] = field(default_factory=list)
    ends: Callable[[DataFrame], DataFrame] | None = None
    asked_at: datetime | None = None
    hidden: Callable[[SparkSession], DataFrame] | None = None
    remarks: Callable[[], list[SourceWarning]] = list
    offsets_retention_ms: int | None = None
    survey: "Callable[[SparkSession], SourcePlan] | None" = None

    @property
    def is_read_here(self) -> bool:
        """Is the source so small that it is read in this process, faster than Spark could start a task?"""
        return self.tasks is not None and self.about is not None and self.about < FEW

    def surveyed(self, spark: SparkSession) -> "SourcePlan":
        """The result of the survey, or this plan if it needs none. Raises PipelineError if there is nothing to read."""
        return self if self.survey is None else self.survey(spark)


def plan_source(spec: str, options: Mapping[str, str]) -> SourcePlan:
    """The plan for reading the source ``spec`` with the source's ``options``. Raises PipelineError."""
    kind, _, what = spec.partition(":")
    if kind not in _PLANS or not what:
        raise PipelineError(
            f"{spec!r} is not a source; there are kafka:HOST:PORT, segments:DIR, jsonl:FILE and connector:HOST:PORT"
        )
    return _PLANS[kind](spec, what, options)


Range = tuple[int, int]
"""A partition of the log and the offset at which a task begins to read it: this identifies a range."""


class _MergedCounts(AccumulatorParam[dict[Range, tuple[int, int]]]):
    """A Spark accumulator of counts by range. A range that is reported twice, because its task was retried, counts once."""

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
    now_ms = time.time_ns() // 1_000_000
    asked_at = datetime.fromtimestamp(now_ms / 1000, UTC)
    if not parts:
        raise PipelineError(
            f"{asked.get('topic', kafka_source.TOPIC)} of {bootstrap} is empty: no group has ever committed there"
        )
    about = sum(part.end - part.start for part in parts)
    with ClusterReader(asked) as cluster:
        retention_ms = cluster.offsets_retention_ms()
        asked["bootstrap"] = cluster.bootstrap()  # a broker may be restarted while the log is read
    # What groups commit later is not in the parts: the log may be read for minutes, while topics grow.
    earlier = EarlierEnds(latest_ends(None, asked), has_others=False)
    ends = partial(ends_of_cluster, options=asked, now_ms=now_ms, earlier=earlier)

    def survey(spark: SparkSession) -> SourcePlan:
        tell, remarks = _counts_of_hidden(spark)
        return SourcePlan(
            spec=spec,
            read=_numbers(len(parts)),
            about=about,
            tasks=len(parts),
            open_batches=_by_number(lambda number: kafka_source.fetch_with_places(asked, parts[number], tell)),
            ends=ends,
            asked_at=asked_at,
            remarks=remarks,
            offsets_retention_ms=retention_ms,
        )

    return SourcePlan(spec=spec, read=_not_surveyed, about=about, offsets_retention_ms=retention_ms, survey=survey)


def _counts_of_hidden(spark: SparkSession) -> tuple[kafka_source.Tell, Callable[[], list[SourceWarning]]]:
    """A function with which tasks tell how many records they have hidden, and one that gives the remarks about all of them.
    Spark Connect has nothing by which tasks could tell it."""
    if is_connect(spark):
        return (lambda *_: None), list
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

    return tell, remarks


def _numbers(tasks: int) -> Callable[[SparkSession], DataFrame]:
    """A DataFrame of task numbers, one row in each of ``tasks`` tasks."""
    return lambda spark: spark.range(0, tasks, 1, tasks)


def _by_number(read: Callable[[int], Iterable[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function that reads the data of each task number that comes in. So keys and values never pass through Java."""
    return lambda batches: (
        found for batch in batches for number in batch.column(0).to_pylist() for found in read(number)
    )


def _plan_segments(spec: str, directory: str, _: Mapping[str, str]) -> SourcePlan:
    if "://" in directory:
        raise PipelineError(
            f"{directory} is not a directory of a disk: copy the folders {kafka_source.TOPIC}-N to one, or mount what they are "
            "in"
        )
    folder = Path(directory).absolute()  # executors run in other working directories
    size = sum(path.stat().st_size for _, paths in find_segments(folder) for path in paths)
    survey = partial(_survey_segments, spec, folder, size)
    return SourcePlan(spec=spec, read=_not_surveyed, about=size // BYTES_A_RECORD, survey=survey)


def _not_surveyed(_: SparkSession) -> DataFrame:
    raise AssertionError("it is read by the plan that the survey gives")


def _survey_segments(spec: str, directory: Path, size: int, spark: SparkSession) -> SourcePlan:
    def in_tasks(look: Survey, folders: list[Folder]) -> list[SegmentSurvey]:
        tasks = min(len(folders), size // BYTES_TO_SURVEY + 2 * spark.sparkContext.defaultParallelism)
        return spark.sparkContext.parallelize(folders, tasks).map(look).collect()

    is_here = size < BYTES_TO_SURVEY or is_connect(spark)
    found = survey(directory) if is_here else survey(directory, each=in_tasks)
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
    """Combine pieces, in order, into tasks of at most ``most_bytes``, so that fifty small files do not become fifty tasks."""
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
    cluster = ConnectorCluster(bootstrap, options)

    def survey(spark: SparkSession) -> SourcePlan:
        if is_connect(spark):
            raise PipelineError(f"{spec} needs a Spark without Connect; kafka:{bootstrap} does not")
        log = cluster.log_bounds(is_stable=True)
        now_ms = time.time_ns() // 1_000_000
        earlier = EarlierEnds(cluster.latest_ends(None), has_others=False)
        return SourcePlan(
            spec=spec,
            read=partial(cluster.read, log=log),
            ends=partial(cluster.end_offsets, now_ms=now_ms, earlier=earlier),
            asked_at=datetime.fromtimestamp(now_ms / 1000, UTC),
        )

    return SourcePlan(spec=spec, read=_not_surveyed, survey=survey)


_PLANS = {"kafka": _plan_kafka, "segments": _plan_segments, "jsonl": _plan_jsonl, "connector": _plan_connector}


MOST = "500000"
"""The default of the option ``maxrecords``: the most offsets that a batch of a stream reads."""

Positions = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """How to follow a source as a stream.

    - ``identity``: tells one source from another, so that a watch is not continued with another cluster or topic.
    - ``load``: gives LOG as a streaming DataFrame. ``topic`` is the topic of the log.
    - ``positions``: the next offset of each partition of the log, from the text of the offsets in Spark's checkpoint.
    - ``bounds``: asks the cluster for the first offset and the end of each partition of the log.
    - ``ends``: asks the cluster for END_OFFSETS, given CURRENT_OFFSETS, the time in ms, and ends that were asked for at that
      time. ``latest_ends`` asks for the ends of these (None: all) partitions.
    - ``knows_transactions``: does ``ends`` say which transactions are open?
    - ``offsets_retention_ms``: the cluster's retention of offsets, if known.
    """

    spec: str
    identity: dict[str, str]
    topic: str = kafka_source.TOPIC
    load: Callable[[SparkSession], DataFrame]
    positions: Callable[[str], Positions]
    bounds: Callable[[], kafka_source.Bounds]
    ends: Callable[[DataFrame, int, EarlierEnds | None], DataFrame]
    latest_ends: Callable[[set[tuple[str, int]] | None], dict[tuple[str, int], int]]
    knows_transactions: bool = True
    offsets_retention_ms: int | None = None


def open_stream(spec: str, options: Mapping[str, str]) -> StreamSource:
    """Open the source ``spec`` as a stream. Raises PipelineError if it cannot be followed or does not respond."""
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
        ends=lambda wanted, now_ms, earlier: ends_of_cluster(wanted, asked, now_ms, earlier),
        latest_ends=partial(latest_ends, options=asked),
        offsets_retention_ms=retention_ms,
    )


def _stream_connector(spec: str, bootstrap: str, options: Mapping[str, str]) -> StreamSource:
    cluster = ConnectorCluster(bootstrap, {"maxOffsetsPerTrigger": MOST, **options})
    return StreamSource(
        spec=spec,
        identity={"topic": kafka_source.TOPIC, "by the connector at": bootstrap},
        load=cluster.stream,
        positions=lambda text: dict(json.loads(text)[kafka_source.TOPIC]),
        bounds=cluster.log_bounds,
        ends=cluster.end_offsets,
        latest_ends=cluster.latest_ends,
        knows_transactions=False,
    )
