"""Metadata (API key 3): request and response messages, and their Api."""

import uuid
from dataclasses import replace

from groupcoord.protocol.api_descriptor import TOPIC_ID, TOPIC_NAME, Api, ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class MetadataRequestTopic:
    """A topic, by name or by id (v12+)."""

    name: str | None  # nullable v10+
    topic_id: uuid.UUID | None = None  # v10+


@message
class MetadataRequest:
    """Ask for the brokers, the topics, and the leader of each partition.

    v4 says whether a topic may be made by asking, v8 adds authorized operations (KIP-430), v9 is flexible, v10 adds topic ids
    (KIP-516), which count from v12 on; v11 drops the cluster's authorized operations (KIP-700).
    """

    topics: tuple[MetadataRequestTopic, ...] | None = ()  # nullable v1+: all; in v0 the empty list means all
    allow_auto_topic_creation: bool = True  # v4+
    include_cluster_authorized_operations: bool = False  # v8–10
    include_topic_authorized_operations: bool = False  # v8+


@message
class MetadataResponseBroker:
    """One broker. v1 adds its rack."""

    node_id: int
    host: str
    port: int
    rack: str | None = None  # v1+


@message
class MetadataResponsePartition:
    """One partition. v5 adds offline replicas (KIP-112), v7 the leader epoch (KIP-320).

    Errors: LEADER_NOT_AVAILABLE, REPLICA_NOT_AVAILABLE, LISTENER_NOT_FOUND.
    """

    error_code: int = 0
    partition_index: int
    leader_id: int  # -1: none
    leader_epoch: int = -1  # v7+
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()  # v5+


@message
class MetadataResponseTopic:
    """One topic. v1 adds whether it is internal, v8 authorized operations (KIP-430), v10 its id (KIP-516).

    Errors: UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_ID (v12+),
    INVALID_REQUEST.
    """

    error_code: int = 0
    name: str | None  # nullable v12+
    topic_id: uuid.UUID | None = None  # v10+
    is_internal: bool = False  # v1+; such as __consumer_offsets
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648  # v8+; a bit per ACL operation, or not asked


@message
class MetadataResponse:
    """The brokers and topics.

    v1 adds racks and the controller, v2 the cluster id, v3 the throttle time, v8 authorized operations (KIP-430), v9 is
    flexible, v11 drops the cluster's authorized operations (KIP-700), v13 adds an error at the top: REBOOTSTRAP_REQUIRED
    (KIP-1102).
    """

    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: str | None = None  # v2+
    controller_id: int = -1  # v1+
    topics: tuple[MetadataResponseTopic, ...] = ()
    error_code: int = 0  # v13+
    cluster_authorized_operations: int = -2147483648  # v8–10
    throttle_time_ms: int = 0  # v3+


def _error_response(request: MetadataRequest, _version: int, error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        error_code=error,
        brokers=(),
        topics=tuple(
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=())
            for topic in request.topics or ()
        ),
    )


def _upgrade(request: MetadataRequest, version: int) -> MetadataRequest:
    """v0 asks for all topics with an empty list, later versions with null."""
    return replace(request, topics=None) if version == 0 and not request.topics else request


API = Api(
    key=ApiKey.METADATA,
    request=MetadataRequest,
    response=MetadataResponse,
    min_version=0,
    max_version=13,
    summary="Describe brokers, topics and the leaders of partitions",
    make_error_response=_error_response,
    upgrade=_upgrade,
    topics=(TOPIC_NAME, TOPIC_ID),
)
