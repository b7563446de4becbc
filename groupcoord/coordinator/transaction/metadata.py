"""TransactionMetadata: a transactional id with its producer, its transaction, and the allowed state transitions.

Sources: ``TransactionState``, ``TransactionMetadata``, ``TxnTransitMetadata``.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from groupcoord.core.api_error import ApiError
from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import (
    computed_map_order,
    hash_map_order,
    hash_set_order,
    partition_hash,
    string_hash,
)
from groupcoord.core.transaction_verification_types import TopicPartition
from groupcoord.protocol.coordinator_records.transaction_log import PartitionsOfTopic, TransactionLogValue
from groupcoord.protocol.errors import ErrorCode, WireError

NO_PRODUCER_ID, NO_EPOCH = -1, -1
MAX_EPOCH = 32_767
EPOCH_PER_TRANSACTION_FROM = 2
"""From this ``transaction.version`` on, the end of a transaction bumps the producer epoch (``supportsEpochBump``)."""


class TransactionState(enum.Enum):
    """The state of a transaction. The values are Kafka's names; in the log the states are numbered from 0 in this order."""

    EMPTY = "Empty"
    """No transaction has begun since InitProducerId."""
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    """It will be committed; the markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    """It is committed; all markers are written."""
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    """The transactional id is being removed."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The producer is fenced and its transaction about to be aborted; never in the log."""

    @property
    def number(self) -> int:
        """Its number in the log."""
        return _STATES.index(self)


_STATES = tuple(TransactionState)
_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, _DEAD, _FENCE = _STATES
WITHOUT_TRANSACTION = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
PREPARED = frozenset({_PREPARE_COMMIT, _PREPARE_ABORT})
_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: WITHOUT_TRANSACTION,
    _ONGOING: WITHOUT_TRANSACTION | {_ONGOING},
    _PREPARE_COMMIT: frozenset({_ONGOING}),
    _PREPARE_ABORT: WITHOUT_TRANSACTION | {_ONGOING},
    _COMPLETE_COMMIT: frozenset({_PREPARE_COMMIT}),
    _COMPLETE_ABORT: frozenset({_PREPARE_ABORT}),
    _DEAD: WITHOUT_TRANSACTION,
    _FENCE: frozenset({_ONGOING}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionData:
    """The stored fields of a transactional id, and ``last_producer_epoch``, which is not stored.

    ``partitions`` are in the order of Kafka's ``HashSet``. ``start_ms`` is -1 without a transaction. ``client_version`` is the
    ``transaction.version`` that the producer uses.
    """

    state: TransactionState = TransactionState.EMPTY
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH
    timeout_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = -1
    last_update_ms: int
    client_version: int = 0

    def to_value(self) -> TransactionLogValue:
        """The record value for ``__transaction_state``."""
        partitions = None
        if self.state is not TransactionState.EMPTY:
            numbers = grouped(self.partitions)
            partitions = tuple(
                PartitionsOfTopic(topic=topic, partition_ids=tuple(numbers[topic]))
                for topic in computed_map_order(numbers, string_hash)
            )
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            timeout_ms=self.timeout_ms,
            status=self.state.number,
            partitions=partitions,
            last_update_timestamp_ms=self.last_update_ms,
            start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_version,
        )

    @classmethod
    def from_value(cls, value: TransactionLogValue) -> "TransactionData":
        """Convert a loaded record value. Raises WireError for an unknown state."""
        if not 0 <= value.status < len(_STATES):
            raise WireError(f"there is no transaction state {value.status}")
        state = _STATES[value.status]
        listed = value.partitions or () if state is not TransactionState.EMPTY else ()
        partitions = ((each.topic, number) for each in listed for number in each.partition_ids)
        return cls(
            state=state,
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.timeout_ms,
            partitions=tuple(hash_map_order(partitions, partition_hash)),
            start_ms=value.start_timestamp_ms,
            last_update_ms=value.last_update_timestamp_ms,
            client_version=value.client_transaction_version,
        )

    @property
    def is_epoch_exhausted(self) -> bool:
        """Can the producer epoch not be bumped any more?"""
        return epoch_is_exhausted(self.producer_epoch)


class TransactionMetadata:
    """A transactional id. ``data`` is stored; ``pending`` is the next state while it is being stored.

    ``fence_failed``: an attempt to fence the producer could not be stored; the next one does not bump the epoch again.
    """

    __slots__ = ("data", "fence_failed", "pending", "transactional_id")

    def __init__(self, transactional_id: str, data: TransactionData) -> None:
        self.transactional_id, self.data = transactional_id, data
        self.pending: TransactionState | None = None
        self.fence_failed = False

    def __repr__(self) -> str:
        return f"<TransactionMetadata {self.transactional_id!r} {self.data.state.value} pending={self.pending}>"

    def fence(self) -> int:
        """Fence the producer, and return the epoch of the abort (``prepareFenceProducerEpoch``)."""
        epoch = self.data.producer_epoch
        raised = epoch if self.fence_failed or epoch == MAX_EPOCH else epoch + 1
        self._to(TransactionState.PREPARE_EPOCH_FENCE, producer_epoch=raised)
        return raised

    def next_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> TransactionData:
        """Bump the epoch; ``expected_epoch`` is that of InitProducerId, or None. Raises ApiError (PRODUCER_FENCED)."""
        now = self.data
        epoch, last = now.producer_epoch + 1, NO_EPOCH
        if expected_epoch is not None:
            last = now.producer_epoch
            if now.producer_epoch not in (NO_EPOCH, expected_epoch):
                if expected_epoch != now.last_producer_epoch:
                    why = f"its epoch is {now.producer_epoch}, and was {now.last_producer_epoch} before"
                    raise ApiError(ErrorCode.PRODUCER_FENCED, f"the producer has epoch {expected_epoch}, but {why}")
                epoch, last = (
                    now.producer_epoch,
                    now.last_producer_epoch,
                )  # a retry: the producer did not get the response
        return self._initialised(timeout_ms, now_ms, producer_epoch=epoch, last_producer_epoch=last)

    def next_producer(self, producer_id: int, timeout_ms: int, now_ms: int, *, keeps_epoch: bool) -> TransactionData:
        """The epochs are exhausted: use the new ``producer_id``, with epoch 0."""
        last = self.data.producer_epoch if keeps_epoch else NO_EPOCH
        return self._initialised(
            timeout_ms, now_ms, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last
        )

    def _initialised(self, timeout_ms: int, now_ms: int, **changes: Any) -> TransactionData:
        return self._to(
            TransactionState.EMPTY, timeout_ms=timeout_ms, partitions=(), start_ms=-1, last_update_ms=now_ms, **changes
        )

    def with_partitions(self, added: Iterable[TopicPartition], now_ms: int, client_version: int) -> TransactionData:
        """Add partitions to the transaction, or begin one with them."""
        now = self.data
        return self._to(
            TransactionState.ONGOING,
            partitions=tuple(hash_set_order(now.partitions, partition_hash, added)),
            start_ms=now_ms if now.state in WITHOUT_TRANSACTION else now.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, state: TransactionState, client_version: int, next_producer_id: int, now_ms: int, *, begins: bool
    ) -> TransactionData:
        """Prepare the end. ``begins``: there is no transaction, and an empty one is aborted (``noPartitionAdded``)."""
        now = self.data
        changes: dict[str, int] = {}
        if client_version >= EPOCH_PER_TRANSACTION_FROM:
            changes["last_producer_epoch"] = now.producer_epoch
            if now.producer_epoch != MAX_EPOCH:
                changes["producer_epoch"] = now.producer_epoch + 1
        return self._to(
            state,
            next_producer_id=next_producer_id,
            start_ms=now_ms if begins else now.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
            **changes,
        )

    def completed(self, now_ms: int) -> TransactionData:
        """All markers are written: complete the transaction."""
        now = self.data
        self.fence_failed = False
        committed = now.state is TransactionState.PREPARE_COMMIT
        changes: dict[str, int] = {}
        if now.client_version >= EPOCH_PER_TRANSACTION_FROM and now.next_producer_id != NO_PRODUCER_ID:
            changes = {"producer_id": now.next_producer_id, "producer_epoch": 0}
        return self._to(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
            next_producer_id=NO_PRODUCER_ID,
            partitions=(),
            last_update_ms=now_ms,
            **changes,
        )

    def dead(self) -> None:
        """Prepare the removal of the transactional id."""
        self._to(TransactionState.DEAD)

    def stored(self, data: TransactionData) -> None:
        """``data`` was stored: it is not pending any more."""
        self.data, self.pending = data, None

    def without_partition(self, partition: TopicPartition) -> None:
        """The marker of ``partition`` is written: remove it from the transaction."""
        left = tuple(each for each in self.data.partitions if each != partition)
        self.data = replace(self.data, partitions=left)

    def _to(self, state: TransactionState, **changes: Any) -> TransactionData:
        if self.pending is not None or self.data.state not in _PREVIOUS[state]:
            raise AssertionError(f"{self!r} cannot become {state.value}")
        self.pending = state
        return replace(self.data, state=state, previous_producer_id=self.data.producer_id, **changes)


def epoch_is_exhausted(epoch: int) -> bool:
    """Is ``epoch`` the last that a producer may use? The very last epoch is reserved for fencing."""
    return epoch >= MAX_EPOCH - 1
