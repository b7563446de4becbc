"""ListPartitionReassignments (API key 46): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class ListPartitionReassignmentsTopics:
    """The partitions of a topic that are asked about."""

    name: str
    partition_indexes: tuple[int, ...] = ()


@message
class ListPartitionReassignmentsRequest:
    """List the partitions that are being reassigned (KIP-455)."""

    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None  # null: all


@message
class OngoingPartitionReassignment:
    """A partition that is being reassigned."""

    partition_index: int
    replicas: tuple[int, ...] = ()  # those there will be, then those that are being removed
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@message
class OngoingTopicReassignment:
    """The partitions of a topic that are being reassigned."""

    name: str
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


@message
class ListPartitionReassignmentsResponse:
    """The partitions that are being reassigned."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()


def _error_response(
    request: ListPartitionReassignmentsRequest, _version: int, error: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        error_code=error,
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(partition_index=each) for each in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


API = Api(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    request=ListPartitionReassignmentsRequest,
    response=ListPartitionReassignmentsResponse,
    min_version=0,
    max_version=0,
    summary="List the partitions that are being reassigned",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partition_indexes[]"),),
)
