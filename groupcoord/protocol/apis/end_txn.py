"""EndTxn (API key 26): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class EndTxnRequest:
    """Commit or abort a transaction (KIP-98). v3 is flexible; from v5 on the answer brings the next epoch (KIP-890)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool = False  # otherwise it is aborted


@message
class EndTxnResponse:
    """What came of it. v3 is flexible.

    Errors: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_TXN_STATE,
    INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH (up to v1), PRODUCER_FENCED (v2+), CONCURRENT_TRANSACTIONS,
    TRANSACTION_ABORTABLE (v4+).
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1  # v5+: the id to go on with
    producer_epoch: int = -1  # v5+


API = Api(
    key=ApiKey.END_TXN,
    request=EndTxnRequest,
    response=EndTxnResponse,
    min_version=0,
    max_version=5,
    summary="Commit or abort a transaction",
    transactional_ids=(RequestField("transactional_id"),),
)
