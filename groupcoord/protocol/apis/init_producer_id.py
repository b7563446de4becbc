"""InitProducerId (API key 22): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class InitProducerIdRequest:
    """Get a producer id and epoch, for an idempotent or transactional producer (KIP-98).

    v2 is flexible, v3 lets a producer go on with the id it had (KIP-360), v4 may answer PRODUCER_FENCED (KIP-588), v5
    TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: str | None  # null: idempotent only
    transaction_timeout_ms: int  # then the coordinator aborts an open transaction
    producer_id: int = -1  # v3+
    producer_epoch: int = -1  # v3+


@message
class InitProducerIdResponse:
    """The producer's id and epoch. v2 is flexible.

    Errors: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, INVALID_PRODUCER_EPOCH, PRODUCER_FENCED (v4+),
    CONCURRENT_TRANSACTIONS, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


API = Api(
    key=ApiKey.INIT_PRODUCER_ID,
    request=InitProducerIdRequest,
    response=InitProducerIdResponse,
    min_version=0,
    max_version=5,
    summary="Get a producer id and epoch",
    make_error_response=lambda _request, _version, error: InitProducerIdResponse(error_code=error, producer_epoch=-1),
    transactional_ids=(RequestField("transactional_id"),),
)
