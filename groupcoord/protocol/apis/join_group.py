"""JoinGroup (API key 11): request and response messages, and their Api."""

from dataclasses import replace

from groupcoord.protocol.api_descriptor import GROUP_ID, INSTANCE_ID, MEMBER_ID, Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class JoinGroupRequestProtocol:
    """A protocol (assignor) that the member could use, and its metadata for it. All versions."""

    name: str
    metadata: bytes  # a subscription, if the protocol type is "consumer"; see protocol.consumer_protocol


@message
class JoinGroupRequest:
    """A member asks to be in the group, for the first time or because the group is rebalancing.

    v1 adds the rebalance timeout, v4 the second step for new members (KIP-394), v5 static membership (KIP-345), v6 is
    flexible, v8 adds the reason (KIP-800).
    """

    group_id: str
    session_timeout_ms: int  # a member without a heartbeat for this time is removed
    rebalance_timeout_ms: int = -1  # v1+; how long the group waits for this member to rejoin
    member_id: str  # "" the first time
    group_instance_id: str | None = None  # v5+
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()  # in order of preference
    reason: str | None = None  # v8+; for the log


@message
class JoinGroupResponseMember:
    """A member of the new generation, as the leader sees it. All versions."""

    member_id: str
    group_instance_id: str | None = None  # v5+
    metadata: bytes  # its metadata for the chosen protocol


@message
class JoinGroupResponse:
    """The join phase is over, or the member was refused.

    v2 adds the throttle time, v5 static members (KIP-345), v6 is flexible, v7 adds the protocol type (KIP-559), v9 lets the
    leader skip an assignment that stands (KIP-814).

    Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL, MEMBER_ID_REQUIRED (v4+, with the id to
    come back with), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID (v5+), GROUP_MAX_SIZE_REACHED, COORDINATOR_NOT_AVAILABLE,
    COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None  # v7+
    protocol_name: str | None = None  # nullable v7+
    leader: str = ""  # a member id
    skip_assignment: bool = False  # v9+
    member_id: str
    members: tuple[JoinGroupResponseMember, ...] = ()  # for the leader only
    throttle_time_ms: int = 0  # v2+


def _upgrade(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """v0 has no rebalance timeout; the session timeout stands for it."""
    return replace(request, rebalance_timeout_ms=request.session_timeout_ms) if version == 0 else request


API = Api(
    key=ApiKey.JOIN_GROUP,
    request=JoinGroupRequest,
    response=JoinGroupResponse,
    min_version=0,
    max_version=9,
    summary="Join a group or its next generation; waits for the other members",
    make_error_response=lambda _request, _version, error: JoinGroupResponse(
        error_code=error, protocol_name=None, leader="", member_id="", members=()
    ),
    upgrade=_upgrade,
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(INSTANCE_ID,),
    may_wait=True,
)
