"""Where topics and logs are kept: in memory, unless the node was given a storage that keeps them somewhere else too.

The broker tells its storage what is to be kept before it counts as done. A storage that cannot keep it says so with a
BatchError(KAFKA_STORAGE_ERROR), and then nothing has changed. ``groupcoord.storage`` has one that writes Kafka's own files.
"""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from groupcoord.broker.leader_epoch_cache import LeaderEpochCache
from groupcoord.broker.log_config import LogConfig
from groupcoord.broker.log_segment import FoundBatch, LogSegment
from groupcoord.broker.producer_state_manager import ProducerStateManager
from groupcoord.broker.record_slices import DELETED_SEGMENTS, SliceableSegment
from groupcoord.broker.timestamp_search import BatchSearch
from groupcoord.config.broker_config import ConfigResource
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
    cleaned_to: int

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first."""


class LogBackend(Protocol):
    """Where the segments of one log are kept."""

    def new_segment(self, log: LogState, base_offset: int, now_ms: int) -> Segment:
        """An empty segment to go on with; nothing more will be appended to those before. Raises BatchError."""

    def append(
        self, log: LogState, segment: Segment, batch: bytes | bytearray, header: BatchHeader, now_ms: int
    ) -> None:
        """Add a batch to the last segment, and have it where flush.messages wants it. Raises BatchError."""

    def writing(self, log: LogState, cleaned: LogSegment) -> BackgroundWork[None]:
        """Write down a segment that is to replace others; this may happen while the log is used. Raises BatchError, OSError."""

    def discard(self, base_offset: int) -> None:
        """Discard what was written of the cleaned segment that begins at ``base_offset``; the log stays as it was."""

    def failed(self, error: OSError) -> BatchError:
        """What to raise if segments could not be read, or written, and nothing has changed."""

    def replaced(
        self, log: LogState, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False
    ) -> list[Segment]:
        """Keep ``cleaned`` instead of ``old``, all of it or nothing; how the log is to see them. Raises BatchError.

        ``written``: that has been done by ``writing``.
        """

    def deleted(self, log: LogState, segments: Sequence[Segment]) -> None:
        """``segments``, which were the oldest of the log, are not part of it any more."""

    def start_moved(self, log: LogState) -> None:
        """The log start offset has moved because of DeleteRecords: store the new one. Raises BatchError."""

    def flush_if_due(self, log: LogState, now_ms: int) -> bool:
        """Flush what has waited for flush.ms; does anything wait still?"""


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
    """A topic as it was kept. ``adopted``: only its logs were, and its configurations are not known."""

    name: str
    topic_id: uuid.UUID
    configs: Mapping[str, str]
    created_ms: int
    logs: list[RecoveredLog]
    adopted: bool


class StorageBackend(Protocol):
    """Where topics, configurations and producer ids are kept. What is told of a change raises BatchError."""

    in_memory: bool
    """Is what it keeps gone when the process ends? Then it has to be bounded."""

    def log(self, topic: str, partition: int) -> LogBackend:
        """Where the log of a partition is kept."""

    def topic_created(
        self, name: str, topic_id: uuid.UUID, partitions: int, configs: Mapping[str, str], created_ms: int
    ) -> None:
        """There is a topic."""

    def partitions_added(self, topic_id: uuid.UUID, partitions: int) -> None:
        """The topic has that many partitions now."""

    def topic_configured(self, topic_id: uuid.UUID, configs: Mapping[str, str]) -> None:
        """The topic has these overrides now."""

    def topic_deleted(self, topic_id: uuid.UUID) -> None:
        """The topic is gone, and its logs with it."""

    def resource_configured(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """A broker, a group or whatever else is no topic has these configurations now."""

    def producer_ids_reserved(self, end: int) -> None:
        """The producer ids before ``end`` have been handed out, or may be without a further word."""

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """What was kept, in the order of the creation."""

    def next_producer_id(self) -> int:
        """The first producer id that has never been handed out."""

    def checkpoint(self) -> None:
        """Write down what makes the next start short."""


class InMemoryLogBackend:
    """Keeps segments in memory alone."""

    def new_segment(self, _log: LogState, base_offset: int, now_ms: int) -> Segment:
        """A segment in memory."""
        return LogSegment(base_offset, now_ms)

    def append(
        self, _log: LogState, segment: Segment, batch: bytes | bytearray, header: BatchHeader, now_ms: int
    ) -> None:
        """Add a batch."""
        segment.append(batch, header, now_ms)

    def writing(self, _log: LogState, _cleaned: LogSegment) -> BackgroundWork[None]:
        """Nothing is left to do."""
        yield from ()

    def discard(self, _base_offset: int) -> None:
        """Nothing is left to do."""

    def failed(self, error: OSError) -> BatchError:
        """Segments that were files have been read so."""
        return BatchError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def replaced(
        self, _log: LogState, old: Sequence[Segment], cleaned: Sequence[LogSegment], *, written: bool = False
    ) -> list[Segment]:
        """They are what they are."""
        del written  # there is nothing to write
        DELETED_SEGMENTS.add(old)
        return list(cleaned)

    def deleted(self, _log: LogState, segments: Sequence[Segment]) -> None:
        """Nothing is left to do, but for answers that are made of them."""
        DELETED_SEGMENTS.add(segments)

    def start_moved(self, _log: LogState) -> None:
        """Nothing is left to do."""

    def flush_if_due(self, _log: LogState, _now_ms: int) -> bool:
        """Nothing ever waits."""
        return False


IN_MEMORY_LOG_BACKEND = InMemoryLogBackend()


class InMemoryStorage:
    """The storage of a node that forgets everything when it ends."""

    in_memory = True

    def log(self, _topic: str, _partition: int) -> LogBackend:
        """A log in memory, like every log of this backend."""
        return IN_MEMORY_LOG_BACKEND

    def topic_created(
        self, _name: str, _topic_id: uuid.UUID, _partitions: int, _configs: Mapping[str, str], _created_ms: int
    ) -> None:
        """Nothing is left to do."""

    def partitions_added(self, _topic_id: uuid.UUID, _partitions: int) -> None:
        """Nothing is left to do."""

    def topic_configured(self, _topic_id: uuid.UUID, _configs: Mapping[str, str]) -> None:
        """Nothing is left to do."""

    def topic_deleted(self, _topic_id: uuid.UUID) -> None:
        """Nothing is left to do."""

    def resource_configured(self, _resource: ConfigResource, _configs: Mapping[str, str]) -> None:
        """Nothing is left to do."""

    def producer_ids_reserved(self, _end: int) -> None:
        """Nothing is left to do."""

    def recovered_topics(self) -> Sequence[RecoveredTopic]:
        """There is never anything."""
        return ()

    def next_producer_id(self) -> int:
        """Everything begins anew."""
        return 0

    def checkpoint(self) -> None:
        """There is no next start."""


IN_MEMORY_STORAGE = InMemoryStorage()


@contextlib.contextmanager
def storage_errors_as_api_errors() -> Iterator[None]:
    """Raises ApiError instead of a BatchError of the storage: the request that caused it is refused."""
    try:
        yield
    except BatchError as problem:
        raise ApiError(problem.error, problem.reason) from problem
