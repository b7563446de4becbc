"""AddOffsetsToTxn (API key 25): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_ID, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class AddOffsetsToTxnRequest:
    """Add the offsets of a group to a transaction: the partition of ``__consumer_offsets`` that they are stored in (KIP-98).

    v3 is flexible. Producers that know KIP-890 do without it: a TxnOffsetCommit of v5 adds them.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


@message
class AddOffsetsToTxnResponse:
    """What came of it. v3 is flexible.

    Errors: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_PRODUCER_ID_MAPPING,
    INVALID_PRODUCER_EPOCH (up to v1), PRODUCER_FENCED (v2+), INVALID_TXN_STATE, CONCURRENT_TRANSACTIONS,
    TRANSACTION_ABORTABLE (v4+).
    """

    throttle_time_ms: int = 0
    error_code: int = 0


API = Api(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    request=AddOffsetsToTxnRequest,
    response=AddOffsetsToTxnResponse,
    min_version=0,
    max_version=4,
    summary="Add the offsets of a group to a transaction",
    groups=(GROUP_ID,),
    transactional_ids=(RequestField("transactional_id"),),
)
