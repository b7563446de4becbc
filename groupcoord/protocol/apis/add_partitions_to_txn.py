"""AddPartitionsToTxn (API key 24): request and response messages, and their Api."""

from dataclasses import replace
from functools import partial

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message

BY_TRANSACTION_FROM = 4
"""The first version that has several transactions."""


@message
class AddPartitionsToTxnTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[int, ...] = ()


@message
class AddPartitionsToTxnTransaction:
    """Partitions of one transaction."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False  # is it in the transaction? It is not added (KIP-890)
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


@message
class AddPartitionsToTxnRequest:
    """Add partitions to the transaction of a producer, or to several transactions at once (KIP-98, KIP-890).

    v3 is flexible, v4 is for brokers alone: it has many transactions, and lets them be verified. A request of an older version
    is read as one transaction.
    """

    v3_and_below_transactional_id: str = ""  # v0–3
    v3_and_below_producer_id: int = 0  # v0–3
    v3_and_below_producer_epoch: int = 0  # v0–3
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = ()  # v0–3
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = ()  # v4+


@message
class AddPartitionsToTxnPartitionResult:
    """The result for one partition."""

    partition_index: int
    partition_error_code: int


@message
class AddPartitionsToTxnTopicResult:
    """Partitions of one topic."""

    name: str
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()  # The results for each partition


@message
class AddPartitionsToTxnResult:
    """Partitions of one transaction."""

    transactional_id: str = ""
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()


@message
class AddPartitionsToTxnResponse:
    """The results for all partitions. v3 is flexible, v4 is by transaction.

    Errors of partitions: NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, INVALID_TXN_STATE,
    INVALID_PRODUCER_ID_MAPPING, INVALID_PRODUCER_EPOCH (up to v1), PRODUCER_FENCED (v2+), CONCURRENT_TRANSACTIONS,
    UNKNOWN_TOPIC_OR_PARTITION, OPERATION_NOT_ATTEMPTED, TRANSACTION_ABORTABLE (v5+).
    """

    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = ()  # v0–3
    error_code: int = 0  # v4+
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = ()  # v4+


def _upgraded(request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnRequest:
    """The one transaction of an old request, among those of a new one."""
    if version >= BY_TRANSACTION_FROM:
        return request
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return replace(request, transactions=(only,))


def _downgraded(response: AddPartitionsToTxnResponse, version: int) -> AddPartitionsToTxnResponse:
    """An old version has the topics of its one transaction at the top."""
    if version >= BY_TRANSACTION_FROM or not response.results_by_transaction:
        return response
    (only,) = response.results_by_transaction
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=only.topic_results)


def _failed(request: AddPartitionsToTxnRequest, version: int, error: ErrorCode) -> AddPartitionsToTxnResponse:
    if version >= BY_TRANSACTION_FROM:
        return AddPartitionsToTxnResponse(error_code=error)
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(map(partial(failed_transaction, error), request.transactions))
    )


def failed_transaction(error: ErrorCode, transaction: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    """The result that says ``error`` about every partition of ``transaction``."""
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=tuple(
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                    for index in topic.partitions
                ),
            )
            for topic in transaction.topics
        ),
    )


API = Api(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    request=AddPartitionsToTxnRequest,
    response=AddPartitionsToTxnResponse,
    min_version=0,
    max_version=5,
    summary="Add partitions to a transaction",
    make_error_response=_failed,
    upgrade=_upgraded,
    downgrade=_downgraded,
    topics=(RequestField("transactions[].topics[].name"),),
    partitions=(RequestField("transactions[].topics[].partitions[]"),),
    transactional_ids=(RequestField("transactions[].transactional_id"),),
)
