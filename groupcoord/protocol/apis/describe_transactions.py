"""DescribeTransactions (API key 65): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class DescribeTransactionsRequest:
    """What is known of transactional ids (KIP-664)."""

    transactional_ids: tuple[str, ...] = ()


@message
class TopicData:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...] = ()


@message
class TransactionState:
    """One transactional id and its transaction.

    ``topics`` are the partitions that have no marker yet. Errors: TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, INVALID_REQUEST,
    COORDINATOR_LOAD_IN_PROGRESS.
    """

    error_code: int = 0
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int  # -1: none is open
    producer_id: int
    producer_epoch: int
    topics: tuple[TopicData, ...] = ()


@message
class DescribeTransactionsResponse:
    """What was asked for, one by one."""

    throttle_time_ms: int = 0
    transaction_states: tuple[TransactionState, ...] = ()


API = Api(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    request=DescribeTransactionsRequest,
    response=DescribeTransactionsResponse,
    min_version=0,
    max_version=0,
    summary="Describe transactions by their transactional ids",
    make_error_response=lambda request, _version, error: DescribeTransactionsResponse(
        transaction_states=tuple(
            TransactionState(
                error_code=error,
                transactional_id=item,
                transaction_state="",
                transaction_timeout_ms=0,
                transaction_start_time_ms=0,
                producer_id=0,
                producer_epoch=0,
            )
            for item in request.transactional_ids
        )
    ),
    transactional_ids=(RequestField("transactional_ids[]"),),
)
