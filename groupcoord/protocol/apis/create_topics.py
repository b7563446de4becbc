"""CreateTopics (API key 19): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import TOPIC_NAME, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class CreatableReplicaAssignment:
    """The brokers of one partition, the preferred leader first."""

    partition_index: int
    broker_ids: tuple[int, ...] = ()


@message
class CreatableTopicConfig:
    """A topic configuration that differs from the broker's."""

    name: str
    value: str | None


@message
class CreatableTopic:
    """A topic to be created."""

    name: str
    num_partitions: int  # -1: the broker's default, or as many as are assigned
    replication_factor: int  # -1: the broker's default, or as assigned
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@message
class CreateTopicsRequest:
    """Create topics. v4 leaves counts to the broker with -1 (KIP-464), v5 is flexible, v6 may be throttled (KIP-599)."""

    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


@message
class CreatableTopicConfigs:
    """A configuration that the new topic has: v5+ (KIP-525)."""

    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1  # see DescribeConfigsResourceResult
    is_sensitive: bool = False


@message
class CreatableTopicResult:
    """The result for one topic. v5 adds what it looks like (KIP-525), v7 its id (KIP-516).

    Errors: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION.
    """

    name: str
    topic_id: uuid.UUID | None = None  # v7+
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0  # v5+, tag 0; why there are no configs
    num_partitions: int = -1  # v5+
    replication_factor: int = -1  # v5+
    configs: tuple[CreatableTopicConfigs, ...] | None = ()  # v5+


@message
class CreateTopicsResponse:
    """The results for the topics. v5 is flexible."""

    throttle_time_ms: int = 0
    topics: tuple[CreatableTopicResult, ...] = ()


def _error_response(request: CreateTopicsRequest, _version: int, error: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=tuple(CreatableTopicResult(name=topic.name, error_code=error) for topic in request.topics)
    )


API = Api(
    key=ApiKey.CREATE_TOPICS,
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
    min_version=2,
    max_version=7,
    summary="Create topics",
    make_error_response=_error_response,
    topics=(TOPIC_NAME,),
)
