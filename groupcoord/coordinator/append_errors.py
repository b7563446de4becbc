"""How the failure of an append reaches the client whose request caused it.

An append that takes longer than ``offsets.commit.timeout.ms`` fails here with REQUEST_TIMED_OUT, and no client ever sees that.
Sources: ``GroupMetadataManager.appendGroupMetadataErrorToResponseError``, ``CoordinatorOperationExceptionHelper`` and
``GroupCoordinatorService.handleOffsetFetchException``.
"""

from collections.abc import Mapping
from types import MappingProxyType

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
    """What the client is told when its records could not be stored because of ``append_error``."""
    return _RESPONSE_ERRORS.get(append_error, append_error)


def offset_fetch_error(append_error: ErrorCode) -> ErrorCode:
    """The same for an OffsetFetch that waited for appends: consumers before 3.9 do not know COORDINATOR_NOT_AVAILABLE there."""
    told = _RESPONSE_ERRORS.get(append_error)
    return ErrorCode.NOT_COORDINATOR if told is ErrorCode.COORDINATOR_NOT_AVAILABLE else told or append_error
