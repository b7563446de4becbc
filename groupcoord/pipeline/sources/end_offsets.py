"""END_OFFSETS, the log end offsets of topics from which lag is computed: from the cluster, or from a CSV or JSON file.

From a cluster also come the log start offsets, open transactions, and the time of the first record that a group has not read.
Kafka has no request for the timestamp of an offset: each one costs a Fetch, so only a limited number is asked for.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupcoord.client.log_reader import EARLIEST, KNOWN_TRIES, LATEST, READ_UNCOMMITTED
from groupcoord.pipeline.arrow_columns import EARLIEST_MS, LATEST_MS, arrow_schema
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.hadoop_files import url_of
from groupcoord.pipeline.schemas import END_OFFSETS
from groupcoord.pipeline.sources import kafka_source
from groupcoord.pipeline.sources.kafka_source import ClusterReader

MOST_ASKED = 1_000
"""For at most this many committed offsets, those with the longest lags, the first unread record is fetched."""
ASKING_S = 10.0
"""The time limit of these fetches in seconds: records in a remote tier (KIP-405) take long."""
_NEEDED = {"topic", "partition", "end_offset"}
_ASKED = {"unread", "open_transaction"}
"""The columns that only a cluster can provide."""
Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True)
class EarlierEnds:
    """The end offsets of partitions at an earlier time. ``has_others``: may the other partitions get their end of now?"""

    ends: Offsets
    has_others: bool


def ends_of_cluster(
    current: DataFrame, options: Mapping[str, str], now_ms: int, earlier: EarlierEnds | None = None
) -> DataFrame:
    """Ask the cluster for END_OFFSETS of the partitions in ``current`` (``topic``, ``partition``, ``committed_offset``).
    Partitions that do not exist, or of which no broker tells the end, have no row. With ``earlier``, ``now_ms`` is the time of
    these ends."""
    places = current.groupBy("topic", "partition").agg(F.collect_set("committed_offset").alias("committed"))
    return places.coalesce(1).mapInArrow(_asking(options, now_ms, earlier), END_OFFSETS.ddl)


def latest_ends(places: set[tuple[str, int]] | None, options: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """The ends of ``places`` (None: of all partitions), without those that do not exist or that no broker tells."""
    with ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        return cluster.known_offsets(cluster.all_partitions() if places is None else places, LATEST)


def _asking(
    options: Mapping[str, str], now_ms: int, earlier: EarlierEnds | None = None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        rows: list[dict[str, Any]] = []
        committed: dict[tuple[str, int], list[int]] = {}
        with ClusterReader(options, isolation_level=READ_UNCOMMITTED, tries=KNOWN_TRIES) as cluster:
            for batch in batches:
                topics, partitions, offsets = (column.to_pylist() for column in batch.columns)
                wanted = set(zip(topics, partitions, strict=True))
                committed |= zip(zip(topics, partitions, strict=True), offsets, strict=True)
                starts = cluster.known_offsets(wanted, EARLIEST)
                ends = as_of(earlier, cluster.known_offsets(wanted, LATEST))
                rows += _rows(starts, ends, now_ms, kafka_source.held_up_partitions(options, ends))
            fetch_first_unread(cluster, rows, committed)
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(END_OFFSETS.columns))

    return ask


def end_offset_rows(starts: Offsets, ends: Offsets, now_ms: int) -> Any:
    """END_OFFSETS of ``ends`` as an Arrow table, without what only ``kafka:`` asks for."""
    return pa.Table.from_pylist(_rows(starts, ends, now_ms, {}), schema=arrow_schema(END_OFFSETS.columns))


def _rows(
    starts: Offsets, ends: Offsets, now_ms: int, held_up: Mapping[tuple[str, int], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "partition": partition,
            "end_offset": end,
            "log_start_offset": starts.get((topic, partition)),
            "at": now_ms * 1000,
            "unread": [],
            "open_transaction": held_up.get((topic, partition)),
        }
        for (topic, partition), end in ends.items()
    ]


def as_of(earlier: EarlierEnds | None, ends: Offsets) -> Offsets:
    """The ends of now as they were at the time of ``earlier``; a topic that was made anew since then may end before that."""
    if earlier is None:
        return ends
    return {
        place: min(end, earlier.ends.get(place, end))
        for place, end in ends.items()
        if earlier.has_others or place in earlier.ends
    }


def fetch_first_unread(
    cluster: ClusterReader,
    rows: list[dict[str, Any]],
    committed: Mapping[tuple[str, int], list[int]],
    *,
    most: int = MOST_ASKED,
    patience_s: float = ASKING_S,
) -> None:
    """Add to ``unread`` of ``rows`` (END_OFFSETS) the times of the first records from the ``committed`` offsets on.

    Where the cluster denies reading, or the log is damaged, the time remains unknown.
    """
    late = [
        (row["end_offset"] - offset, offset, row)
        for row in rows
        for offset in committed[row["topic"], row["partition"]]
        if offset < row["end_offset"]
    ]
    late.sort(key=lambda one: one[0], reverse=True)
    until = time.monotonic() + patience_s
    for _, offset, row in late[:most]:
        if time.monotonic() >= until:
            return
        start = max(offset, row["log_start_offset"] or 0)  # where the log begins may be unknown
        try:
            record_ms = cluster.first_record_ms(row["topic"], row["partition"], start)
        except PipelineError:
            continue
        if record_ms is None:
            row["unread"].append({"committed_offset": offset, "at": None})
        elif record_ms >= 0:
            at = min(max(record_ms, EARLIEST_MS), LATEST_MS) * 1000
            row["unread"].append({"committed_offset": offset, "at": at})


def ends_of_file(spark: SparkSession, path: str) -> DataFrame:
    """END_OFFSETS from a CSV file with a header, or from JSON lines: ``topic``, ``partition``, ``end_offset``, optionally
    ``log_start_offset``, and ``at`` (ISO 8601), by which several observations of a partition are told apart.

    Raises PipelineError.
    """
    if "://" not in path and not Path(path).exists():
        raise PipelineError(f"there is no file {path}")
    reader, place = spark.read.option("header", "true"), url_of(path)
    frame = reader.csv(place) if path.endswith(".csv") else reader.json(place)
    if missing := sorted(_NEEDED - set(frame.columns)):
        raise PipelineError(
            f"{path} has no {', '.join(missing)}; it should have topic, partition, end_offset and may have at"
        )
    told = set(frame.columns) - _ASKED
    columns = [
        (F.col(column.name) if column.name in told else F.lit(None)).cast(column.type).alias(column.name)
        for column in END_OFFSETS.columns
    ]
    return frame.select(*columns).where("topic is not null and partition is not null and end_offset is not null")
