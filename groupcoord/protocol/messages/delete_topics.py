"""DeleteTopics: versions 1–6."""

import uuid

from groupcoord.protocol.codec.message import message


@message
class DeleteTopicState:
    """A topic, by name or by id: v6+."""

    name: str | None = None
    topic_id: uuid.UUID | None = None


@message
class DeleteTopicsRequest:
    """Delete topics. v4 is flexible, v5 may be throttled (KIP-599), v6 can say ids (KIP-516).

    What is behind the protocol looks at ``topics`` in all versions; see protocol.shapes.
    """

    topic_names: tuple[str, ...] = ()  # v1–5
    timeout_ms: int
    topics: tuple[DeleteTopicState, ...] = ()  # v6+


@message
class DeletableTopicResult:
    """What became of one topic. v5 adds a message (KIP-599), v6 its id (KIP-516).

    Errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v6), INVALID_REQUEST, TOPIC_DELETION_DISABLED,
    INVALID_TOPIC_EXCEPTION.
    """

    name: str | None  # nullable v6+
    topic_id: uuid.UUID | None = None  # v6+
    error_code: int = 0
    error_message: str | None = None  # v5+


@message
class DeleteTopicsResponse:
    """What became of the topics. v4 is flexible."""

    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
