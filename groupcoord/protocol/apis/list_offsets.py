"""ListOffsets (API key 2): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class ListOffsetsPartition:
    """The lookup in one partition. v4 adds the leader epoch, for fencing (KIP-320)."""

    partition_index: int
    current_leader_epoch: int = -1  # v4+
    timestamp: int  # ms; -1 latest, -2 earliest, -3 of max timestamp (v7+), -4 to -6 tiered storage (v8, v9, v11)


@message
class ListOffsetsTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[ListOffsetsPartition, ...] = ()


@message
class ListOffsetsRequest:
    """Look up offsets by timestamp, or the first or last one.

    v2 adds the isolation level (KIP-98), v6 is flexible, v7 to v9 and v11 add special times, v10 the timeout (KIP-1075).
    """

    replica_id: int  # -1: a consumer
    isolation_level: int = 0  # v2+; 0 read uncommitted, 1 read committed
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: int = 0  # v10+; for offsets in remote storage


@message
class ListOffsetsPartitionResponse:
    """The result for one partition. v4 adds the leader epoch (KIP-320).

    Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    OFFSET_NOT_AVAILABLE (v5+), UNSUPPORTED_VERSION, INVALID_REQUEST.
    """

    partition_index: int
    error_code: int = 0
    timestamp: int = -1  # ms; of the record at the offset
    offset: int = -1  # -1: no such record
    leader_epoch: int = -1  # v4+


@message
class ListOffsetsTopicResponse:
    """Partitions of one topic."""

    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


@message
class ListOffsetsResponse:
    """The offsets. v2 adds the throttle time, v6 is flexible."""

    topics: tuple[ListOffsetsTopicResponse, ...] = ()
    throttle_time_ms: int = 0  # v2+


def _error_response(request: ListOffsetsRequest, _version: int, error: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(
    key=ApiKey.LIST_OFFSETS,
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
    min_version=1,
    max_version=11,
    summary="Look up offsets by timestamp, or the first or last one",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)
