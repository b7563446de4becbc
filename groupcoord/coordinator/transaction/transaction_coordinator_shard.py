"""TransactionCoordinatorShard: the transactional ids of one partition of ``__transaction_state``, markers and timeouts.

Sources: ``TransactionStateManager``, ``TransactionMarkerChannelManager``, ``TransactionMarkerRequestCompletionHandler``.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.runtime.append_queue import Failed, Stored
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult, LoadSummary, Operation
from groupcoord.coordinator.runtime.shard import Shard, ShardTimers
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.coordinator.transaction.error_mapping import response_error
from groupcoord.coordinator.transaction.events import (
    AbortReason,
    MarkerWritten,
    TransactionalIdExpired,
    TransactionChanged,
    TransactionsLoaded,
    TransactionsNotLoaded,
)
from groupcoord.coordinator.transaction.metadata import (
    EPOCH_PER_TRANSACTION_FROM,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    WITHOUT_TRANSACTION,
    TransactionData,
    TransactionMetadata,
    TransactionState,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import UNWRITABLE, LogRecord, TypedRecord
from groupcoord.core.timers import TimerKey
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionMarker
from groupcoord.protocol.codec.flexible_versions import StringTooLongError
from groupcoord.protocol.coordinator_records import transaction_log
from groupcoord.protocol.coordinator_records.commit_fast_path import RecordSink, ScanResult
from groupcoord.protocol.errors import ErrorCode

MARKER_RETRY_MS = 100
"""The pause before a failed marker is written again; Kafka retries at its next opportunity."""

_MARKER_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""Errors of a marker after which Kafka gives up, and the transaction stays in its state."""
_NO_SUCH_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

WriteMarker = Callable[
    [int, HandlerContext, TransactionMarker, TopicPartition, Callable[[HandlerContext, ErrorCode], None]], None
]
"""Writes a marker of the coordinator of a partition of ``__transaction_state`` to a partition, then calls the function with the
error: UNKNOWN_TOPIC_OR_PARTITION if the partition is deleted."""


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What all shards share. ``new_producer_id`` (of a partition of ``__transaction_state``) raises ApiError if no id is
    available; ``leader_epoch`` returns the leader epoch of such a partition; ``run`` runs an operation that may write;
    ``transaction_version`` returns the level of that feature."""

    config: Callable[[], BrokerConfig]
    new_producer_id: Callable[[int], int]
    leader_epoch: Callable[[int], int]
    write_marker: WriteMarker
    run: Callable[[int, HandlerContext, Callable[["TransactionCoordinatorShard"], CoordinatorResult]], None]
    started_ms: int
    transaction_version: Callable[[], int]


class TransactionCoordinatorShard:
    """The state of one partition of ``__transaction_state``; implements CoordinatorShard."""

    def __init__(self, partition: int, timers: ShardTimers, context: TransactionContext) -> None:
        self.partition, self.timers, self.context = partition, timers, context
        self.transactions: dict[str, TransactionMetadata] = {}

    # --- CoordinatorShard

    @property
    def is_empty(self) -> bool:
        """See CoordinatorShard."""
        return not self.transactions

    def decode(self, key: bytes, value: bytes | None) -> TypedRecord | None:
        """See CoordinatorShard."""
        transactional_id = transaction_log.read_key(key)
        if transactional_id is None or value is None:
            return None if transactional_id is None else TypedRecord(transactional_id, None)
        read = transaction_log.read_value(value)
        return None if read is None else TypedRecord(transactional_id, TransactionData.from_value(read))

    def apply(self, record: TypedRecord, _offset: int, _producer_id: int) -> None:
        """See CoordinatorShard. Only for loading; ``write`` changes the state itself, once a record is stored."""
        if record.value is None:
            self.transactions.pop(record.key, None)
        else:
            self.transactions[record.key] = TransactionMetadata(record.key, record.value)

    def apply_run(self, _data: bytes, position: int, _other: RecordSink) -> ScanResult:
        """See CoordinatorShard."""
        return ScanResult(position, -1, 0)

    def end_transaction(self, _producer_id: int, *, committed: bool) -> None:
        """See CoordinatorShard. There are no transactions on ``__transaction_state``."""

    def on_loaded(self, ctx: HandlerContext, summary: LoadSummary) -> None:
        """See CoordinatorShard. The markers of prepared transactions are written now."""
        ctx.emit(
            TransactionsLoaded,
            partition=summary.partition,
            records=summary.records,
            transactional_ids=len(self.transactions),
            took_ms=summary.took_ms,
        )
        for metadata in list(self.transactions.values()):
            if metadata.data.state in PREPARED:
                self.send_markers(ctx, metadata, metadata.completed(ctx.now_ms))
            else:
                self._schedule(metadata, ctx.now_ms)

    def on_load_failed(self, ctx: HandlerContext, summary: LoadSummary, why: str) -> None:
        """See CoordinatorShard."""
        ctx.emit(TransactionsNotLoaded, partition=summary.partition, records=summary.records, why=why)

    def on_unloaded(self, _ctx: HandlerContext, _why: str) -> None:
        """See CoordinatorShard."""
        for metadata in self.transactions.values():
            self._cancel(metadata)
        self.transactions.clear()

    def view(self, _pending: Iterable[UndoLog]) -> "TransactionCoordinatorShard":
        """See CoordinatorShard. Pending writes are not applied, so this is the state itself."""
        return self

    # --- transactional ids

    def require(self, transactional_id: str) -> TransactionMetadata:
        """The metadata of a transactional id. Raises ApiError (INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING)."""
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
        metadata = self.transactions.get(transactional_id)
        if metadata is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"there is no transactional id {transactional_id!r}")
        return metadata

    def write(
        self,
        metadata: TransactionMetadata,
        data: TransactionData,
        stored: Stored,
        failed: Failed,
        *,
        reason: AbortReason | None = None,
    ) -> CoordinatorResult:
        """Append the pending ``data``, which becomes the state of the transactional id when it is stored.

        Raises ApiError (UNSUPPORTED_VERSION) if a value of version 0 cannot express it. As in Kafka it then stays pending, and
        later requests get CONCURRENT_TRANSACTIONS, until another coordinator loads the stored state.
        """
        version = transaction_log.value_version(self.context.transaction_version())
        if version == transaction_log.PLAIN_VALUE_VERSION and data.client_version:
            why = f"at transaction.version 0 nothing can be stored of a client of version {data.client_version}"
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, why)
        before = metadata.data.state

        def is_stored(ctx: HandlerContext) -> None:
            metadata.stored(data)
            self._schedule(metadata, ctx.now_ms)
            ctx.emit(
                TransactionChanged,
                transactional_id=metadata.transactional_id,
                before=before.value,
                after=data.state.value,
                producer_id=data.producer_id,
                producer_epoch=data.producer_epoch,
                partitions=data.partitions,
                reason=reason,
            )
            stored(ctx)

        def has_failed(ctx: HandlerContext, error: ErrorCode) -> None:
            metadata.pending = None
            failed(ctx, response_error(error))

        record = _record(metadata.transactional_id, data, version)
        return CoordinatorResult(records=(record,), stored=is_stored, failed=has_failed, replay_records=False)

    # --- the end of a transaction

    def send_markers(self, ctx: HandlerContext, metadata: TransactionMetadata, complete: TransactionData) -> None:
        """Write the markers of a prepared transaction to its partitions; then store ``complete``, which is pending."""
        self._tell(ctx, metadata, complete, metadata.data.partitions)

    def _tell(
        self,
        ctx: HandlerContext,
        metadata: TransactionMetadata,
        complete: TransactionData,
        partitions: tuple[TopicPartition, ...],
    ) -> None:
        data = metadata.data
        committed = data.state is TransactionState.PREPARE_COMMIT
        marker = TransactionMarker(
            data.producer_id,
            data.producer_epoch,
            self.context.leader_epoch(self.partition),
            committed,
            data.client_version,
        )

        def told(partition: TopicPartition, later: HandlerContext, error: ErrorCode) -> None:
            if self.transactions.get(metadata.transactional_id) is not metadata:
                return  # another broker coordinates it now, and writes the remaining markers
            if error in _MARKER_FENCED:
                return
            if error and error is not _NO_SUCH_PARTITION:
                key = _marker_key(metadata.transactional_id, partition)

                def again(due: HandlerContext) -> CoordinatorResult:
                    self._tell(due, metadata, complete, (partition,))
                    return EMPTY_RESULT

                self.timers.schedule(key, later.now_ms + MARKER_RETRY_MS, again)
                return
            metadata.without_partition(partition)
            if not error:
                topic, number = partition
                later.emit(
                    MarkerWritten,
                    transactional_id=metadata.transactional_id,
                    topic=topic,
                    partition=number,
                    committed=committed,
                )
            if not metadata.data.partitions:
                self._complete(later, metadata, complete)

        if not partitions:
            self._complete(ctx, metadata, complete)
        for partition in partitions:
            self.context.write_marker(self.partition, ctx, marker, partition, partial(told, partition))

    def _complete(self, ctx: HandlerContext, metadata: TransactionMetadata, complete: TransactionData) -> None:
        """Store that the transaction is complete, with retries (``TransactionMarkerChannelManager.tryAppendToLog``)."""

        def failed(later: HandlerContext, error: ErrorCode) -> None:
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                metadata.pending = complete.state
                key = _completion_key(metadata.transactional_id)
                self.timers.schedule(key, later.now_ms + MARKER_RETRY_MS, lambda _: write(self))

        def write(machine: TransactionCoordinatorShard) -> CoordinatorResult:
            try:
                return machine.write(metadata, complete, lambda _: None, failed)
            except ApiError:  # the feature level was lowered meanwhile: the transaction stays prepared
                return EMPTY_RESULT

        self.context.run(self.partition, ctx, write)

    # --- timers

    def _schedule(self, metadata: TransactionMetadata, now_ms: int) -> None:
        """Schedule the abort of a timed-out transaction, and the expiration of the transactional id.

        Each happens at the first of Kafka's periodic checks after its time is over, or at the next check if it is over already.
        """
        config, data = self.context.config(), metadata.data
        key, expiry = _timeout_key(metadata.transactional_id), _expiry_key(metadata.transactional_id)
        if data.state is TransactionState.ONGOING:
            interval = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
            at_ms = self._next_look(max(data.start_ms + data.timeout_ms, now_ms) + 1, interval)
            self.timers.schedule(key, at_ms, partial(self._time_out, metadata))
        else:
            self.timers.cancel(key)
        if data.state in WITHOUT_TRANSACTION:
            interval = config.transaction_remove_expired_transaction_cleanup_interval_ms
            at_ms = self._next_look(
                max(data.last_update_ms + config.transactional_id_expiration_ms, now_ms + 1), interval
            )
            self.timers.schedule(expiry, at_ms, partial(self._expire, metadata))
        else:
            self.timers.cancel(expiry)

    def _next_look(self, at_ms: int, interval_ms: int) -> int:
        """The first periodic check at or after ``at_ms``: there is one every ``interval_ms`` since the start."""
        since = at_ms - self.context.started_ms
        return self.context.started_ms + max(1, -(-since // interval_ms)) * interval_ms

    def _time_out(self, metadata: TransactionMetadata, ctx: HandlerContext) -> CoordinatorResult:
        """Abort a timed-out transaction; if that is impossible now, try again at the next check."""
        if metadata.pending is None:
            with contextlib.suppress(ApiError):  # its epochs are exhausted, and no new producer id is available
                return self.abort(ctx, metadata, AbortReason.TIMED_OUT, lambda _later, _error: None)
        at_ms = ctx.now_ms + self.context.config().transaction_abort_timed_out_transaction_cleanup_interval_ms
        self.timers.schedule(_timeout_key(metadata.transactional_id), at_ms, partial(self._time_out, metadata))
        return EMPTY_RESULT

    def abort(
        self,
        ctx: HandlerContext,
        metadata: TransactionMetadata,
        reason: AbortReason,
        respond: Callable[[HandlerContext, ErrorCode], None],
    ) -> CoordinatorResult:
        """Fence the producer, and abort its ongoing transaction (``endTransaction`` with ``isFromClient`` false)."""
        epoch = metadata.fence()
        metadata.pending = None  # the abort replaces the pending state
        version, next_id = self.context.transaction_version(), NO_PRODUCER_ID
        if version >= EPOCH_PER_TRANSACTION_FROM:
            next_id = self.next_producer_id(metadata)
        else:
            version = 0
            metadata.data = replace(metadata.data, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
        data = metadata.prepared(TransactionState.PREPARE_ABORT, version, next_id, ctx.now_ms, begins=False)

        def stored(later: HandlerContext) -> None:
            complete = metadata.completed(later.now_ms)
            respond(later, ErrorCode.NONE)
            self.send_markers(later, metadata, complete)

        def failed(later: HandlerContext, error: ErrorCode) -> None:
            metadata.fence_failed = True
            self._schedule(metadata, later.now_ms)
            respond(later, error)

        return self.write(metadata, data, stored, failed, reason=reason)

    def next_producer_id(self, metadata: TransactionMetadata) -> int:
        """A new producer id for after the transaction, if the epochs are exhausted; otherwise -1. Raises ApiError."""
        return self.context.new_producer_id(self.partition) if metadata.data.is_epoch_exhausted else -1

    def _expire(self, metadata: TransactionMetadata, _: HandlerContext) -> CoordinatorResult:
        transactional_id = metadata.transactional_id
        if metadata.pending is not None:
            return EMPTY_RESULT
        metadata.dead()

        def stored(later: HandlerContext) -> None:
            del self.transactions[transactional_id]
            later.emit(TransactionalIdExpired, transactional_id=transactional_id)

        def failed(later: HandlerContext, _error: ErrorCode) -> None:
            metadata.pending = None
            self._schedule(metadata, later.now_ms)

        record = _record(transactional_id, None)
        return CoordinatorResult(records=(record,), stored=stored, failed=failed, replay_records=False)

    def _cancel(self, metadata: TransactionMetadata) -> None:
        transactional_id = metadata.transactional_id
        for key in (_timeout_key, _expiry_key, _completion_key):
            self.timers.cancel(key(transactional_id))
        for partition in metadata.data.partitions:
            self.timers.cancel(_marker_key(transactional_id, partition))


def _timeout_key(transactional_id: str) -> TimerKey:
    return TimerKey("transaction-timeout", transactional_id)


def _expiry_key(transactional_id: str) -> TimerKey:
    return TimerKey("transactional-id-expiration", transactional_id)


def _completion_key(transactional_id: str) -> TimerKey:
    return TimerKey("transaction-completion", transactional_id)


def _marker_key(transactional_id: str, partition: TopicPartition) -> TimerKey:
    return TimerKey("transaction-marker", transactional_id, f"{partition[0]}-{partition[1]}")


def _record(transactional_id: str, data: TransactionData | None, version: int = 0) -> TypedRecord:
    try:
        key = transaction_log.write_key(transactional_id)
    except StringTooLongError:
        return TypedRecord(transactional_id, data, UNWRITABLE)
    value = None if data is None else transaction_log.write_value(data.to_value(), version)
    return TypedRecord(transactional_id, data, LogRecord(key=key, value=value))


TransactionShard = Shard[TransactionCoordinatorShard]
TransactionOperation = Operation[TransactionCoordinatorShard]
