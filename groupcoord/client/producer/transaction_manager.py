"""TransactionManager: the state of a transactional producer, without I/O (KIP-98, KIP-447, KIP-890).

Its driver calls the user's methods (``init_transactions``, ``begin_transaction`` …), sends the requests that ``next_request``
returns, one at a time, and reports each result with ``complete`` or ``fail``. When ``next_request`` returns None, there is
nothing to send until ``next_deadline``. The driver sends batches itself, in parallel to different partitions but one at a time
to each: ``new_batch`` returns their producer id, epoch and sequence number, and ``batch_answered`` whether to retry them.

It requires ``transaction.version`` 2 (KIP-890): Produce and TxnOffsetCommit add partitions to the transaction, and the response
to EndTxn brings the epoch of the next one. Source: ``org.apache.kafka.clients.producer.internals.TransactionManager``.
"""

import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.client.client_errors import BrokerError, ClientError, DisconnectedError
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member.actions import CoordinatorNode
from groupcoord.client.producer.producer_config import ProducerConfig
from groupcoord.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from groupcoord.protocol.apis.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from groupcoord.protocol.batches.record_batch import add_to_sequence
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.errors import ErrorCode as E


class ProducerState(enum.Enum):
    """The state of the producer; the values are Kafka's names (``TransactionManager.State``)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    """It requests its producer id and epoch, which fences older producers with the same transactional id."""
    READY = "Ready"
    IN_TRANSACTION = "InTransaction"
    COMMITTING_TRANSACTION = "CommittingTransaction"
    ABORTING_TRANSACTION = "AbortingTransaction"
    ABORTABLE_ERROR = "AbortableError"
    """The transaction can only be aborted."""
    FATAL_ERROR = "FatalError"
    """The producer is unusable, most often because another producer with its transactional id has fenced it."""


_S = ProducerState
_CAN_BE_ABORTED = (ProducerState.IN_TRANSACTION, ProducerState.COMMITTING_TRANSACTION)


class TransactionStateError(ClientError):
    """The call is not allowed in the current state of the producer."""


class GroupMetadata(NamedTuple):
    """The member that commits offsets, so that the coordinator can fence it (``ConsumerGroupMetadata``, KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    instance_id: str | None = None


class ProducerRequest(NamedTuple):
    """Send ``request`` to the coordinator ``to``, or to any broker if that is None."""

    to: CoordinatorNode | None
    request: Any
    timeout_ms: int


class TransactionBatch(NamedTuple):
    """The producer id, epoch and base sequence of a batch of ``size`` records for ``partition``."""

    partition: TopicPartition
    size: int
    producer_id: int
    producer_epoch: int
    base_sequence: int


_LOOK_UP = frozenset({E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR})
_FENCED = frozenset({E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED})
_ABORTABLE: Mapping[type, frozenset[ErrorCode]] = {
    FindCoordinatorResponse: frozenset({E.GROUP_AUTHORIZATION_FAILED, E.TRANSACTION_ABORTABLE}),
    TxnOffsetCommitResponse: frozenset(
        {
            E.GROUP_AUTHORIZATION_FAILED,
            E.FENCED_INSTANCE_ID,
            E.TRANSACTION_ABORTABLE,
            E.UNKNOWN_MEMBER_ID,
            E.ILLEGAL_GENERATION,
        }
    ),
    EndTxnResponse: frozenset({E.TRANSACTION_ABORTABLE, E.UNKNOWN_PRODUCER_ID}),
}
"""Errors after which the transaction can be aborted; other errors are fatal, unless they are retriable."""

FATAL_FOR_BATCHES = frozenset(
    {
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.PRODUCER_FENCED,
        E.UNSUPPORTED_VERSION,
        E.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""Fatal errors of Produce; after any other the transaction can be aborted. INVALID_PRODUCER_EPOCH is not fatal here: the
response to EndTxn shows whether the producer is fenced (KIP-588)."""


class TransactionManager:
    """One transactional producer. ``error`` is the abortable or fatal error; ``chance`` returns a random
    number in [0, 1), for the jitter of retries."""

    def __init__(self, settings: ProducerConfig, *, chance: Callable[[], float]) -> None:
        self.settings = settings
        self.transactional_id = settings.transactional_id or ""
        self.state = ProducerState.UNINITIALIZED
        self.error: ClientError | None = None
        self.producer_id = self.producer_epoch = -1
        self._backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, chance)
        self._attempts = 0
        self._retry_at_ms: int | None = None
        self._under_way: ProducerRequest | None = None
        self._coordinators: dict[int, CoordinatorNode] = {}  # by key type
        self._sequences: dict[TopicPartition, int] = {}  # the next sequence number of each partition
        self._batches: set[TransactionBatch] = set()
        self._offsets: dict[TopicPartition, int] = {}
        self._group = GroupMetadata("")
        self._started = False

    def __repr__(self) -> str:
        who = f"{self.transactional_id!r} producer={self.producer_id} epoch={self.producer_epoch}"
        return f"<TransactionManager {self.state.value} {who}>"

    # --- the user. All raise TransactionStateError.

    def init_transactions(self) -> None:
        """Request a producer id, which fences older producers with the transactional id; must be called first."""
        self.require(_S.UNINITIALIZED)
        self.state = _S.INITIALIZING

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self.require(_S.READY)
        self.state = _S.IN_TRANSACTION

    def new_batch(self, partition: TopicPartition, size: int) -> TransactionBatch:
        """Register a batch of ``size`` records for ``partition``; the transaction waits for its response before it ends."""
        self.require(_S.IN_TRANSACTION)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = add_to_sequence(sequence, size)
        batch = TransactionBatch(partition, size, self.producer_id, self.producer_epoch, sequence)
        self._batches.add(batch)
        self._started = True
        return batch

    def send_offsets_to_transaction(self, offsets: Mapping[TopicPartition, int], group: GroupMetadata) -> None:
        """Commit ``offsets``, each that of the next record to consume, as part of the transaction."""
        self.require(_S.IN_TRANSACTION)
        self._offsets |= offsets
        if group.group_id != self._group.group_id:
            self._coordinators.pop(GROUP, None)
        self._group = group
        self._started = True

    @property
    def has_offsets_to_commit(self) -> bool:
        """Are there offsets that were not sent to the group coordinator yet?"""
        return bool(self._offsets)

    def commit_transaction(self) -> None:
        """Commit as soon as all batches and offsets are acknowledged. The commit is complete in the state READY."""
        self.require(_S.IN_TRANSACTION)
        self.state = _S.COMMITTING_TRANSACTION

    def abort_transaction(self) -> None:
        """Abort as soon as all batches in flight have their responses."""
        self.require(_S.IN_TRANSACTION, _S.ABORTABLE_ERROR)
        self.state, self.error = _S.ABORTING_TRANSACTION, None
        self._offsets.clear()

    def require(self, *states: ProducerState) -> None:
        """Raise TransactionStateError unless the state is one of ``states``."""
        if self.state not in states:
            raise TransactionStateError(f"the producer is in state {self.state.value}") from self.error

    # --- batches

    def batch_answered(self, batch: TransactionBatch, code: ErrorCode) -> bool:
        """Handle the Produce response ``code`` of ``batch``; returns whether to retry it unchanged."""
        if code.retriable and self.state is not _S.FATAL_ERROR:
            return True
        self._batches.discard(batch)
        if code not in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
            self._fail(BrokerError(code, "Produce"), abortable=code not in FATAL_FOR_BATCHES)
        return False

    def batch_failed(self, batch: TransactionBatch, error: ClientError, *, abortable: bool = True) -> None:
        """The batch failed with ``error`` without a response, for example after ``delivery.timeout.ms``."""
        self._batches.discard(batch)
        self._fail(error, abortable=abortable)

    # --- requests

    def next_request(self, now_ms: int) -> ProducerRequest | None:
        """The request to send now; None if there is none, or while one is in flight."""
        if self._under_way is not None or (self._retry_at_ms is not None and now_ms < self._retry_at_ms):
            return None
        self._retry_at_ms = None
        self._under_way = self._wanted()
        return self._under_way

    def next_deadline(self) -> int | None:
        """When to call ``next_request`` again (ms), or None."""
        return self._retry_at_ms

    def complete(self, response: Any, now_ms: int) -> None:
        """The request in flight has its response. Raises TransactionStateError if none is in flight."""
        sent = self._sent()
        match response:
            case FindCoordinatorResponse():
                self._found(sent.request.key_type, response, now_ms)
            case TxnOffsetCommitResponse():
                self._offsets_committed(response, now_ms)
            case InitProducerIdResponse() | EndTxnResponse():
                if self._succeeded(response, ErrorCode(response.error_code), TRANSACTION, now_ms):
                    self._has_producer(response.producer_id, response.producer_epoch)
            case _:
                raise AssertionError(f"{response!r} answers nothing that was asked")

    def fail(self, error: Exception, now_ms: int) -> None:
        """The request in flight failed without a response: it is retried, after a new lookup of the coordinator.

        Any error but DisconnectedError is fatal. Raises TransactionStateError if none is in flight.
        """
        sent = self._sent()
        if isinstance(error, DisconnectedError):
            if sent.to is not None:
                self._coordinators = {key: node for key, node in self._coordinators.items() if node != sent.to}
            self._retry(now_ms)
        else:
            failure = error if isinstance(error, ClientError) else ClientError(str(error))
            self._fail(failure, abortable=False)

    def _sent(self) -> ProducerRequest:
        sent, self._under_way = self._under_way, None
        if sent is None:
            raise TransactionStateError("no request was under way")
        return sent

    def _wanted(self) -> ProducerRequest | None:
        transactional_id = self.transactional_id
        if self.state is _S.INITIALIZING:
            timeout_ms = self.settings.transaction_timeout_ms
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
            return self._to_coordinator(TRANSACTION, transactional_id, request)
        if self._offsets and self.state in (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION):
            return self._to_coordinator(GROUP, self._group.group_id, self._offset_commit())
        if self.state not in (_S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION) or self._batches:
            return None
        if not self._started:
            self._ended()  # nothing was added to the transaction, so the coordinator has none to end
            return None
        end = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=self.state is _S.COMMITTING_TRANSACTION,
        )
        return self._to_coordinator(TRANSACTION, transactional_id, end)

    def _to_coordinator(self, key_type: int, key: str, request: Any) -> ProducerRequest:
        node, timeout_ms = self._coordinators.get(key_type), self.settings.request_timeout_ms
        if node is None:
            request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=(key,))
        return ProducerRequest(node, request, timeout_ms)

    def _offset_commit(self) -> TxnOffsetCommitRequest:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, number), offset in sorted(self._offsets.items()):
            partition = TxnOffsetCommitRequestPartition(
                partition_index=number, committed_offset=offset, committed_metadata=""
            )
            topics.setdefault(topic, []).append(partition)
        group = self._group
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=tuple(
                TxnOffsetCommitRequestTopic(name=name, partitions=tuple(topics[name])) for name in sorted(topics)
            ),
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
        )

    # --- answers

    def _found(self, key_type: int, response: FindCoordinatorResponse, now_ms: int) -> None:
        (found,) = response.coordinators
        if self._succeeded(response, ErrorCode(found.error_code), key_type, now_ms):
            self._coordinators[key_type] = CoordinatorNode(found.node_id, found.host, found.port)

    def _offsets_committed(self, response: TxnOffsetCommitResponse, now_ms: int) -> None:
        """Remove the stored offsets; retry the others, unless an error is not retriable."""
        errors: list[ErrorCode] = []
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code:
                    errors.append(ErrorCode(each.error_code))
                else:
                    self._offsets.pop((topic.name, each.partition_index), None)
        errors.sort(key=lambda code: code.retriable)  # an error that is not retriable comes first
        self._succeeded(response, errors[0] if errors else E.NONE, GROUP, now_ms)

    def _succeeded(self, response: Any, code: ErrorCode, key_type: int, now_ms: int) -> bool:
        """Whether ``code`` is no error; an error is handled here."""
        if code is E.NONE:
            self._attempts = 0
            return True
        if code in _LOOK_UP or (code is E.REQUEST_TIMED_OUT and key_type == GROUP):
            self._coordinators.pop(key_type, None)
        if code.retriable:
            self._retry(now_ms)
            return False
        doing = type(response).__name__.removesuffix("Response")
        can_abort = self.state in _CAN_BE_ABORTED or isinstance(response, TxnOffsetCommitResponse)
        self._fail(
            BrokerError(E.PRODUCER_FENCED if code in _FENCED else code, doing),
            abortable=can_abort and code in _ABORTABLE.get(type(response), ()),
        )
        return False

    def _has_producer(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self._ended()

    def _ended(self) -> None:
        self.state, self.error, self._started = _S.READY, None, False
        self._sequences.clear()
        self._offsets.clear()

    def _retry(self, now_ms: int) -> None:
        self._retry_at_ms = now_ms + self._backoff.delay_ms(self._attempts)
        self._attempts += 1

    def _fail(self, error: ClientError, *, abortable: bool) -> None:
        """Record the first error only. An abortable error is ignored while the transaction is being aborted."""
        if not abortable and self.state is not _S.FATAL_ERROR:
            self.state, self.error = _S.FATAL_ERROR, error
        elif self.state in _CAN_BE_ABORTED:
            self.state, self.error = _S.ABORTABLE_ERROR, error
