"""Produce (API key 0): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.apis.fetch import LeaderIdAndEpoch, NodeEndpoint
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class PartitionProduceData:
    """Record batches for one partition."""

    index: int
    records: bytes | None


@message
class TopicProduceData:
    """Partitions of one topic."""

    name: str = ""  # v3–12
    partition_data: tuple[PartitionProduceData, ...] = ()
    topic_id: uuid.UUID | None = None  # v13+


@message
class ProduceRequest:
    """Append record batches.

    v3 is the first for batches of magic 2 (KIP-98), v7 may bring zstd (KIP-110), v9 is flexible, v11 may be answered
    TRANSACTION_ABORTABLE (KIP-890), v12 adds partitions to transactions by itself (KIP-890), v13 has topic ids in place of
    names (KIP-516).
    """

    transactional_id: str | None = None
    acks: int  # 0 none, 1 the leader's, -1 all in-sync replicas'
    timeout_ms: int
    topic_data: tuple[TopicProduceData, ...] = ()


@message
class BatchIndexAndErrorMessage:
    """A record that was refused: v8+ (KIP-467)."""

    batch_index: int = 0
    batch_index_error_message: str | None = None


@message
class PartitionProduceResponse:
    """The result for the batches for one partition.

    v5 adds the start of the log, v8 the records that are to blame (KIP-467), v10 the current leader (KIP-951).
    Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v13), NOT_LEADER_OR_FOLLOWER, CORRUPT_MESSAGE, INVALID_RECORD,
    INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION,
    UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_FOR_MESSAGE_FORMAT, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
    UNKNOWN_PRODUCER_ID, INVALID_TXN_STATE, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT.
    """

    index: int
    error_code: int = 0
    base_offset: int  # of the first record; -1 with an error
    log_append_time_ms: int = -1  # -1 unless the topic stamps records itself
    log_start_offset: int = -1  # v5+; the oldest offset of the partition
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()  # v8+
    error_message: str | None = None  # v8+
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()  # v10+, tag 0


@message
class TopicProduceResponse:
    """Partitions of one topic."""

    name: str = ""  # v3–12
    partition_responses: tuple[PartitionProduceResponse, ...] = ()
    topic_id: uuid.UUID | None = None  # v13+


@message
class ProduceResponse:
    """The results; with acks 0 there is no response. v9 is flexible, v13 has topic ids (KIP-516)."""

    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()  # v10+, tag 0


def _error_response(request: ProduceRequest, _version: int, error: ErrorCode) -> ProduceResponse | None:
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduceResponse(index=partition.index, error_code=error, base_offset=-1)
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


API = Api(
    key=ApiKey.PRODUCE,
    request=ProduceRequest,
    response=ProduceResponse,
    min_version=3,
    max_version=13,
    summary="Append record batches",
    make_error_response=_error_response,
    # librdkafka looks for Produce v0–2 to tell what a broker can do (KAFKA-18659); no client sends them.
    advertised_from=0,
    topics=(RequestField("topic_data[].name"), RequestField("topic_data[].topic_id")),
    partitions=(RequestField("topic_data[].partition_data[].index"),),
    transactional_ids=(RequestField("transactional_id"),),
    may_wait=True,
)
