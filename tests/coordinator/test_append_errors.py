import pytest

from groupcoord.coordinator.error_mapping import offset_fetch_error, response_error
from groupcoord.protocol.errors import ErrorCode

E = ErrorCode
TRANSLATED = {
    E.NETWORK_EXCEPTION: E.COORDINATOR_LOAD_IN_PROGRESS,
    E.UNKNOWN_TOPIC_OR_PARTITION: E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_ENOUGH_REPLICAS: E.COORDINATOR_NOT_AVAILABLE,
    E.REQUEST_TIMED_OUT: E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_LEADER_OR_FOLLOWER: E.NOT_COORDINATOR,
    E.KAFKA_STORAGE_ERROR: E.NOT_COORDINATOR,
    E.MESSAGE_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
    E.RECORD_LIST_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
    E.INVALID_FETCH_SIZE: E.UNKNOWN_SERVER_ERROR,
}


@pytest.mark.parametrize("error", list(ErrorCode), ids=lambda error: error.name)
def test_an_error_of_the_log_becomes_one_that_clients_of_a_coordinator_know(error: ErrorCode) -> None:
    assert response_error(error) is TRANSLATED.get(error, error)


@pytest.mark.parametrize("error", list(ErrorCode), ids=lambda error: error.name)
def test_an_offset_fetch_that_waited_sends_clients_to_look_for_the_coordinator(error: ErrorCode) -> None:
    told = TRANSLATED.get(error, error)
    if error in TRANSLATED and told is E.COORDINATOR_NOT_AVAILABLE:
        told = E.NOT_COORDINATOR
    assert offset_fetch_error(error) is told
