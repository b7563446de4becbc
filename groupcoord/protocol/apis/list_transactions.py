"""ListTransactions (API key 66): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class ListTransactionsRequest:
    """The transactions that this broker coordinates (KIP-664); what is empty or negative does not filter."""

    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1  # v1+: only those that have run for longer, in milliseconds
    transactional_id_pattern: str | None = None  # v2+: a regular expression that matches the whole id


@message
class TransactionState:
    """One transactional id and its transaction."""

    transactional_id: str
    producer_id: int
    transaction_state: str


@message
class ListTransactionsResponse:
    """What was found.

    Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, INVALID_REGULAR_EXPRESSION (v2+).
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()


API = Api(
    key=ApiKey.LIST_TRANSACTIONS,
    request=ListTransactionsRequest,
    response=ListTransactionsResponse,
    min_version=0,
    max_version=2,
    summary="List transactions",
)
