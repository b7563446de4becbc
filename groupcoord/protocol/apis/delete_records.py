"""DeleteRecords (API key 21): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DeleteRecordsPartition:
    """Up to where the records of one partition are deleted."""

    partition_index: int
    offset: int  # records before it are deleted; -1: all of them


@message
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: str
    partitions: tuple[DeleteRecordsPartition, ...] = ()


@message
class DeleteRecordsRequest:
    """Delete the oldest records of partitions (KIP-107). v2 is flexible."""

    topics: tuple[DeleteRecordsTopic, ...] = ()
    timeout_ms: int


@message
class DeleteRecordsPartitionResult:
    """The result for one partition.

    Errors: OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION, REQUEST_TIMED_OUT.
    """

    partition_index: int
    low_watermark: int  # the oldest offset still there; -1 with an error
    error_code: int = 0


@message
class DeleteRecordsTopicResult:
    """Partitions of one topic."""

    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...] = ()


@message
class DeleteRecordsResponse:
    """The results for the partitions. v2 is flexible."""

    throttle_time_ms: int = 0
    topics: tuple[DeleteRecordsTopicResult, ...] = ()


def _error_response(request: DeleteRecordsRequest, _version: int, error: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    DeleteRecordsPartitionResult(
                        partition_index=partition.partition_index, low_watermark=-1, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(
    key=ApiKey.DELETE_RECORDS,
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
    min_version=0,
    max_version=2,
    summary="Delete the records before an offset",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)
