"""DeleteTopics (API key 20): request and response messages, and their Api."""

import uuid
from dataclasses import replace

from groupcoord.protocol.api_descriptor import TOPIC_ID, TOPIC_NAME, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DeleteTopicState:
    """A topic, by name or by id: v6+."""

    name: str | None = None
    topic_id: uuid.UUID | None = None


@message
class DeleteTopicsRequest:
    """Delete topics. v4 is flexible, v5 may be throttled (KIP-599), v6 can say ids (KIP-516).

    Handlers see ``topics`` in all versions.
    """

    topic_names: tuple[str, ...] = ()  # v1–5
    timeout_ms: int
    topics: tuple[DeleteTopicState, ...] = ()  # v6+


@message
class DeletableTopicResult:
    """The result for one topic. v5 adds a message (KIP-599), v6 its id (KIP-516).

    Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v6), INVALID_REQUEST, TOPIC_DELETION_DISABLED,
    INVALID_TOPIC_EXCEPTION.
    """

    name: str | None  # nullable v6+
    topic_id: uuid.UUID | None = None  # v6+
    error_code: int = 0
    error_message: str | None = None  # v5+


@message
class DeleteTopicsResponse:
    """The results for the topics. v4 is flexible."""

    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()


def _error_response(request: DeleteTopicsRequest, _version: int, error: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error) for topic in request.topics
        )
    )


def _upgrade(request: DeleteTopicsRequest, version: int) -> DeleteTopicsRequest:
    """v1–5 name topics; v6 can also say their ids."""
    if version >= 6:
        return request
    return replace(request, topics=tuple(DeleteTopicState(name=name) for name in request.topic_names))


API = Api(
    key=ApiKey.DELETE_TOPICS,
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
    min_version=1,
    max_version=6,
    summary="Delete topics",
    make_error_response=_error_response,
    upgrade=_upgrade,
    topics=(TOPIC_NAME, TOPIC_ID),
)
