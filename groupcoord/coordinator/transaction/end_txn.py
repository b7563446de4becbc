"""The EndTxn handler: commits or aborts a transaction (``TransactionCoordinator.endTransaction``).

Up to EndTxn v4 producers keep their epoch; from v5 on the epoch is bumped (KIP-890), by which a retried request is recognised.
"""

from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.coordinator.transaction.error_mapping import emit_refusal, error_for
from groupcoord.coordinator.transaction.events import AbortReason
from groupcoord.coordinator.transaction.metadata import (
    EPOCH_PER_TRANSACTION_FROM,
    MAX_EPOCH,
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
from groupcoord.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from groupcoord.protocol.errors import ErrorCode

NEXT_EPOCH_FROM = 5
_ONGOING, _EMPTY = TransactionState.ONGOING, TransactionState.EMPTY
_PREPARE = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


def end_txn(shard: TransactionShard, ctx: HandlerContext, call: Call, request: EndTxnRequest) -> None:
    """Answer ``call`` when the prepared state is stored; the markers are written after that."""
    shard.write(ctx, call, request, _OPERATION)


def _run(
    machine: TransactionCoordinatorShard, ctx: HandlerContext, call: Call, request: EndTxnRequest
) -> CoordinatorResult:
    metadata = machine.require(request.transactional_id)
    bumps = call.version >= NEXT_EPOCH_FROM
    begins = _begins(metadata, request) if bumps else _ends_without_bump(metadata, request)
    if begins is None:
        ctx.reply(call, _answer(metadata))
        return EMPTY_RESULT
    next_id = machine.next_producer_id(metadata) if bumps else -1
    version = EPOCH_PER_TRANSACTION_FROM if bumps else 0
    data = metadata.prepared(_PREPARE[request.committed], version, next_id, ctx.now_ms, begins=begins)

    def stored(later: HandlerContext) -> None:
        complete = metadata.completed(later.now_ms)
        later.reply(call, EndTxnResponse(producer_id=complete.producer_id, producer_epoch=complete.producer_epoch))
        machine.send_markers(later, metadata, complete)

    reason = None if request.committed else AbortReason.ASKED
    return machine.write(metadata, data, stored, lambda later, error: _fail(later, call, request, error), reason=reason)


def _ends_without_bump(metadata: TransactionMetadata, request: EndTxnRequest) -> bool | None:
    """False: end the transaction; None: it has already ended like that. Raises ApiError (``endTransactionWithTV1``)."""
    data = metadata.data
    _check_producer_id(metadata, request)
    if data.producer_epoch != request.producer_epoch:
        raise _fenced(metadata, request)
    _check_pending(metadata)
    if data.state is _ONGOING:
        return False
    if data.state is _COMPLETE[request.committed]:
        return None
    raise _wrong_state(metadata, request)


def _begins(metadata: TransactionMetadata, request: EndTxnRequest) -> bool | None:
    """False: end the transaction; True: there is none, so begin and abort an empty one, to bump the epoch; None: it has
    already ended like that. Raises ApiError."""
    data, epoch = metadata.data, request.producer_epoch
    rotated = data.previous_producer_id == request.producer_id and epoch == MAX_EPOCH - 1 and data.producer_epoch == 0
    repeats = data.producer_epoch == epoch + 1
    _check_pending(metadata)
    if not rotated:
        _check_producer_id(metadata, request)
    if data.state in (_ONGOING, _EMPTY):
        known = epoch == data.producer_epoch
    elif data.state in _PREPARE.values():
        known = repeats
    else:
        known = repeats or rotated or epoch == data.producer_epoch
    if not known:
        raise _fenced(metadata, request)
    if data.state is _ONGOING:
        return False
    is_repetition = repeats or rotated
    if data.state is _COMPLETE[request.committed] and is_repetition:
        return None
    if data.state not in _PREPARE.values() and not request.committed and not is_repetition:
        return True
    raise _wrong_state(metadata, request)


def _check_pending(metadata: TransactionMetadata) -> None:
    if metadata.pending is not None:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, "its last change is being stored")


def _check_producer_id(metadata: TransactionMetadata, request: EndTxnRequest) -> None:
    if metadata.data.producer_id != request.producer_id:
        why = f"the producer id is {metadata.data.producer_id}, and not {request.producer_id}"
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)


def _fenced(metadata: TransactionMetadata, request: EndTxnRequest) -> ApiError:
    data = metadata.data
    why = f"the producer's epoch is {data.producer_epoch} in state {data.state.value}, and not {request.producer_epoch}"
    return ApiError(ErrorCode.PRODUCER_FENCED, why)


def _wrong_state(metadata: TransactionMetadata, request: EndTxnRequest) -> ApiError:
    state = metadata.data.state
    if state is _PREPARE[request.committed]:
        return ApiError(ErrorCode.CONCURRENT_TRANSACTIONS, f"its transaction is in state {state.value}")
    wanted = "committed" if request.committed else "aborted"
    return ApiError(ErrorCode.INVALID_TXN_STATE, f"nothing can be {wanted} in state {state.value}")


def _answer(metadata: TransactionMetadata) -> EndTxnResponse:
    return EndTxnResponse(producer_id=metadata.data.producer_id, producer_epoch=metadata.data.producer_epoch)


def _refuse(ctx: HandlerContext, call: Call, request: EndTxnRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.transactional_id, refusal)
    _fail(ctx, call, request, refusal.code)


def _fail(ctx: HandlerContext, call: Call, _request: EndTxnRequest, error: ErrorCode) -> None:
    ctx.reply(call, EndTxnResponse(error_code=error_for(call, error)))


_OPERATION = TransactionOperation(_run, _refuse, _fail)
