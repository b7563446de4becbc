"""UnregisterBroker (API key 64): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class UnregisterBrokerRequest:
    """Let the controller forget a broker (KIP-500)."""

    broker_id: int


@message
class UnregisterBrokerResponse:
    """What came of it.

    Errors: BROKER_ID_NOT_REGISTERED.
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""


API = Api(
    key=ApiKey.UNREGISTER_BROKER,
    request=UnregisterBrokerRequest,
    response=UnregisterBrokerResponse,
    min_version=0,
    max_version=0,
    summary="Let the controller forget a broker",
    make_error_response=lambda _request, _version, error: UnregisterBrokerResponse(
        error_code=error, error_message=None
    ),
)
