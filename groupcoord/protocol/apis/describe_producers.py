"""DescribeProducers (API key 61): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class TopicRequest:
    """Partitions of one topic."""

    name: str
    partition_indexes: tuple[int, ...] = ()


@message
class DescribeProducersRequest:
    """What is known of the producers that write to partitions (KIP-664)."""

    topics: tuple[TopicRequest, ...] = ()


@message
class ProducerState:
    """One producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1  # milliseconds
    coordinator_epoch: int  # of who ended its last transaction
    current_txn_start_offset: int = -1  # -1: none is open


@message
class PartitionResponse:
    """The producers of one partition. Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, INVALID_TOPIC_EXCEPTION."""

    partition_index: int
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


@message
class TopicResponse:
    """Partitions of one topic."""

    name: str
    partitions: tuple[PartitionResponse, ...] = ()


@message
class DescribeProducersResponse:
    """The producers of all partitions that were asked for."""

    throttle_time_ms: int = 0
    topics: tuple[TopicResponse, ...] = ()


API = Api(
    key=ApiKey.DESCRIBE_PRODUCERS,
    request=DescribeProducersRequest,
    response=DescribeProducersResponse,
    min_version=0,
    max_version=0,
    summary="Describe the producers that write to partitions",
    make_error_response=lambda request, _version, error: DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=item.name,
                partitions=tuple(
                    PartitionResponse(partition_index=part, error_code=error) for part in item.partition_indexes
                ),
            )
            for item in request.topics
        )
    ),
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partition_indexes[]"),),
)
