"""The interface between broker and storage, and its implementation in memory: StorageBackend for topics, LogBackend for logs.

The broker tells its storage of a change before it reports success. A storage that cannot store it raises
BatchError(KAFKA_STORAGE_ERROR), and then nothing has changed. ``groupcoord.storage`` implements it with Kafka's file formats.
"""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from groupcoord.broker.leader_election_and_isr import PartitionState
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
    """A segment as the log uses it. Times are milliseconds. See LogSegment, the implementation in memory."""

    @property
    def base_offset(self) -> int:
        """The base offset."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of all records, or -1."""

    @property
    def largest_timestamp_ms(self) -> int:
        """The timestamp that counts for retention: the largest one, or the time of the last append if there is none."""

    def append(self, batch: bytes | bytearray, header: BatchHeader, now_ms: int) -> None:
        """Append a batch."""

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers are in it, in order."""

    def append_aborted(self, aborted: AbortedTransaction) -> None:
        """Record that the last batch is the marker of ``aborted``."""

    def upper_bound(self, position: int) -> int | None:
        """An offset of an index entry at or after ``position``; None if there is none."""

    def age_ms(self, now_ms: int, timestamp_ms: int) -> int:
        """The age of the segment at an append of ``timestamp_ms``."""

    def is_full_for(self, last_offset: int) -> bool:
        """Is ``last_offset`` too far from the base offset for the offset index?"""

    def find(self, offset: int) -> FoundBatch | None:
        """The first batch that contains ``offset`` or a later one."""

    def first_record_since(self, timestamp_ms: int, start_offset: int, find: BatchSearch = ...) -> Record | None:
        """The first record from ``start_offset`` on whose timestamp is at least ``timestamp_ms``."""

    def latest_record(self, find: BatchSearch = ...) -> Record | None:
        """The first record with the largest timestamp, or None if there is no record."""


class LogState(Protocol):
    """The parts of a log that its backend reads. See PartitionLog."""

    name: str
    settings: LogConfig
    log_start_offset: int
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    cleaned_to: int

    @property
    def high_watermark(self) -> int:
        """The offset that all in-sync replicas have reached."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first."""


class TruncatedLog(NamedTuple):
    """The remaining contents of a truncated log."""

    segments: list[Segment]
    producers: ProducerStateManager


class LogBackend:
    """The storage of one log's segments: in memory, unless overridden."""

    def new_segment(self, log: LogState, base_offset: int, now_ms: int) -> Segment:
        """Create the next segment; the earlier ones will not be appended to. Raises BatchError."""
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
        """Append a batch to the last segment, and flush it if flush.messages says so. Raises BatchError.

        ``aborted`` is the transaction that the batch aborts, if it is such a marker.
        """
        segment.append(batch, header, now_ms)
        if aborted is not None:
            segment.append_aborted(aborted)

    def writing(self, _log: LogState, _cleaned: LogSegment) -> BackgroundWork[None]:
        """Background work that writes a cleaned segment; the log may be used meanwhile. Raises BatchError, OSError."""
        yield from ()

    def discard(self, base_offset: int) -> None:
        """Delete the written files of the cleaned segment that begins at ``base_offset``; the log does not change."""

    def failed(self, error: OSError) -> BatchError:
        """The BatchError to raise when reading or writing segments failed and nothing has changed."""
        return BatchError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def replaced(
        self, _log: LogState, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False
    ) -> list[Segment]:
        """Replace ``old`` by ``cleaned``, all or nothing; returns the new segments. Raises BatchError.

        ``written``: ``writing`` has written them already.
        """
        del written  # there is nothing to write
        DELETED_SEGMENTS.add(old)
        return list(cleaned)

    def deleted(self, _log: LogState, segments: Sequence[Segment]) -> None:
        """Delete ``segments``, which were the oldest of the log."""
        DELETED_SEGMENTS.add(segments)

    def start_moved(self, log: LogState) -> None:
        """Store the log start offset, which DeleteRecords has advanced. Raises BatchError."""

    def truncated(self, log: LogState, offset: int, now_ms: int) -> TruncatedLog:
        """Remove the batches from ``offset`` on, and rebuild the producers' state from the rest. Raises BatchError."""
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

    def truncated_fully(self, log: LogState, _offset: int, _now_ms: int) -> list[Segment]:
        """Remove everything; the next batch begins at ``offset``. Raises BatchError."""
        DELETED_SEGMENTS.add(log.segments)
        return []

    def epochs_changed(self, log: LogState) -> None:
        """Store the leader epochs, which have changed. Raises nothing: they can be rebuilt from the batches."""

    def flush_if_due(self, _log: LogState, _now_ms: int) -> bool:
        """Flush if flush.ms has passed; returns whether anything is still unflushed."""
        return False


IN_MEMORY_LOG_BACKEND = LogBackend()


class RecoveredLog(NamedTuple):
    """A log recovered from storage."""

    backend: LogBackend
    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    leader_epoch: int  # of a lone broker: in which it leads the partition now
    cleaned_to: int  # the offset up to which it has been compacted


class RecoveredTopic(NamedTuple):
    """A topic recovered from storage. ``adopted``: only its logs were found, and its configurations are unknown.

    ``logs`` has for each partition the recovered logs of its replicas by broker id. ``states`` are the partitions of a cluster
    of several brokers, with only those replicas in sync whose logs were found; a single broker stores no states.
    """

    name: str
    topic_id: uuid.UUID
    configs: Mapping[str, str]
    created_ms: int
    logs: list[dict[int, RecoveredLog]]
    adopted: bool
    states: Sequence[PartitionState] = ()


class LogDirectory(NamedTuple):
    """A directory of logs, and the size of its volume, in bytes."""

    path: str
    total_bytes: int
    usable_bytes: int


class StorageBackend:
    """The storage of topics, configurations and producer ids: nothing is kept, unless overridden.

    Methods that store a change raise BatchError.
    """

    in_memory = True
    """Is everything lost when the process ends? Then the size of logs is bounded."""

    def log(self, _topic: str, _partition: int, _broker: int) -> LogBackend:
        """The backend of a broker's log of a partition."""
        return IN_MEMORY_LOG_BACKEND

    def topic_created(
        self,
        name: str,
        topic_id: uuid.UUID,
        partitions: Sequence[PartitionState],
        configs: Mapping[str, str],
        created_ms: int,
    ) -> None:
        """Store a topic, with a log for each of its replicas."""

    def partitions_added(self, topic_id: uuid.UUID, partitions: Sequence[PartitionState]) -> None:
        """Store additional partitions of a topic."""

    def partition_changed(self, topic_id: uuid.UUID, partition: int, state: PartitionState) -> None:
        """Store the new state of a partition, in a cluster of several brokers.

        New replicas get a log, and the logs of removed ones are deleted. Raises nothing, because the controller's decision
        cannot be refused; a storage that fails stops the server.
        """

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """Store the overrides of a topic."""

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """Delete a topic with its logs."""

    def resource_configured(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Store the configurations of a resource other than a topic."""

    def producer_ids_reserved(self, end: int) -> None:
        """Store that the producer ids before ``end`` may have been given out."""

    def features_updated(self, features: FeatureLevels) -> None:
        """Store the feature levels."""

    def features(self) -> FeatureLevels:
        """The stored feature levels; empty if they were never changed."""
        return UNCHANGED

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """The stored topics, in the order of their creation."""
        return ()

    def broker_ended(self, broker: int, *, in_order: bool, lost_disk: bool) -> None:
        """Note how a broker ended, in case the process ends now: by a clean shutdown or not, or with its disk lost."""

    def unclean_brokers(self) -> frozenset[int]:
        """The brokers that did not shut down cleanly, or whose directory was lost."""
        return frozenset()

    def first_metadata_version(self) -> int:
        """The version of the topics' metadata before the first change; later than all versions of earlier runs."""
        return 0

    def next_producer_id(self) -> int:
        """The first producer id that was never given out."""
        return 0

    def log_directory(self, _broker: int) -> LogDirectory | None:
        """The log directory of a broker; None if logs are in memory."""
        return None

    def checkpoint(self) -> None:
        """Write checkpoints, such as recovery points, that make the next start shorter."""


IN_MEMORY_STORAGE = StorageBackend()


@contextlib.contextmanager
def storage_errors_as_api_errors() -> Iterator[None]:
    """Turns a BatchError of the storage into an ApiError, which refuses the request."""
    try:
        yield
    except BatchError as problem:
        raise ApiError(problem.error, problem.reason) from problem
