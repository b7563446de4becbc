"""What ``--source`` says: ``kafka:HOST:PORT``, ``segments:DIR``, ``jsonl:FILE``, ``connector:HOST:PORT``."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.sources import connector_source, jsonl_source, kafka_source
from groupcoord.pipeline.sources.end_offsets import ends_of_cluster
from groupcoord.pipeline.sources.segment_files import PIECE_BYTES, SegmentSlice, read_piece, survey
from groupcoord.pipeline.sources.source_plan import SourcePlan

KINDS = ("kafka", "segments", "jsonl", "connector")


def plan_source(spec: str, options: Mapping[str, str]) -> SourcePlan:
    """The plan for the source that ``spec`` names; ``options`` are those of the source. Raises PipelineError."""
    kind, _, what = spec.partition(":")
    if kind not in KINDS or not what:
        raise PipelineError(
            f"{spec!r} is no source; there are kafka:HOST:PORT, segments:DIR, jsonl:FILE and connector:HOST:PORT"
        )
    make: dict[str, Callable[[str, str, Mapping[str, str]], SourcePlan]] = {
        "kafka": _kafka,
        "segments": _segments,
        "jsonl": _jsonl,
        "connector": _connector,
    }
    return make[kind](spec, what, options)


def _kafka(spec: str, bootstrap: str, options: Mapping[str, str]) -> SourcePlan:
    asked = {**options, "bootstrap": bootstrap}
    bounds = kafka_source.bounds(asked)
    if not any(end > start for start, end in bounds.values()):
        raise PipelineError(
            f"{asked.get('topic', kafka_source.TOPIC)} of {bootstrap} is empty: no group has ever committed there"
        )
    asked["ranges"] = json.dumps(bounds)

    def read(spark: SparkSession) -> DataFrame:
        spark.dataSource.register(kafka_source.OffsetsSource)
        return spark.read.format(kafka_source.NAME).options(**asked).load()

    now_ms = time.time_ns() // 1_000_000
    return SourcePlan(spec=spec, read=read, ends=partial(ends_of_cluster, bootstrap=bootstrap, now_ms=now_ms))


def _segments(spec: str, directory: str, options: Mapping[str, str]) -> SourcePlan:
    del options
    found = survey(Path(directory))
    tasks = split_into_tasks(found.pieces, PIECE_BYTES)

    def read(spark: SparkSession) -> DataFrame:
        return spark.range(0, len(tasks), 1, len(tasks))

    return SourcePlan(
        spec=spec, read=read, open_batches=open_slices(tasks), records=found.records, warnings=found.warnings
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


def open_slices(tasks: list[list[SegmentSlice]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Reads the pieces of the tasks whose numbers come in: keys and values never go through Java."""

    def open_batches(batches: Iterator[Any]) -> Iterator[Any]:
        numbers = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        pieces = chain.from_iterable(tasks[number] for number in numbers)
        return chain.from_iterable(read_piece(piece) for piece in pieces)

    return open_batches


def _jsonl(spec: str, path: str, options: Mapping[str, str]) -> SourcePlan:
    del options
    jsonl_source.check(path)
    return SourcePlan(spec=spec, read=partial(jsonl_source.read, path=path))


def _connector(spec: str, bootstrap: str, options: Mapping[str, str]) -> SourcePlan:
    return SourcePlan(spec=spec, read=partial(connector_source.read, bootstrap=bootstrap, options=options))
