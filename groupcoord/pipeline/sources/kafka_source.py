"""``kafka:HOST:PORT``: the data source ``groupcoord``, which reads ``__consumer_offsets`` of any cluster, a partition a task.

    spark.dataSource.register(OffsetsSource)
    spark.read.format("groupcoord").option("bootstrap", "localhost:9092").load()

It joins no group and commits nothing, so it does not write into the log that it reads. What the data source gives is what a
consumer that reads committed sees: nothing of aborted transactions, and nothing behind the first that is open. A run reads by
``fetch_to_the_end``, which goes on behind an open transaction, as the coordinator itself does. Options: ``bootstrap``,
``commandconfig`` (a properties file with TLS and SASL in the names of Kafka's clients, read wherever a task runs),
``topic`` (``__consumer_offsets``), ``ranges`` (JSON: partition → [from, to], if the bounds are known already),
``maxrecords`` (for streams: so many offsets a batch). Source: KIP-98 for isolation.
"""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Self

import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from groupcoord.client.client_errors import (
    BrokerError,
    ClientError,
    DisconnectedError,
    UnsecuredConnectionError,
    UnsupportedVersionError,
)
from groupcoord.client.connection_security import PLAINTEXT, read_command_config
from groupcoord.client.log_reader import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchedBatches,
    LogReader,
    OpenTransaction,
)
from groupcoord.client.option_parsing import parse_addresses
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LOG
from groupcoord.pipeline.sources.columnar_batch_reader import BatchHeaders, headers, is_control, read, walk
from groupcoord.pipeline.sources.transactions import (
    batches_alone,
    first_ends,
    hidden_places,
    is_aborted,
    is_open,
    transaction_ends,
)
from groupcoord.protocol.batches.record_batch import ABORT_MARKER
from groupcoord.protocol.errors import ErrorCode

__all__ = [
    "EARLIEST",
    "LATEST",
    "READ_UNCOMMITTED",
    "ClusterReader",
    "ClusterUnavailableError",
    "FetchedBatches",
    "OffsetOutOfRangeError",
]

CLIENT_ID = "groupcoord-pipeline"
COMMAND_CONFIG = "commandconfig"
TRIES = 8
FETCH_BYTES = 8 * 1024 * 1024
FETCH_MAX_WAIT_MS = 10


class ClusterUnavailableError(PipelineError):
    """No broker can be reached, the cluster does not recover, or it has no such topic. It may work later."""


class OffsetOutOfRangeError(PipelineError):
    """The partition has no such offset."""


class ClusterReader:
    """What is in a cluster, found by any of its brokers: ``bootstrap`` of ``options`` is HOST:PORT, or several with commas;
    ``commandconfig``, where it is there, a properties file with TLS and SASL.

    What is not committed counts only if ``isolation_level`` says so.

    Every method raises PipelineError, ClusterUnavailableError if it may work later.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        *,
        isolation_level: int = READ_COMMITTED,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            addresses = parse_addresses(_bootstrap(options), default_port=None)
            path = options.get(COMMAND_CONFIG)
            security = PLAINTEXT if path is None else read_command_config(path)
        except ValueError as problem:
            raise PipelineError(str(problem)) from None
        self._log = LogReader(
            addresses,
            client_id=CLIENT_ID,
            isolation_level=isolation_level,
            tries=TRIES,
            sleep=sleep,
            security=security,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def cluster_id(self) -> str | None:
        """The id of the cluster, where it has one (since Kafka 0.10.1)."""
        with _pipeline_errors():
            return self._log.cluster_id()

    def partitions(self, topic: str) -> list[int]:
        """The partitions of ``topic``; none if it does not exist."""
        with _pipeline_errors():
            return self._log.partitions([topic]).get(topic, [])

    def bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Partition → its first offset, and its end."""
        wanted = {(topic, partition) for partition in partitions}
        first, end = self.offsets(wanted, EARLIEST), self.offsets(wanted, LATEST)
        return {partition: (first[topic, partition], end[topic, partition]) for _, partition in sorted(wanted)}

    def offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """(topic, partition) → its offset at LATEST or EARLIEST. Partitions that do not exist are missing."""
        with _pipeline_errors():
            return self._log.offsets(wanted, when)

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """The transactions that are open in a partition, the first to begin first; none before Kafka 2.8, which tells none."""
        with _pipeline_errors():
            try:
                return self._log.open_transactions((topic, partition))
            except UnsupportedVersionError:
                return []

    def offsets_retention_ms(self) -> int | None:
        """How long the cluster keeps offsets that nobody needs (``offsets.retention.minutes``); None if it does not tell."""
        with _pipeline_errors():
            try:
                minutes = self._log.broker_property("offsets.retention.minutes")
            except (BrokerError, UnsupportedVersionError):  # such as CLUSTER_AUTHORIZATION_FAILED
                return None
        return None if minutes is None else int(minutes) * 60_000

    def first_record_ms(self, topic: str, partition: int, offset: int) -> int | None:
        """The time of the first record from ``offset`` on, -1 if it has none; None if there is no record, but markers at most.

        Raises OffsetOutOfRangeError if the log begins after ``offset``, or ends before it.
        """
        with _pipeline_errors():
            found = self._log.first_record((topic, partition), offset)
            return None if found is None else found.timestamp_ms

    def fetch(self, topic: str, partition: int, offset: int) -> FetchedBatches:
        """Batches from ``offset`` on, of which the first may begin before it; none if there are none yet.

        Raises OffsetOutOfRangeError if the log begins after ``offset``, or ends before it.
        """
        with _pipeline_errors():
            return self._log.fetch((topic, partition), offset, FETCH_BYTES, max_wait_ms=FETCH_MAX_WAIT_MS)


@contextlib.contextmanager
def _pipeline_errors() -> Iterator[None]:
    try:
        yield
    except DisconnectedError as problem:
        hint = ", which --command-config FILE is for" if isinstance(problem, UnsecuredConnectionError) else ""
        raise ClusterUnavailableError(f"no broker answers: {problem}{hint}") from None
    except BrokerError as problem:
        if problem.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OffsetOutOfRangeError(str(problem)) from None
        if problem.code.retriable:
            raise ClusterUnavailableError(f"the cluster does not recover: {problem}") from None
        raise PipelineError(str(problem)) from None
    except ClientError as problem:
        raise PipelineError(str(problem)) from None


TOPIC = "__consumer_offsets"
NAME = "groupcoord"

Options = dict[str, str]
Bounds = dict[int, tuple[int, int]]


class OffsetRange(InputPartition):
    """Offsets of one partition: what one task reads."""

    def __init__(self, partition: int, start: int, end: int) -> None:
        self.partition, self.start, self.end = partition, start, end


def bounds(options: Options, isolation_level: int = READ_COMMITTED) -> Bounds:
    """Partition → (first offset, end). Raises ClusterUnavailableError, also if there is no such topic yet."""
    topic = options.get("topic", TOPIC)
    with ClusterReader(options, isolation_level=isolation_level) as cluster:
        partitions = cluster.partitions(topic)
        if not partitions:
            raise ClusterUnavailableError(
                f"{options['bootstrap']} has no topic {topic}: no group has ever committed there"
            )
        return cluster.bounds(topic, partitions)


def fetch(options: Options, part: OffsetRange) -> Iterator[Any]:
    """The committed records of ``part``, as record batches of LOG; what has been deleted since is passed over."""
    with ClusterReader(options) as cluster:
        for fetched, found in _fetched(cluster, options.get("topic", TOPIC), part):
            shown = ~is_control(found) & ~is_aborted(found, fetched.aborted)
            for batch in read(fetched.records, part.partition, found.where(shown)):
                yield _within(batch, part.start, part.end)


def fetch_to_the_end(options: Options, part: OffsetRange, tell: Callable[[int, int, int], object]) -> Iterator[Any]:
    """The same, and also what is behind open transactions. ``part`` is all that the log has. Of records that are hidden, and
    of markers, record batches with the columns PLACES say where they are.

    Only the data of transactions whose marker has not come is held meanwhile. At the end ``tell`` hears of the partition how
    many records are hidden because their transactions were aborted, and because they have no end.
    """
    held: dict[int, list[tuple[bytes, BatchHeaders]]] = defaultdict(list)
    hidden = 0
    with ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        for fetched, all_found in _fetched(cluster, options.get("topic", TOPIC), part):
            found = all_found.where(all_found.base_offset < part.end)
            ends = transaction_ends(fetched.records, found)
            shown = []
            for producer_id, is_committed in first_ends(found, ends, held).items():
                decided = held.pop(producer_id)
                if is_committed:
                    shown += decided
                else:
                    hidden += _records_in(decided)
                    yield from _places_of(decided, part.partition)
            aborted, undecided = ends.ended_by(ABORT_MARKER), is_open(found, ends)
            hidden += int(np.maximum(found.count[aborted], 0).sum())
            yield from hidden_places(fetched.records, part.partition, found.where(is_control(found) | aborted))
            shown.append((fetched.records, found.where(~is_control(found) & ~aborted & ~undecided)))
            for data, batches in shown:
                for batch in read(data, part.partition, batches):
                    yield _within(batch, part.start, part.end)
            for producer_id in np.unique(found.producer_id[undecided]).tolist():
                chosen = found.where(undecided & (found.producer_id == producer_id))
                held[producer_id].append(batches_alone(fetched.records, chosen))
    for undecided_ones in held.values():
        yield from _places_of(undecided_ones, part.partition)
    tell(part.partition, hidden, sum(map(_records_in, held.values())))


def _places_of(held: list[tuple[bytes, BatchHeaders]], partition: int) -> Iterator[Any]:
    return chain.from_iterable(hidden_places(data, partition, batches) for data, batches in held)


def _records_in(held: list[tuple[bytes, BatchHeaders]]) -> int:
    return sum(int(np.maximum(batches.count, 0).sum()) for _, batches in held)


def _fetched(cluster: ClusterReader, topic: str, part: OffsetRange) -> Iterator[tuple[FetchedBatches, BatchHeaders]]:
    """What the broker sends of ``part``; the first and last batches may reach beyond it."""
    offset = part.start
    while offset < part.end:
        try:
            fetched = cluster.fetch(topic, part.partition, offset)
        except OffsetOutOfRangeError:
            first = cluster.offsets({(topic, part.partition)}, EARLIEST)[topic, part.partition]
            if first <= offset:
                raise
            offset = first
            continue
        starts, _ = walk(fetched.records)
        if not starts:
            if not fetched.records:
                return  # compaction has taken everything up to the end
            raise PipelineError(f"{topic}-{part.partition} at offset {offset}: what the broker sent is no record batch")
        found = headers(np.frombuffer(fetched.records, np.uint8), starts)
        yield fetched, found
        offset = int(found.last_offset[-1]) + 1


def held_up_partitions(
    options: Mapping[str, str], ends: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Of ``ends``, the partitions in which a consumer that reads committed stops before the end, each with what
    ``open_transaction`` of END_OFFSETS says."""
    with ClusterReader(options) as committed, ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        stable = committed.offsets(set(ends), LATEST)
        return {
            place: {"stable_offset": stable[place], **_oldest_open_transaction(cluster, place)}
            for place in sorted(ends)
            if stable.get(place, ends[place]) < ends[place]
        }


def _oldest_open_transaction(cluster: ClusterReader, place: tuple[str, int]) -> dict[str, Any]:
    """Who began it, and when; nothing if the cluster does not tell."""
    found = cluster.open_transactions(*place)
    if not found:
        return {}
    fetched = cluster.fetch(*place, found[0].first_offset)
    starts, _ = walk(fetched.records)
    began = headers(np.frombuffer(fetched.records, np.uint8), starts[:1]).base_timestamp.tolist()
    return {
        "producer_id": found[0].producer_id,
        "since": datetime.fromtimestamp(began[0] / 1000, UTC) if began else None,
    }


def _within(batch: Any, start: int, end: int) -> Any:
    """``batch`` without the offsets outside: a broker sends whole batches."""
    offsets = batch.column("log_offset").to_numpy()
    inside = (offsets >= start) & (offsets < end)
    return batch if inside.all() else batch.filter(inside)


def _bootstrap(options: Mapping[str, str]) -> str:
    try:
        return options["bootstrap"]
    except KeyError:
        raise PipelineError("the data source groupcoord needs the option bootstrap: HOST:PORT") from None


class OffsetsSource(DataSource):
    """The data source, to be registered with ``spark.dataSource.register``."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` says."""
        return NAME

    def schema(self) -> str:
        """That of LOG."""
        return LOG.ddl

    def reader(self, schema: Any) -> "OffsetsBatchReader":
        """For batches."""
        del schema
        return OffsetsBatchReader(dict(self.options))

    def streamReader(self, schema: Any) -> "OffsetsStream":  # noqa: N802 - Spark's name
        """For streams."""
        del schema
        return OffsetsStream(dict(self.options))


class _RangeReader:
    """Reads one range of offsets, inside a task."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of ``partition``."""
        if isinstance(partition, OffsetRange):
            yield from fetch(self.options, partition)


class OffsetsBatchReader(_RangeReader, DataSourceReader):
    """One reading from the beginning to the end, or of ``ranges``."""

    def partitions(self) -> list[InputPartition]:
        """A range a partition that has records; where none has, an empty one."""
        ranges: Bounds = (
            {int(partition): (start, end) for partition, (start, end) in json.loads(self.options["ranges"]).items()}
            if "ranges" in self.options
            else bounds(self.options)
        )
        return [OffsetRange(partition, start, end) for partition, (start, end) in ranges.items() if end > start] or [
            OffsetRange(0, 0, 0)
        ]


class OffsetsStream(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as a stream; an offset of the stream is partition → next offset, as JSON has it, with strings as keys."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where every partition begins."""
        return {str(partition): start for partition, (start, _) in bounds(self.options).items()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that will be read."""
        self._target = self._ends()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """``maxrecords`` a batch, or everything there is."""
        limit = self.options.get("maxrecords")
        return ReadAllAvailable() if limit is None else ReadMaxRows(int(limit))

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Where the next batch ends."""
        end = self._target or self._ends()
        if not isinstance(limit, ReadMaxRows):
            return {**start, **end}
        reached, left = dict(start), limit.max_rows
        for partition in sorted(end, key=int):
            begin = start.get(partition, 0)
            step = max(0, min(left, end[partition] - begin))
            reached[partition] = begin + step
            left -= step
        return reached

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """A range a partition that has something new."""
        return [
            OffsetRange(int(partition), start.get(partition, 0), reached)
            for partition, reached in end.items()
            if reached > start.get(partition, 0)
        ]

    def _ends(self) -> dict[str, int]:
        return {str(partition): end for partition, (_, end) in bounds(self.options).items()}
