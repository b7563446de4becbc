"""The source ``kafka:HOST:PORT``: a Spark data source that reads ``__consumer_offsets`` from a cluster over Kafka's protocol.

    spark.dataSource.register(OffsetsSource)
    spark.read.format("groupcoord").option("bootstrap", "localhost:9092").load()

It joins no group and commits nothing, so it does not write into the log that it reads. The data source returns what a
read_committed consumer sees: no records of aborted transactions, and nothing beyond the last stable offset (LSO). A run, in
contrast, also reads beyond the LSO, as the coordinator itself does when it loads.

A task reads a partition, or a range of a long one. Below the LSO each range can be read alone, because a fetch response lists
the aborted transactions, wherever they began and ended. From the LSO on transaction markers decide, which come later in the
log. So the last range of a partition is read by one task, and extends to the end of the log to contain these markers.

Options: ``bootstrap``,
``commandconfig`` (a properties file with TLS and SASL in the names of Kafka's clients, read wherever a task runs),
``topic`` (default ``__consumer_offsets``), ``maxrecords`` (for streams: the most offsets a batch). Source: KIP-98 for
isolation.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, pairwise
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
from groupcoord.client.option_value_parsing import parse_addresses
from groupcoord.pipeline.columnar_decoder import PLACES, is_of_places
from groupcoord.pipeline.errors import PipelineError
from groupcoord.pipeline.schemas import LOG
from groupcoord.pipeline.sources.columnar_batch_reader import BatchHeaders, headers, is_control, read, walk
from groupcoord.pipeline.sources.segment_files import PIECE_BYTES
from groupcoord.pipeline.sources.transaction_outcomes import (
    batches_alone,
    first_ends,
    is_aborted,
    is_open,
    transaction_ends,
)
from groupcoord.protocol.batches.record_batch import ABORT_MARKER
from groupcoord.protocol.errors import ErrorCode

CLIENT_ID = "groupcoord-pipeline"
COMMAND_CONFIG = "commandconfig"
TRIES = 8
FETCH_BYTES = 8 * 1024 * 1024
SAMPLE_BYTES = 64 * 1024
"""The bytes that are fetched to estimate how dense the log is: some hundred commits."""
FETCH_MAX_WAIT_MS = 10


class ClusterUnavailableError(PipelineError):
    """No broker can be reached, the cluster does not recover, or it has no such topic. It may work later."""


class OffsetOutOfRangeError(PipelineError):
    """The partition has no such offset."""


class ClusterReader:
    """A client that reads metadata, offsets and batches from a cluster. ``options`` has ``bootstrap``, HOST:PORT or several
    with commas, and perhaps ``commandconfig``, a properties file with TLS and SASL.

    ``isolation_level`` is that of its ListOffsets and Fetch requests; ``tries`` says how often one is sent if the cluster may
    recover.

    Every method raises PipelineError, ClusterUnavailableError if it may work later.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        *,
        isolation_level: int = READ_COMMITTED,
        tries: int = TRIES,
    ) -> None:
        try:
            addresses = parse_addresses(_bootstrap(options), default_port=None)
            path = options.get(COMMAND_CONFIG)
            security = PLAINTEXT if path is None else read_command_config(path)
        except ValueError as problem:
            raise PipelineError(str(problem)) from None
        self._log = LogReader(
            addresses, client_id=CLIENT_ID, isolation_level=isolation_level, tries=tries, security=security
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def cluster_id(self) -> str | None:
        """The id of the cluster; None before Kafka 0.10.1."""
        with _pipeline_errors():
            return self._log.cluster_id()

    def bootstrap(self) -> str:
        """The option ``bootstrap`` with all brokers: who connects later depends on none of them in particular."""
        with _pipeline_errors():
            return ",".join(f"{host}:{port}" for host, port in self._log.addresses())

    def partitions(self, topic: str) -> list[int]:
        """The partitions of ``topic``; empty if it does not exist."""
        with _pipeline_errors():
            return self._log.partitions([topic]).get(topic, [])

    def bounds(self, topic: str, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """The first offset and the end of each partition."""
        wanted = {(topic, partition) for partition in partitions}
        first, end = self.offsets(wanted, EARLIEST), self.offsets(wanted, LATEST)
        return {partition: (first[topic, partition], end[topic, partition]) for _, partition in sorted(wanted)}

    def offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """The offset of each (topic, partition) at LATEST or EARLIEST. Partitions that do not exist are left out."""
        with _pipeline_errors():
            return self._log.offsets(wanted, when)

    def known_offsets(self, wanted: set[tuple[str, int]], when: int) -> dict[tuple[str, int], int]:
        """``offsets``, of which those are left out, too, that no broker tells: without a leader, or if that is not allowed."""
        with _pipeline_errors():
            return self._log.known_offsets(wanted, when)

    def all_partitions(self) -> set[tuple[str, int]]:
        """The partitions of all topics that may be described."""
        with _pipeline_errors():
            return self._log.all_partitions()

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """The open transactions of a partition, ordered by first offset (DescribeProducers); empty before Kafka 2.8."""
        with _pipeline_errors():
            try:
                return self._log.open_transactions((topic, partition))
            except UnsupportedVersionError:
                return []

    def transactional_ids(self, producer_ids: set[int]) -> dict[int, str]:
        """The transactional id by producer id (ListTransactions), as far as the cluster tells; empty before Kafka 3.0."""
        with _pipeline_errors():
            try:
                return self._log.transactional_ids(producer_ids)
            except (BrokerError, UnsupportedVersionError, DisconnectedError):
                return {}

    def offsets_retention_ms(self) -> int | None:
        """``offsets.retention.minutes`` of the cluster, in ms; None if that cannot be read."""
        with _pipeline_errors():
            try:
                minutes = self._log.broker_property("offsets.retention.minutes")
            except (BrokerError, UnsupportedVersionError):  # such as CLUSTER_AUTHORIZATION_FAILED
                return None
        return None if minutes is None else int(minutes) * 60_000

    def first_record_ms(self, topic: str, partition: int, offset: int) -> int | None:
        """The time of the first record from ``offset`` on, -1 if the record has no time; None if there is no record (only
        markers).

        Raises OffsetOutOfRangeError if the log begins after ``offset``, or ends before it.
        """
        with _pipeline_errors():
            found = self._log.first_record((topic, partition), offset)
            return None if found is None else found.timestamp_ms

    def fetch(self, topic: str, partition: int, offset: int, most_bytes: int = FETCH_BYTES) -> FetchedBatches:
        """Fetch batches from ``offset`` on, at most ``most_bytes`` or one batch; empty if there are none yet. The first batch
        may begin before ``offset``.

        Raises OffsetOutOfRangeError if the log begins after ``offset``, or ends before it.
        """
        with _pipeline_errors():
            return self._log.fetch((topic, partition), offset, most_bytes, max_wait_ms=FETCH_MAX_WAIT_MS)


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
    """The range of offsets of a partition that one task reads. ``is_stable``: all of it is below the last stable offset."""

    def __init__(self, partition: int, start: int, end: int, *, is_stable: bool = True) -> None:
        self.partition, self.start, self.end, self.is_stable = partition, start, end, is_stable


def bounds(options: Options, isolation_level: int = READ_COMMITTED) -> Bounds:
    """The first offset and the end of each partition. Raises ClusterUnavailableError, also if the topic does not exist yet."""
    with ClusterReader(options, isolation_level=isolation_level) as cluster:
        return cluster.bounds(_topic(options), _partitions(cluster, options))


def stable_ranges(options: Options) -> list[OffsetRange]:
    """The ranges that cover everything up to the last stable offsets of now."""
    found = bounds(options)
    with ClusterReader(options) as cluster:
        return [
            OffsetRange(partition, *edges)
            for partition, (start, end) in found.items()
            if end > start
            for edges in pairwise([start, *_cuts(cluster, options, partition, start, end), end])
        ]


def ranges_to_the_end(options: Options) -> list[OffsetRange]:
    """The ranges that cover the whole log of now; the last one of each partition is not stable."""
    stable = bounds(
        options
    )  # asked before the ends, so that the markers of everything below these offsets are before the ends
    with ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        return [
            OffsetRange(partition, low, high, is_stable=high != end)
            for partition, (start, end) in cluster.bounds(_topic(options), stable).items()
            if end > start
            for low, high in pairwise([start, *_cuts(cluster, options, partition, start, stable[partition][1]), end])
        ]


def _topic(options: Options) -> str:
    return options.get("topic", TOPIC)


def _partitions(cluster: ClusterReader, options: Options) -> list[int]:
    found = cluster.partitions(_topic(options))
    if not found:
        raise ClusterUnavailableError(
            f"{options['bootstrap']} has no topic {_topic(options)}: no group has ever committed there"
        )
    return found


def _cuts(cluster: ClusterReader, options: Options, partition: int, start: int, end: int) -> list[int]:
    def density(offset: int) -> float:
        try:
            records = cluster.fetch(_topic(options), partition, offset, SAMPLE_BYTES).records
        except OffsetOutOfRangeError:
            return 0  # it has been deleted since
        starts, size = walk(records)
        if not starts:
            return 0
        found = headers(np.frombuffer(records, np.uint8), starts)
        return float(size / (found.last_offset[-1] + 1 - min(offset, found.base_offset[0])))

    return cut_offsets(start, end, density)


def fetch(options: Options, part: OffsetRange) -> Iterator[Any]:
    """Read the committed records of ``part`` as record batches of LOG; offsets deleted in the meantime are skipped."""
    return (batch for batch in _fetch_stable(options, part, lambda *_: None) if not is_of_places(batch))


Tell = Callable[[OffsetRange, int, int], object]
"""Is called with a range, and the numbers of its records of aborted transactions and of transactions without an end."""


def fetch_with_places(options: Options, part: OffsetRange, tell: Tell) -> Iterator[Any]:
    """Read the records of ``part`` that are committed or in no transaction, also beyond the last stable offset, as record
    batches of LOG; the places of hidden records and of markers come as record batches of PLACES.

    A range that is not stable must extend to the end of the log. At the end ``tell`` is called once.
    """
    return (_fetch_stable if part.is_stable else _fetch_to_the_end)(options, part, tell)


def _fetch_stable(options: Options, part: OffsetRange, tell: Tell) -> Iterator[Any]:
    """Read a stable range: the fetch responses list the aborted transactions."""
    hidden = 0
    with ClusterReader(options) as cluster:
        for fetched, found in _fetched(cluster, _topic(options), part):
            control, aborted = is_control(found), is_aborted(found, fetched.aborted)
            yield from _places(fetched.records, part, found.where(control))
            for places in _places(fetched.records, part, found.where(aborted)):
                hidden += len(places)
                yield places
            yield from _records(fetched.records, part, found.where(~control & ~aborted))
    tell(part, hidden, 0)


def _fetch_to_the_end(options: Options, part: OffsetRange, tell: Tell) -> Iterator[Any]:
    """Read a range that is not stable: the markers in it decide. Data is kept in memory until its transaction's marker
    comes."""
    held: dict[int, list[tuple[bytes, BatchHeaders]]] = defaultdict(list)
    hidden = without_end = 0
    with ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        for fetched, found in _fetched(cluster, _topic(options), part):
            ends = transaction_ends(fetched.records, found)
            control, aborted, undecided = is_control(found), ends.ended_by(ABORT_MARKER), is_open(found, ends)
            shown = [(fetched.records, found.where(~control & ~aborted & ~undecided))]
            not_shown = [(fetched.records, found.where(aborted))]
            for producer_id, is_committed in first_ends(found, ends, held).items():
                (shown if is_committed else not_shown).extend(held.pop(producer_id))
            yield from _places(fetched.records, part, found.where(control))
            for places in chain.from_iterable(_places(data, part, batches) for data, batches in not_shown):
                hidden += len(places)
                yield places
            for data, batches in shown:
                yield from _records(data, part, batches)
            for producer_id in np.unique(found.producer_id[undecided]).tolist():
                chosen = found.where(undecided & (found.producer_id == producer_id))
                held[producer_id].append(batches_alone(fetched.records, chosen))
    for data, batches in chain.from_iterable(held.values()):
        for places in _places(data, part, batches):
            without_end += len(places)
            yield places
    tell(part, hidden, without_end)


def _records(data: bytes, part: OffsetRange, batches: BatchHeaders) -> Iterator[Any]:
    """The records of ``batches`` whose offsets are in ``part``: a broker sends whole batches."""
    for records in read(data, part.partition, batches):
        offsets = records.column("log_offset").to_numpy()
        inside = (offsets >= part.start) & (offsets < part.end)
        yield records if inside.all() else records.filter(inside)


def _places(data: bytes, part: OffsetRange, batches: BatchHeaders) -> Iterator[Any]:
    return (records.select(PLACES) for records in _records(data, part, batches))


def _fetched(cluster: ClusterReader, topic: str, part: OffsetRange) -> Iterator[tuple[FetchedBatches, BatchHeaders]]:
    """Fetch ``part``: each response, and its batches that have offsets in ``part``."""
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
                return  # compaction has removed everything up to the end
            raise PipelineError(
                f"{topic}-{part.partition} at offset {offset}: what the broker sent is not a record batch"
            )
        found = headers(np.frombuffer(fetched.records, np.uint8), starts)
        yield fetched, found.where(found.base_offset < part.end)
        offset = int(found.last_offset[-1]) + 1


def held_up_partitions(
    options: Mapping[str, str], ends: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], dict[str, Any]]:
    """The partitions of ``ends`` whose last stable offset is below their end, each with the fields of ``open_transaction`` of
    END_OFFSETS."""
    with ClusterReader(options) as committed, ClusterReader(options, isolation_level=READ_UNCOMMITTED) as cluster:
        stable = committed.known_offsets(set(ends), LATEST)
        held_up = {
            place: {"stable_offset": stable[place], **_oldest_open_transaction(cluster, place)}
            for place in sorted(ends)
            if stable.get(place, ends[place]) < ends[place]
        }
        known = [one for one in held_up.values() if "producer_id" in one]
        names = cluster.transactional_ids({one["producer_id"] for one in known}) if known else {}
        for one in known:
            one["transactional_id"] = names.get(one["producer_id"])
        return held_up


def _oldest_open_transaction(cluster: ClusterReader, place: tuple[str, int]) -> dict[str, Any]:
    """The producer and the begin of the oldest open transaction; empty if the cluster does not report it. Both need the ACL to
    read the topic, while the ends of its partitions need the one to describe it."""
    try:
        found = cluster.open_transactions(*place)
        if not found:
            return {}
        fetched = cluster.fetch(*place, found[0].first_offset)
    except PipelineError:
        return {}
    starts, _ = walk(fetched.records)
    began = headers(np.frombuffer(fetched.records, np.uint8), starts[:1]).base_timestamp.tolist()
    return {
        "producer_id": found[0].producer_id,
        "since": datetime.fromtimestamp(began[0] / 1000, UTC) if began else None,
    }


def _bootstrap(options: Mapping[str, str]) -> str:
    try:
        return options["bootstrap"]
    except KeyError:
        raise PipelineError("the data source groupcoord needs the option bootstrap: HOST:PORT") from None


class OffsetsSource(DataSource):
    """The Spark data source, to be registered with ``spark.dataSource.register``."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format(…)``."""
        return NAME

    def schema(self) -> str:
        """The schema of LOG."""
        return LOG.ddl

    def reader(self, schema: Any) -> "OffsetsBatchReader":
        """A reader for batch queries."""
        del schema
        return OffsetsBatchReader(dict(self.options))

    def streamReader(self, schema: Any) -> "OffsetsStream":  # noqa: N802 - Spark's name
        """A reader for streaming queries."""
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
    """Reads the log once, from its beginning to the last stable offsets."""

    def partitions(self) -> list[InputPartition]:
        """One or more ranges of each partition that has records; one empty range if none has."""
        return [*(stable_ranges(self.options) or [OffsetRange(0, 0, 0)])]


class OffsetsStream(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as a stream. A stream offset is a JSON object from partition, as a string, to its next offset."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The first offset of every partition."""
        return {str(partition): start for partition, (start, _) in bounds(self.options).items()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Limit the stream to what is in the log now."""
        self._target = self._ends()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """The option ``maxrecords``, or no limit."""
        limit = self.options.get("maxrecords")
        return ReadAllAvailable() if limit is None else ReadMaxRows(int(limit))

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The end of the next batch."""
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
        """A range for each partition that has new records."""
        return [
            OffsetRange(int(partition), start.get(partition, 0), reached)
            for partition, reached in end.items()
            if reached > start.get(partition, 0)
        ]

    def _ends(self) -> dict[str, int]:
        return {str(partition): end for partition, (_, end) in bounds(self.options).items()}


RANGE_BYTES = PIECE_BYTES
"""How much one task reads, as of segment files: about a second of decoding, while starting a task takes some 50 ms."""
FEWEST_OFFSETS = 50_000
"""Shorter ranges are not split: they are read faster than another task starts."""


def cut_offsets(start: int, end: int, density: Callable[[int], float]) -> list[int]:
    """The offsets between ``start`` and ``end`` at which to split, in order. ``density`` gives the bytes per offset around an
    offset.

    A number of offsets does not tell how much there is to read: compaction may have left ten records of a million offsets,
    while behind them every offset has a record. So the density is sampled at some offsets, and a range is halved until it has
    about RANGE_BYTES by this estimate. A wrong estimate makes a range longer, but does not change what is read.
    """

    def cuts(low: int, high: int, at_low: float, at_high: float) -> list[int]:
        if high - low < 2 * FEWEST_OFFSETS or (high - low) * max(at_low, at_high) <= RANGE_BYTES:
            return []
        middle = (low + high) // 2
        at_middle = density(middle)
        return [*cuts(low, middle, at_low, at_middle), middle, *cuts(middle, high, at_middle, at_high)]

    if end - start < 2 * FEWEST_OFFSETS:
        return []
    return cuts(start, end, density(start), density(end - 1))
