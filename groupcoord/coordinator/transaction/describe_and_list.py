"""The handlers of DescribeTransactions and ListTransactions (KIP-664).

Sources: ``TransactionCoordinator.handleDescribeTransactions``, ``TransactionStateManager.listTransactionStates``.
"""

from collections.abc import Callable, Iterator, Sequence

from groupcoord.coordinator.runtime.shard import ShardState
from groupcoord.coordinator.transaction.error_mapping import emit_refusal
from groupcoord.coordinator.transaction.metadata import TransactionMetadata, TransactionState
from groupcoord.coordinator.transaction.transaction_coordinator_shard import TransactionShard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.core.grouping import grouped
from groupcoord.core.java_hash_order import hash_order
from groupcoord.core.re2_expressions import compiled
from groupcoord.protocol.apis.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from groupcoord.protocol.apis.describe_transactions import TransactionState as DescribedTransaction
from groupcoord.protocol.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from groupcoord.protocol.apis.list_transactions import TransactionState as ListedTransaction
from groupcoord.protocol.errors import ErrorCode

_STATES = {state.value: state for state in TransactionState}


def describe_transactions(
    shard_of: Callable[[str], TransactionShard],
    ctx: HandlerContext,
    call: Call,
    request: DescribeTransactionsRequest,
) -> None:
    """Answer ``call`` with the state of each transactional id."""
    described = []
    for transactional_id in request.transactional_ids:
        try:
            described.append(_described(shard_of, transactional_id))
        except ApiError as refusal:
            emit_refusal(ctx, call, transactional_id, refusal)
            described.append(_nothing(transactional_id, refusal.code))
    ctx.reply(call, DescribeTransactionsResponse(transaction_states=tuple(described)))


def _described(shard_of: Callable[[str], TransactionShard], transactional_id: str) -> DescribedTransaction:
    if not transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    shard = shard_of(transactional_id)
    shard.require_active()
    metadata = shard.machine.transactions.get(transactional_id)
    if metadata is None:
        why = f"there is no transactional id {transactional_id!r}"
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, why)
    data = metadata.data
    topics = grouped(data.partitions)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=data.state.value,
        transaction_timeout_ms=data.timeout_ms,
        transaction_start_time_ms=data.start_ms,
        producer_id=data.producer_id,
        producer_epoch=data.producer_epoch,
        topics=tuple(TopicData(topic=topic, partitions=tuple(numbers)) for topic, numbers in topics.items()),
    )


def _nothing(transactional_id: str, error: ErrorCode) -> DescribedTransaction:
    return DescribedTransaction(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
    )


def list_transactions(
    shards: Sequence[TransactionShard], ctx: HandlerContext, call: Call, request: ListTransactionsRequest
) -> None:
    """Answer ``call`` with the transactions that pass all filters; with an error while any partition is loading."""
    try:
        listed = tuple(_listed(shards, ctx.now_ms, request))
    except ApiError as refusal:
        emit_refusal(ctx, call, request.transactional_id_pattern or "", refusal)
        ctx.reply(call, ListTransactionsResponse(error_code=refusal.code))
        return
    unknown = tuple(state for state in dict.fromkeys(request.state_filters) if state not in _STATES)
    ctx.reply(call, ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed))


def _listed(
    shards: Sequence[TransactionShard], now_ms: int, request: ListTransactionsRequest
) -> Iterator[ListedTransaction]:
    loading = [shard.partition for shard in shards if shard.state is ShardState.LOADING]
    if loading:
        why = f"of __transaction_state still being read: {', '.join(map(str, loading))}"
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, why)
    matches = _matcher(request.transactional_id_pattern)
    for shard in shards:
        transactions = shard.machine.transactions
        for transactional_id in hash_order(transactions):
            metadata = transactions[transactional_id]
            if _passes(metadata, now_ms, request) and matches(transactional_id):
                yield ListedTransaction(
                    transactional_id=transactional_id,
                    producer_id=metadata.data.producer_id,
                    transaction_state=metadata.data.state.value,
                )


def _passes(metadata: TransactionMetadata, now_ms: int, request: ListTransactionsRequest) -> bool:
    data = metadata.data
    if request.producer_id_filters and data.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and data.state.value not in request.state_filters:
        return False
    return request.duration_filter < 0 or now_ms - data.start_ms > request.duration_filter


def _matcher(pattern: str | None) -> Callable[[str], object]:
    """The match function of ``pattern``. Raises ApiError for an invalid regular expression."""
    if not pattern:
        return lambda _: True
    expression = compiled(pattern)
    if isinstance(expression, str):
        raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r} is not a regular expression: {expression}")
    return expression.fullmatch  # type: ignore[no-any-return]
