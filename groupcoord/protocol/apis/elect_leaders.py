"""ElectLeaders (API key 43): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message

PREFERRED = 0
UNCLEAN = 1


@message
class TopicPartitions:
    """The partitions of a topic that are to have another leader."""

    topic: str
    partitions: tuple[int, ...] = ()


@message
class ElectLeadersRequest:
    """Elect leaders of partitions (KIP-183). v1 adds the type of election (KIP-460), v2 is flexible."""

    topic_partitions: tuple[TopicPartitions, ...] | None  # null: all
    timeout_ms: int = 60000
    election_type: int = PREFERRED  # v1+; 0 the preferred leader, 1 any replica where there is no leader


@message
class PartitionResult:
    """What came of one partition.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """

    partition_id: int
    error_code: int = 0
    error_message: str | None = None


@message
class ReplicaElectionResult:
    """What came of the partitions of one topic."""

    topic: str
    partition_result: tuple[PartitionResult, ...] = ()


@message
class ElectLeadersResponse:
    """The results. v1 adds an error for the whole request, v2 is flexible.

    Errors: INVALID_REQUEST, REQUEST_TIMED_OUT (v1+; and for each partition, at every version).
    """

    throttle_time_ms: int = 0
    error_code: int = 0  # v1+
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()


def elections_refused(
    request: ElectLeadersRequest, error: ErrorCode, message: str | None = None
) -> ElectLeadersResponse:
    """The answer when nothing is elected."""
    return ElectLeadersResponse(
        error_code=error,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=index, error_code=error, error_message=message)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


API = Api(
    key=ApiKey.ELECT_LEADERS,
    request=ElectLeadersRequest,
    response=ElectLeadersResponse,
    min_version=0,
    max_version=2,
    summary="Elect preferred leaders, or leaders of partitions that have none",
    make_error_response=lambda request, _version, error: elections_refused(request, error),
    topics=(RequestField("topic_partitions[].topic"),),
    partitions=(RequestField("topic_partitions[].partitions[]"),),
)
