"""CreatePartitions (API key 37): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class CreatePartitionsAssignment:
    """The brokers of one new partition, the preferred leader first."""

    broker_ids: tuple[int, ...] = ()


@message
class CreatePartitionsTopic:
    """A topic that gets more partitions."""

    name: str
    count: int  # of all partitions, old and new
    assignments: tuple[CreatePartitionsAssignment, ...] | None = None  # null: the broker chooses


@message
class CreatePartitionsRequest:
    """Give topics more partitions (KIP-195). v2 is flexible, v3 may be throttled (KIP-599)."""

    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: int
    validate_only: bool = False


@message
class CreatePartitionsTopicResult:
    """The result for one topic.

    Errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST.
    """

    name: str
    error_code: int = 0
    error_message: str | None = None


@message
class CreatePartitionsResponse:
    """The results for the topics. v2 is flexible."""

    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()


def _error_response(request: CreatePartitionsRequest, _version: int, error: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=tuple(CreatePartitionsTopicResult(name=topic.name, error_code=error) for topic in request.topics)
    )


API = Api(
    key=ApiKey.CREATE_PARTITIONS,
    request=CreatePartitionsRequest,
    response=CreatePartitionsResponse,
    min_version=0,
    max_version=3,
    summary="Add partitions to topics",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
)
