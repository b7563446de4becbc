"""Where topics and logs are kept: in memory, unless the node was given a storage that keeps them somewhere else too.

The broker tells its storage what is to be kept before it counts as done. A storage that cannot keep it says so with a
BatchError(KAFKA_STORAGE_ERROR), and then nothing has changed. ``groupcoord.storage`` has one that writes Kafka's own files.
"""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from groupcoord.broker.leader_election import PartitionState
from groupcoord.broker.leader_epoch_cache import LeaderEpochCache
from groupcoord.broker.log_segment import DELETED_SEGMENTS, BatchSearch, FoundBatch, LogSegment, SliceableSegment
from groupcoord.broker.producer_state_manager import AbortedTransaction, ProducerStateManager
from groupcoord.broker.topic_config import LogConfig
from groupcoord.config.broker_config import ConfigResource
from groupcoord.config.features import UNCHANGED, FeatureLevels
from groupcoord.core.api_error import ApiError
from groupcoord.core.background_work import BackgroundWork
from groupcoord.protocol.batches.record_batch import BatchError, BatchHeader
from groupcoord.protocol.batches.records import Record
from groupcoord.protocol.errors import ErrorCode


class Segment(SliceableSegment, Protocol):
    """A stretch of a log as the log sees it. Times are milliseconds. See LogSegment, which has it in memory."""

    @property
    def base_offset(self) -> int:
        """Where it begins."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of all records, or -1."""

    @property
    def largest_timestamp_ms(self) -> int:
        """What counts for retention: the largest timestamp; without any, the time of the last append."""

    def append(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        """Add a batch that lies behind all others."""

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers it has, in order."""

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """The batch that was appended last is the marker of ``aborted``."""

    def upper_bound(self, position: int) -> int | None:
        """An offset that is not before ``position``, as near as the index of offsets knows one. None: it knows none."""

    def age_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """How old it is at an append of ``timestamp_ms``."""

    def is_full_for(self, last_offset: int) -> bool:
        """Can a batch that ends with ``last_offset`` not be found in it any more?"""

    def find(self, offset: int) -> FoundBatch | None:
        """The first batch that holds ``offset`` or a later one."""

    def first_record_since(self, timestamp_ms: int, start_offset: int, find: BatchSearch = ...) -> Record | None:
        """The first record from ``start_offset`` on that is not older than ``timestamp_ms``."""

    def latest_record(self, find: BatchSearch = ...) -> Record | None:
        """The first record that has the largest timestamp of all, or None if there is no record."""


class LogState(Protocol):
    """What a backend reads of the log whose segments it keeps. See PartitionLog."""

    name: str
    settings: LogConfig
    log_start_offset: int
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    cleaned_to: int

    @property
    def high_watermark(self) -> int:
        """The offset up to which all replicas in sync have the records."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first."""


class TruncatedLog(NamedTuple):
    """What is left of a log that was truncated."""

    segments: list[Segment]
    producers: ProducerStateManager


class LogBackend:
    """Where the segments of one log are kept: in memory, unless a storage has a backend of its own."""

    def new_segment(self, log: LogState, base_offset: int, now_ms: int) -> Segment:
        """An empty segment to go on with; nothing more will be appended to those before. Raises BatchError."""
        return LogSegment(base_offset, now_ms, index_interval_bytes=log.settings.index_interval_bytes)

    def append(
        self,
        _log: LogState,
        segment: Segment,
        batch: bytes | bytearray,
        header: BatchHeader,
        now_ms: int,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        """Add a batch to the last segment, and have it where flush.messages wants it. Raises BatchError.

        ``aborted`` is the transaction that it ends, if it is the marker of one that is aborted.
        """
        segment.append(batch, header, now_ms)
        if aborted is not None:
            segment.append_aborted(aborted)

    def writing(self, _log: LogState, _cleaned: LogSegment) -> BackgroundWork[None]:
        """Write down a segment that is to replace others; this may happen while the log is used. Raises BatchError, OSError."""
        yield from ()

    def discard(self, base_offset: int) -> None:
        """Discard what was written of the cleaned segment that begins at ``base_offset``; the log stays as it was."""

    def failed(self, error: OSError) -> BatchError:
        """What to raise if segments could not be read, or written, and nothing has changed."""
        return BatchError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def replaced(
        self, _log: LogState, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False
    ) -> list[Segment]:
        """Keep ``cleaned`` instead of ``old``, all of it or nothing; how the log is to see them. Raises BatchError.

        ``written``: that has been done by ``writing``.
        """
        del written  # there is nothing to write
        DELETED_SEGMENTS.add(old)
        return list(cleaned)

    def deleted(self, _log: LogState, segments: Sequence[Segment]) -> None:
        """``segments``, which were the oldest of the log, are not part of it any more."""
        DELETED_SEGMENTS.add(segments)

    def start_moved(self, log: LogState) -> None:
        """The log start offset has moved because of DeleteRecords: store the new one. Raises BatchError."""

    def truncated(self, log: LogState, offset: int, now_ms: int) -> TruncatedLog:
        """Remove the batches from ``offset`` on. Producers are what the batches that stay say of them. Raises BatchError."""
        producers = ProducerStateManager(log.name)
        kept: list[Segment] = []
        for segment in log.segments:
            if segment.base_offset >= offset:
                continue
            shortened = LogSegment(segment.base_offset, now_ms, index_interval_bytes=log.settings.index_interval_bytes)
            for batch, header in cast("LogSegment", segment).batches():
                if header.base_offset < offset:
                    shortened.append(batch, header, now_ms)
                    aborted = producers.replay(header, batch)
                    if aborted is not None:
                        shortened.append_aborted(aborted)
            kept.append(shortened)
        DELETED_SEGMENTS.add(log.segments)
        return TruncatedLog(kept, producers)

    def started_over(self, log: LogState, _offset: int, _now_ms: int) -> list[Segment]:
        """Remove everything: the next batch begins with ``offset``. Raises BatchError."""
        DELETED_SEGMENTS.add(log.segments)
        return []

    def epochs_changed(self, log: LogState) -> None:
        """Another leader's epoch has begun in the log. Raises nothing: batches tell it again."""

    def flush_if_due(self, _log: LogState, _now_ms: int) -> bool:
        """Flush what has waited for flush.ms; does anything wait still?"""
        return False


IN_MEMORY_LOG_BACKEND = LogBackend()


class RecoveredLog(NamedTuple):
    """A log as it was kept."""

    backend: LogBackend
    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    cleaned_to: int  # the offset up to which it has been compacted


class RecoveredTopic(NamedTuple):
    """A topic as it was kept. ``adopted``: only its logs were, and its configurations are not known.

    ``logs`` has for each partition the logs of its replicas by the ids of their brokers, as far as they were found, and
    ``states`` what the partitions of a cluster of several brokers are, of which only those are in sync whose logs were found;
    a lone broker keeps no states.
    """

    name: str
    topic_id: uuid.UUID
    configs: Mapping[str, str]
    created_ms: int
    logs: list[dict[int, RecoveredLog]]
    adopted: bool
    states: Sequence[PartitionState] = ()


class LogDirectory(NamedTuple):
    """A directory that keeps logs, and the size of its volume, in bytes."""

    path: str
    total_bytes: int
    usable_bytes: int


class StorageBackend:
    """Where topics, configurations and producer ids are kept: nowhere, unless a storage of its own overrides this.

    What is told of a change raises BatchError.
    """

    in_memory = True
    """Is what it keeps gone when the process ends? Then it has to be bounded."""

    def log(self, _topic: str, _partition: int, _broker: int) -> LogBackend:
        """Where the log is kept that a broker has of a partition."""
        return IN_MEMORY_LOG_BACKEND

    def topic_created(
        self,
        name: str,
        topic_id: uuid.UUID,
        partitions: Sequence[PartitionState],
        configs: Mapping[str, str],
        created_ms: int,
    ) -> None:
        """There is a topic, and each of its replicas has a log."""

    def partitions_added(self, topic_id: uuid.UUID, partitions: Sequence[PartitionState]) -> None:
        """The topic has these partitions, too."""

    def partition_changed(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """A partition of a cluster of several brokers is as ``state`` says from now on.

        Each of its replicas has a log, and whoever was a replica and is none any more has none. Raises nothing: what decides of
        partitions is not refused, and a storage that fails ends the server.
        """

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """The topic has these overrides now."""

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """The topic is gone, and its logs with it."""

    def resource_configured(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """A broker, a group or whatever else is no topic has these configurations now."""

    def producer_ids_reserved(self, end: int) -> None:
        """The producer ids before ``end`` have been handed out, or may be without a further word."""

    def features_updated(self, features: FeatureLevels) -> None:
        """The features have these levels now."""

    def features(self) -> FeatureLevels:
        """The levels that were kept; none if they were never changed."""
        return UNCHANGED

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """What was kept, in the order of the creation."""
        return ()

    def broker_ended(self, broker: int, *, in_order: bool, lost_disk: bool) -> None:
        """If the process ended now, would that broker have ended in order, or has it lost all that it had?"""

    def unclean_brokers(self) -> frozenset[int]:
        """The brokers of which the last life, or the last directory, ended without notice."""
        return frozenset()

    def next_producer_id(self) -> int:
        """The first producer id that has never been handed out."""
        return 0

    def log_directory(self, _broker: int) -> LogDirectory | None:
        """The directory that keeps the logs of a broker; None: they are in memory."""
        return None

    def checkpoint(self) -> None:
        """Write down what makes the next start short."""


IN_MEMORY_STORAGE = StorageBackend()


@contextlib.contextmanager
def storage_errors_as_api_errors() -> Iterator[None]:
    """Raises ApiError instead of a BatchError of the storage: the request that caused it is refused."""
    try:
        yield
    except BatchError as problem:
        raise ApiError(problem.error, problem.reason) from problem
