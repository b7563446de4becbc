"""The InitProducerId handler for transactional ids: returns a producer id and an epoch that fences older producers.

Source: ``TransactionCoordinator.handleInitProducerId``.
"""

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.transaction.error_mapping import emit_refusal
from groupcoord.coordinator.transaction.events import AbortReason
from groupcoord.coordinator.transaction.metadata import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    TransactionData,
    TransactionMetadata,
    TransactionState,
    epoch_is_exhausted,
)
from groupcoord.coordinator.transaction.transaction_coordinator_shard import (
    TransactionCoordinatorShard,
    TransactionOperation,
    TransactionShard,
)
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from groupcoord.protocol.errors import ErrorCode

PRODUCER_FENCED_FROM = 4


def init_producer_id(
    config: BrokerConfig, shard: TransactionShard, ctx: HandlerContext, call: Call, request: InitProducerIdRequest
) -> None:
    """Answer ``call``, which has a transactional id. Every broker, not only the coordinator, refuses an invalid request."""
    try:
        _check_request(config, request)
    except ApiError as refusal:
        _refuse(ctx, call, request, refusal)
    else:
        shard.write(ctx, call, request, _OPERATION)


def _check_request(config: BrokerConfig, request: InitProducerIdRequest) -> None:
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        raise ApiError(ErrorCode.INVALID_REQUEST, "producer_id and producer_epoch are given both or not at all")
    if not request.transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    timeout_ms, longest = request.transaction_timeout_ms, config.transaction_max_timeout_ms
    if not 0 < timeout_ms <= longest:
        why = f"transaction_timeout_ms is {timeout_ms}; it can be from 1 to {longest} (transaction.max.timeout.ms)"
        raise ApiError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, why)


def _run(
    machine: TransactionCoordinatorShard, ctx: HandlerContext, call: Call, request: InitProducerIdRequest
) -> CoordinatorResult:
    transactional_id, timeout_ms = request.transactional_id or "", request.transaction_timeout_ms
    metadata = machine.transactions.get(transactional_id)
    if metadata is None:
        fresh = TransactionData(
            producer_id=machine.context.new_producer_id(machine.partition),
            timeout_ms=timeout_ms,
            last_update_ms=ctx.now_ms,
        )
        metadata = machine.transactions[transactional_id] = TransactionMetadata(transactional_id, fresh)
    _check(metadata, request)
    if metadata.data.state is TransactionState.ONGOING:

        def aborted(later: HandlerContext, error: ErrorCode) -> None:
            _fail(later, call, request, error or ErrorCode.CONCURRENT_TRANSACTIONS)

        return machine.abort(ctx, metadata, AbortReason.FENCED, aborted)
    data = _next(machine, ctx, metadata, request)

    def stored(later: HandlerContext) -> None:
        answer = InitProducerIdResponse(producer_id=data.producer_id, producer_epoch=data.producer_epoch)
        later.reply(call, answer)

    return machine.write(metadata, data, stored, lambda later, error: _fail(later, call, request, error))


def _check(metadata: TransactionMetadata, request: InitProducerIdRequest) -> None:
    """May this producer be initialised now? Raises ApiError."""
    data = metadata.data
    if metadata.pending is not None:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "its last change is being stored")
    if request.producer_id != NO_PRODUCER_ID and data.producer_epoch != NO_EPOCH:
        rotated = request.producer_id == data.previous_producer_id and epoch_is_exhausted(request.producer_epoch)
        if request.producer_id != data.producer_id and not rotated:
            why = f"the producer id is {data.producer_id} by now, and {request.producer_id} asks"
            raise ApiError(ErrorCode.PRODUCER_FENCED, why)
    if data.state in PREPARED:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, f"its transaction is in state {data.state.value}")


def _next(
    machine: TransactionCoordinatorShard,
    ctx: HandlerContext,
    metadata: TransactionMetadata,
    request: InitProducerIdRequest,
) -> TransactionData:
    data, timeout_ms = metadata.data, request.transaction_timeout_ms
    expected = None if request.producer_id == NO_PRODUCER_ID else request.producer_epoch
    if data.is_epoch_exhausted and expected in (None, data.producer_epoch):
        new_id = machine.context.new_producer_id(machine.partition)
        return metadata.next_producer(new_id, timeout_ms, ctx.now_ms, keeps_epoch=expected is not None)
    return metadata.next_epoch(timeout_ms, expected, ctx.now_ms)


def _refuse(ctx: HandlerContext, call: Call, request: InitProducerIdRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.transactional_id or "", refusal)
    _fail(ctx, call, request, refusal.code)


def _fail(ctx: HandlerContext, call: Call, _request: InitProducerIdRequest, error: ErrorCode) -> None:
    if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_FROM:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    ctx.reply(call, InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH))


_OPERATION = TransactionOperation(_run, _refuse, _fail)
