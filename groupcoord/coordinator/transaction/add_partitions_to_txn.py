"""The handlers of AddPartitionsToTxn and AddOffsetsToTxn, and the verification of transactional writes (KIP-890).

Sources: ``KafkaApis.handleAddPartitionsToTxnRequest``, ``KafkaApis.handleAddOffsetsToTxnRequest``,
``TransactionCoordinator.handleAddPartitionsToTransaction`` and ``handleVerifyPartitionsInTransaction``,
``AddPartitionsToTxnManager``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.coordinator.transaction.error_mapping import emit_refusal, error_for
from groupcoord.coordinator.transaction.metadata import (
    EPOCH_PER_TRANSACTION_FROM,
    PREPARED,
    TransactionMetadata,
    TransactionState,
)
from groupcoord.coordinator.transaction.transaction_coordinator_shard import (
    TransactionCoordinatorShard,
    TransactionOperation,
    TransactionShard,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.java_hash_order import hash_map_order, partition_hash, string_hash
from groupcoord.core.scala_hash_order import mutable_map_order
from groupcoord.core.transaction_verification_types import TopicPartition, TransactionalWrite, Verified
from groupcoord.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from groupcoord.protocol.apis.add_partitions_to_txn import (
    BY_TRANSACTION_FROM,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    failed_transaction,
)
from groupcoord.protocol.errors import ErrorCode

ShardOf = Callable[[str], TransactionShard]
Errors = Mapping[TopicPartition, ErrorCode]
Answered = Callable[[HandlerContext, ErrorCode], None]


class TopicsOfTransactions(NamedTuple):
    """The existing partitions, and the names of internal topics."""

    exists: Callable[[TopicPartition], bool]
    internal: frozenset[str]


def add_partitions_to_txn(
    shard_of: ShardOf,
    topics: TopicsOfTransactions,
    ctx: HandlerContext,
    call: Call,
    request: AddPartitionsToTxnRequest,
) -> None:
    """Answer ``call`` when all its transactions are handled; a request without transactions is never answered, as in Kafka.

    If a transactional id is named more than once, each of its transactions gets the partitions of the last one, and a
    result for those of the first one, because Kafka looks both up by the id.
    """
    last = {transaction.transactional_id: transaction for transaction in request.transactions}
    first = {transaction.transactional_id: transaction for transaction in reversed(request.transactions)}
    results: dict[int, AddPartitionsToTxnResult] = {}

    def answered(number: int, later: HandlerContext, result: AddPartitionsToTxnResult) -> None:
        results[number] = result
        if len(results) == len(request.transactions):
            in_order = tuple(results[each] for each in sorted(results))
            later.reply(call, AddPartitionsToTxnResponse(results_by_transaction=in_order))

    for number, transaction in enumerate(request.transactions):
        named = last[transaction.transactional_id].topics
        partitions = [(topic.name, partition) for topic in named for partition in topic.partitions]
        shown = first[transaction.transactional_id]
        _one_transaction(shard_of, topics, ctx, call, transaction, partitions, shown, partial(answered, number))


def _one_transaction(
    shard_of: ShardOf,
    topics: TopicsOfTransactions,
    ctx: HandlerContext,
    call: Call,
    transaction: AddPartitionsToTxnTransaction,
    partitions: Sequence[TopicPartition],
    shown: AddPartitionsToTxnTransaction,
    answered: Callable[[HandlerContext, AddPartitionsToTxnResult], None],
) -> None:
    """``partitions`` are added or verified; a result without an error of one partition is that of ``shown``."""
    transactional_id = transaction.transactional_id
    errors: dict[TopicPartition, ErrorCode] = {}
    for partition in partitions:
        if call.version < BY_TRANSACTION_FROM and partition[0] in topics.internal:
            errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED  # only brokers may add internal topics
        elif not topics.exists(partition):
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if errors:
        for partition in partitions:
            errors.setdefault(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
        in_order = mutable_map_order(errors, partition_hash)
        answered(ctx, _result(transactional_id, {partition: errors[partition] for partition in in_order}))
        return
    producer = TransactionalWrite(
        transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        adds=not transaction.verify_only,
        gives_abortable=True,
    )
    shard = shard_of(transactional_id)
    if transaction.verify_only:
        verified = verify_partitions(shard, ctx, call, producer, hash_map_order(partitions, partition_hash))
        answered(ctx, _result(transactional_id, verified))
        return

    def added(later: HandlerContext, error: ErrorCode) -> None:
        answered(later, failed_transaction(error_for(call, error), shown))

    version = EPOCH_PER_TRANSACTION_FROM if call.version >= BY_TRANSACTION_FROM else 0
    add_partitions(shard, ctx, call, producer, partitions, version, added)


def _result(transactional_id: str, errors: Errors) -> AddPartitionsToTxnResult:
    """The result from a map of errors in order (``AddPartitionsToTxnResponse.resultForTransaction``)."""
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, number), error in errors.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=error)
        by_topic.setdefault(topic, []).append(result)
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(name=topic, results_by_partition=tuple(by_topic[topic]))
            for topic in hash_map_order(by_topic, string_hash)
        ),
    )


def add_offsets_to_txn(
    shard: TransactionShard,
    offsets_partition: TopicPartition,
    ctx: HandlerContext,
    call: Call,
    request: AddOffsetsToTxnRequest,
) -> None:
    """Answer ``call`` after adding ``offsets_partition``, the partition of the group's offsets, to the transaction."""

    def added(later: HandlerContext, error: ErrorCode) -> None:
        later.reply(call, AddOffsetsToTxnResponse(error_code=error_for(call, error)))

    producer = TransactionalWrite(
        request.transactional_id, request.producer_id, request.producer_epoch, adds=True, gives_abortable=True
    )
    add_partitions(shard, ctx, call, producer, (offsets_partition,), 0, added)


def add_partitions(
    shard: TransactionShard,
    ctx: HandlerContext,
    call: Call,
    producer: TransactionalWrite,
    partitions: Sequence[TopicPartition],
    client_version: int,
    answered: Answered,
) -> None:
    """Add ``partitions`` to the transaction of ``producer``, or begin one, then call ``answered`` with the error."""

    def run(machine: TransactionCoordinatorShard, turn: HandlerContext, _: Call, __: object) -> CoordinatorResult:
        metadata = _metadata_of(machine, producer)
        data = metadata.data
        if data.state is TransactionState.ONGOING and set(partitions) <= set(data.partitions):
            answered(turn, ErrorCode.NONE)
            return EMPTY_RESULT
        added = metadata.with_partitions(partitions, turn.now_ms, client_version)
        return machine.write(metadata, added, lambda later: answered(later, ErrorCode.NONE), answered)

    def refuse(turn: HandlerContext, _: Call, __: object, refusal: ApiError) -> None:
        emit_refusal(turn, call, producer.transactional_id, refusal)
        answered(turn, refusal.code)

    shard.write(ctx, call, None, TransactionOperation(run, refuse))


def _metadata_of(machine: TransactionCoordinatorShard, producer: TransactionalWrite) -> TransactionMetadata:
    """The metadata of the transactional id, if ``producer`` may add partitions. Raises ApiError."""
    metadata = machine.require(producer.transactional_id)
    if metadata.pending is not None:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "its last change is being stored")
    _check_producer(metadata, producer)
    return metadata


def _check_producer(metadata: TransactionMetadata, producer: TransactionalWrite) -> None:
    """Raises ApiError (INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS)."""
    data = metadata.data
    if data.producer_id != producer.producer_id:
        why = f"the producer id is {data.producer_id}, and not {producer.producer_id}"
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)
    if data.producer_epoch != producer.producer_epoch:
        why = f"the producer's epoch is {data.producer_epoch}, and not {producer.producer_epoch}"
        raise ApiError(ErrorCode.PRODUCER_FENCED, why)
    if data.state in PREPARED:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, f"its transaction is in state {data.state.value}")


def verify_partitions(
    shard: TransactionShard,
    ctx: HandlerContext,
    call: Call,
    producer: TransactionalWrite,
    partitions: Iterable[TopicPartition],
) -> Errors:
    """The error of each of ``partitions``: TRANSACTION_ABORTABLE if it is not in the transaction."""
    try:
        shard.require_active()
        metadata = shard.machine.require(producer.transactional_id)
        _check_producer(metadata, producer)
    except ApiError as refusal:
        emit_refusal(ctx, call, producer.transactional_id, refusal)
        return dict.fromkeys(partitions, refusal.code)
    among = frozenset(metadata.data.partitions)
    return {
        partition: ErrorCode.NONE if partition in among else ErrorCode.TRANSACTION_ABORTABLE for partition in partitions
    }


def verify_write(
    shard: TransactionShard,
    ctx: HandlerContext,
    call: Call,
    producer: TransactionalWrite,
    partitions: Sequence[TopicPartition],
    verified: Verified,
) -> None:
    """See VerifyTransaction. Errors that the producer does not know are mapped to older ones."""

    def told(later: HandlerContext, errors: Errors) -> None:
        verified(later, {each: _of_leader(error, producer) for each, error in errors.items() if error})

    if producer.adds:
        add_partitions(
            shard,
            ctx,
            call,
            producer,
            partitions,
            EPOCH_PER_TRANSACTION_FROM,
            lambda later, error: told(later, dict.fromkeys(partitions, error)),
        )
    else:
        told(ctx, verify_partitions(shard, ctx, call, producer, partitions))


def _of_leader(error: ErrorCode, producer: TransactionalWrite) -> ErrorCode:
    """Map an error of the coordinator to that in the response of the partition leader."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not producer.gives_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
