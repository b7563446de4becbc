"""Maps append errors and new errors to codes of transaction coordinator responses, and emits TransactionRefused events."""

from groupcoord.coordinator.transaction.events import TransactionRefused
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
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
"""The first version with PRODUCER_FENCED; older versions have INVALID_PRODUCER_EPOCH (KIP-588)."""


def response_error(append_error: ErrorCode) -> ErrorCode:
    """The error code of the response when the append failed with ``append_error`` (``appendTransactionToLog``)."""
    return _RESPONSE_ERRORS.get(append_error, append_error)


def emit_refusal(ctx: HandlerContext, call: Call, transactional_id: str, refusal: ApiError) -> None:
    """Emit TransactionRefused for ``call``; the caller sends the response."""
    error, why = refusal.code.name, refusal.message or refusal.code.text
    ctx.emit(TransactionRefused, transactional_id=transactional_id, api=call.api.name, error=error, why=why)


def error_for(call: Call, error: ErrorCode) -> ErrorCode:
    """``error`` in the version of ``call``, one of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < PRODUCER_FENCED_FROM:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error
