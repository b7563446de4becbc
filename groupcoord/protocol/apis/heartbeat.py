"""Heartbeat (API key 12): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_ID, INSTANCE_ID, MEMBER_ID, Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class HeartbeatRequest:
    """A member says that it is alive, and learns whether the group is rebalancing.

    v3 adds static membership (KIP-345), v4 is flexible.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None  # v3+


@message
class HeartbeatResponse:
    """The state of the member's group, as an error code. v1 adds the throttle time, v4 is flexible.

    Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID (v3+),
    COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
    """

    error_code: int = 0
    throttle_time_ms: int = 0  # v1+


API = Api(
    key=ApiKey.HEARTBEAT,
    request=HeartbeatRequest,
    response=HeartbeatResponse,
    min_version=0,
    max_version=4,
    summary="Say that a member is alive, and learn of a rebalance",
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(INSTANCE_ID,),
)
