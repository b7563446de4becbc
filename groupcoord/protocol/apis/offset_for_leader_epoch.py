"""OffsetForLeaderEpoch (API key 23): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class OffsetForLeaderPartition:
    """A partition and the epoch whose end is asked for."""

    partition: int
    current_leader_epoch: int = -1  # as the client knows it; -1: not given
    leader_epoch: int


@message
class OffsetForLeaderTopic:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...] = ()


@message
class OffsetForLeaderEpochRequest:
    """Find where leader epochs end: this tells a consumer that the log was truncated (KIP-320).

    v2 adds the current leader epoch, v3 the replica id (KIP-392), v4 is flexible.
    """

    topics: tuple[OffsetForLeaderTopic, ...] = ()
    replica_id: int = -2  # v3+; -1: a consumer


@message
class EpochEndOffset:
    """Where the epoch ended in one partition.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
    """

    error_code: int = 0
    partition: int
    leader_epoch: int = -1  # the largest that is not above the one asked for
    end_offset: int = -1  # of that epoch


@message
class OffsetForLeaderTopicResult:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[EpochEndOffset, ...] = ()


@message
class OffsetForLeaderEpochResponse:
    """The ends of the epochs. v4 is flexible."""

    throttle_time_ms: int = 0
    topics: tuple[OffsetForLeaderTopicResult, ...] = ()


def _error_response(
    request: OffsetForLeaderEpochRequest, _version: int, error: ErrorCode
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    EpochEndOffset(error_code=error, partition=partition.partition) for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
    min_version=2,
    max_version=4,
    summary="Find the end offset of a leader epoch",
    make_error_response=_error_response,
    topics=(RequestField("topics[].topic"),),
    partitions=(RequestField("topics[].partitions[].partition"),),
)
