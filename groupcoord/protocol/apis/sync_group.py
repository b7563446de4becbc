"""SyncGroup (API key 14): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import GROUP_ID, INSTANCE_ID, MEMBER_ID, Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class SyncGroupRequestAssignment:
    """The assignment of one member. All versions."""

    member_id: str
    assignment: bytes = b""


@message
class SyncGroupRequest:
    """A member of the new generation asks for its assignment; the leader sends the assignments of all members.

    v3 adds static membership (KIP-345), v4 is flexible, v5 adds protocol type and name, to be compared with the group's
    (KIP-559).
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None  # v3+
    protocol_type: str | None = None  # v5+
    protocol_name: str | None = None  # v5+
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()  # from the leader alone


@message
class SyncGroupResponse:
    """The member's assignment. v1 adds the throttle time, v4 is flexible, v5 adds protocol type and name (KIP-559).

    Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID (v3+),
    INCONSISTENT_GROUP_PROTOCOL (v5+), COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    error_code: int = 0
    protocol_type: str | None = None  # v5+
    protocol_name: str | None = None  # v5+
    assignment: bytes = b""
    throttle_time_ms: int = 0  # v1+


API = Api(
    key=ApiKey.SYNC_GROUP,
    request=SyncGroupRequest,
    response=SyncGroupResponse,
    min_version=0,
    max_version=5,
    summary="Hand in or get the assignment of a generation; waits for the leader",
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(INSTANCE_ID,),
    may_wait=True,
)
