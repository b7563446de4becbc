"""DescribeQuorum (API key 55): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DescribeQuorumRequestPartitionData:
    """A partition whose quorum is asked for."""

    partition_index: int


@message
class DescribeQuorumRequestTopicData:
    """The partitions of a topic."""

    topic_name: str
    partitions: tuple[DescribeQuorumRequestPartitionData, ...] = ()


@message
class DescribeQuorumRequest:
    """Describe the controllers, and who copies the log of metadata from them (KIP-595). There is only __cluster_metadata-0."""

    topics: tuple[DescribeQuorumRequestTopicData, ...] = ()


@message
class ReplicaState:
    """A node that has a copy. v1 adds times (KIP-836), v2 the directory (KIP-853)."""

    replica_id: int
    log_end_offset: int  # -1: unknown
    last_fetch_timestamp: int = -1  # v1+; ms
    last_caught_up_timestamp: int = -1  # v1+; ms
    replica_directory_id: uuid.UUID | None = None  # v2+


@message
class DescribeQuorumResponsePartitionData:
    """A partition: its leader, who votes, and who only copies. v2 adds a message.

    Errors: UNKNOWN_TOPIC_OR_PARTITION.
    """

    partition_index: int
    error_code: int = 0
    leader_id: int  # -1: unknown
    leader_epoch: int
    high_watermark: int
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    error_message: str | None = ""  # v2+


@message
class DescribeQuorumResponseTopicData:
    """The partitions of a topic."""

    topic_name: str
    partitions: tuple[DescribeQuorumResponsePartitionData, ...] = ()


@message
class Listener:
    """Where a controller listens."""

    name: str = ""
    host: str = ""
    port: int = 0


@message
class Node:
    """A controller."""

    node_id: int = 0
    listeners: tuple[Listener, ...] = ()


@message
class DescribeQuorumResponse:
    """The quorum. v2 adds a message, and where the controllers are."""

    error_code: int = 0
    topics: tuple[DescribeQuorumResponseTopicData, ...] = ()
    error_message: str | None = ""  # v2+
    nodes: tuple[Node, ...] = ()  # v2+


def quorum_refused(request: DescribeQuorumRequest, error: ErrorCode) -> DescribeQuorumResponse:
    """The answer when every partition has that error (``DescribeQuorumRequest.getPartitionLevelErrorResponse``)."""
    return DescribeQuorumResponse(
        topics=tuple(
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    DescribeQuorumResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=error,
                        leader_id=0,
                        leader_epoch=0,
                        high_watermark=0,
                        error_message=error.text,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


API = Api(
    key=ApiKey.DESCRIBE_QUORUM,
    request=DescribeQuorumRequest,
    response=DescribeQuorumResponse,
    min_version=0,
    max_version=2,
    summary="Describe the controllers, and who copies the log of metadata",
    make_error_response=lambda _request, _version, error: DescribeQuorumResponse(
        error_code=error, error_message=error.text
    ),
    topics=(RequestField("topics[].topic_name"),),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)
