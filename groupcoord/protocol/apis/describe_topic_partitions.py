"""DescribeTopicPartitions (API key 75): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class TopicRequest:
    """A topic, by name."""

    name: str


@message
class Cursor:
    """Where to go on: the first topic and partition of the next answer."""

    topic_name: str
    partition_index: int


@message
class DescribeTopicPartitionsRequest:
    """Describe the partitions of topics, a limited number at a time (KIP-966)."""

    topics: tuple[TopicRequest, ...] = ()  # empty: all
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


@message
class DescribeTopicPartitionsResponsePartition:
    """One partition."""

    error_code: int = 0
    partition_index: int
    leader_id: int
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


@message
class DescribeTopicPartitionsResponseTopic:
    """One topic. Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST for a wrong cursor."""

    error_code: int = 0
    name: str | None
    topic_id: uuid.UUID | None = None
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648  # a bit for each operation (KIP-430)


@message
class DescribeTopicPartitionsResponse:
    """The partitions, topics by name, and where to go on if there are more."""

    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Cursor | None = None


def _error_response(
    request: DescribeTopicPartitionsRequest, _version: int, error: ErrorCode
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(error_code=error, name=topic.name) for topic in request.topics
        )
    )


API = Api(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
    min_version=0,
    max_version=0,
    summary="Describe the partitions of topics, page by page",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
)
