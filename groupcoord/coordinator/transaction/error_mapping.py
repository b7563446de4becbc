"""Errors of the transaction coordinator: what a failed append is answered, what old requests know, the event of a refusal."""

from groupcoord.coordinator.transaction.events import TransactionRefused
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode

_RESPONSE_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
PRODUCER_FENCED_FROM = 2
"""Older requests of producers know only INVALID_PRODUCER_EPOCH (KIP-588)."""


def response_error(append_error: ErrorCode) -> ErrorCode:
    """What a client is told when its transaction's record could not be stored (``appendTransactionToLog``)."""
    return _RESPONSE_ERRORS.get(append_error, append_error)


def emit_refusal(ctx: HandlerContext, call: Call, transactional_id: str, refusal: ApiError) -> None:
    """Emit that ``call`` is refused; the caller answers it."""
    error, why = refusal.code.name, refusal.message or refusal.code.text
    ctx.emit(TransactionRefused, transactional_id=transactional_id, api=call.api.name, error=error, why=why)


def error_for(call: Call, error: ErrorCode) -> ErrorCode:
    """What ``call`` is told of ``error``: AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_FROM:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
