"""ConsumerGroupHeartbeat (API key 68): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import GROUP_ID, MEMBER_ID, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class TopicPartitions:
    """Partitions of one topic: that the member owns, or that it may use."""

    topic_id: uuid.UUID | None
    partitions: tuple[int, ...] = ()


@message
class ConsumerGroupHeartbeatRequest:
    """Join a consumer group, stay in it, or leave it (KIP-848).

    null, and -1 for a time, mean: as in my last heartbeat. v1 adds the regular expression, and there clients make their
    member ids (KIP-1082).
    """

    group_id: str
    member_id: str  # v0 may say "" to join: then the coordinator makes one
    member_epoch: int  # 0: join; -1: leave; -2: leave for now, as a static member
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1  # how long the member may take to give partitions back
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None  # v1+; RE2 syntax; "": none any more
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None  # what the member owns


@message
class Assignment:
    """All partitions that the member may use."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


@message
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment where that is new to it.

    Errors: INVALID_REQUEST, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION (v1), GROUP_MAX_SIZE_REACHED,
    UNSUPPORTED_VERSION where the protocol is not enabled, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR.
    """

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None  # None: as before


API = Api(
    key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    request=ConsumerGroupHeartbeatRequest,
    response=ConsumerGroupHeartbeatResponse,
    min_version=0,
    max_version=1,
    summary="Join a consumer group, stay in it, or leave it",
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(RequestField("instance_id"),),
    topics=(RequestField("subscribed_topic_names[]"), RequestField("topic_partitions[].topic_id", null_is_all=False)),
    partitions=(RequestField("topic_partitions[].partitions[]", null_is_all=False),),
)
