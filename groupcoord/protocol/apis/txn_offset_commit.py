"""TxnOffsetCommit (API key 28): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_ID, INSTANCE_ID, MEMBER_ID, TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class TxnOffsetCommitRequestPartition:
    """The offset of one partition."""

    partition_index: int
    committed_offset: int
    committed_metadata: str | None
    committed_leader_epoch: int = -1  # v2+


@message
class TxnOffsetCommitRequestTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


@message
class TxnOffsetCommitRequest:
    """Commit offsets of a group as part of a transaction (KIP-98).

    v2 has leader epochs; v3 is flexible and says which member asks (KIP-447); v5 adds the offsets to the transaction by itself
    (KIP-890).
    """

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()
    generation_id: int = -1  # v3+
    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+


@message
class TxnOffsetCommitResponsePartition:
    """The result for one partition."""

    partition_index: int
    error_code: int = 0


@message
class TxnOffsetCommitResponseTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


@message
class TxnOffsetCommitResponse:
    """The results for all partitions. v3 is flexible.

    Errors: INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_TOPIC_OR_PARTITION, INVALID_COMMIT_OFFSET_SIZE, TRANSACTION_ABORTABLE (v4+).
    """

    throttle_time_ms: int = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = ()


API = Api(
    key=ApiKey.TXN_OFFSET_COMMIT,
    request=TxnOffsetCommitRequest,
    response=TxnOffsetCommitResponse,
    min_version=0,
    max_version=5,
    summary="Commit offsets as part of a transaction",
    make_error_response=lambda request, _version, error: TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=item.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=error)
                    for part in item.partitions
                ),
            )
            for item in request.topics
        )
    ),
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(INSTANCE_ID,),
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
    transactional_ids=(RequestField("transactional_id"),),
)
