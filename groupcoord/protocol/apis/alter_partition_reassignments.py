"""AlterPartitionReassignments (API key 45): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class ReassignablePartition:
    """A partition, and the brokers that are to have it, the preferred leader first."""

    partition_index: int
    replicas: tuple[int, ...] | None = None  # null: cancel what goes on


@message
class ReassignableTopic:
    """The partitions of a topic."""

    name: str
    partitions: tuple[ReassignablePartition, ...] = ()


@message
class AlterPartitionReassignmentsRequest:
    """Give partitions other replicas (KIP-455). v1 adds whether there may be more or fewer of them (KIP-860)."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True  # v1+
    topics: tuple[ReassignableTopic, ...] = ()


@message
class ReassignablePartitionResponse:
    """What came of one partition.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS.
    """

    partition_index: int
    error_code: int = 0
    error_message: str | None = None


@message
class ReassignableTopicResponse:
    """What came of the partitions of one topic."""

    name: str
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


@message
class AlterPartitionReassignmentsResponse:
    """The results. v1 says whether there might be more or fewer replicas.

    Errors: REQUEST_TIMED_OUT (and for each partition).
    """

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True  # v1+
    error_code: int = 0
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()


def reassignments_refused(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    """The answer when nothing is reassigned."""
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(partition_index=each.partition_index, error_code=error)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


API = Api(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    request=AlterPartitionReassignmentsRequest,
    response=AlterPartitionReassignmentsResponse,
    min_version=0,
    max_version=1,
    summary="Give partitions other replicas, or cancel that",
    make_error_response=lambda request, _version, error: reassignments_refused(request, error),
    topics=(TOPIC_NAME,),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)
