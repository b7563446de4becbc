"""Maps append errors to error codes of group coordinator responses, and emits RequestRefused events.

An append that takes longer than ``offsets.commit.timeout.ms`` fails with REQUEST_TIMED_OUT, which is never sent to a client.
Sources: ``GroupMetadataManager.appendGroupMetadataErrorToResponseError``, ``CoordinatorOperationExceptionHelper`` and
``GroupCoordinatorService.handleOffsetFetchException``.
"""

from collections.abc import Mapping
from types import MappingProxyType

from groupcoord.coordinator.events import RequestRefused
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.errors import ErrorCode

_RESPONSE_ERRORS: Mapping[ErrorCode, ErrorCode] = MappingProxyType(
    {
        ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def response_error(append_error: ErrorCode) -> ErrorCode:
    """The error code of the response when the append of its records failed with ``append_error``."""
    return _RESPONSE_ERRORS.get(append_error, append_error)


def offset_fetch_error(append_error: ErrorCode) -> ErrorCode:
    """The same for an OffsetFetch that waited for appends: consumers before 3.9 fail on COORDINATOR_NOT_AVAILABLE there."""
    told = _RESPONSE_ERRORS.get(append_error)
    return ErrorCode.NOT_COORDINATOR if told is ErrorCode.COORDINATOR_NOT_AVAILABLE else told or append_error


_WITHOUT_MESSAGE = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR}
)


def error_message(refusal: ApiError) -> str | None:
    """The error message of ``refusal`` in responses that have one; None where Kafka sends only the code.

    Source: ``ApiError.fromThrowable``.
    """
    return None if refusal.code in _WITHOUT_MESSAGE else refusal.message


class UnexpectedBrokerError(ApiError):
    """Kafka fails here with an unexpected exception (``IllegalArgumentException`` and the like).

    Changes made before it stay, and the rest of the operation is skipped. The response is UNKNOWN_SERVER_ERROR; in a timer
    there is none.
    """

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, why)


def emit_refusal(ctx: HandlerContext, call: Call, group_id: str, member_id: str, refusal: ApiError) -> None:
    """Emit RequestRefused for ``call`` of ``member_id`` (``""`` if it has none yet); the caller sends the response."""
    error, why = refusal.code._name_, refusal.message or refusal.code.text  # faster than the property ``name``
    ctx.emit(RequestRefused, group=group_id, api=call.api.name, member=member_id, error=error, why=why)
