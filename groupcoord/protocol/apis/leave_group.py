"""LeaveGroup (API key 13): request and response messages, and their Api."""

from dataclasses import replace

from groupcoord.protocol.api_descriptor import GROUP_ID, Api, ApiKey, RequestField
from groupcoord.protocol.message_dataclass import message


@message
class MemberIdentity:
    """A member that leaves or is removed: v3+."""

    member_id: str = ""  # "" if the instance id says who
    group_instance_id: str | None = None
    reason: str | None = None  # v5+; for the log


@message
class LeaveGroupRequest:
    """A member leaves, or an administrator removes several.

    v3 is for many members (KIP-345), v4 is flexible, v5 adds reasons (KIP-800).

    Handlers see ``members`` in all versions.
    """

    group_id: str
    members: tuple[MemberIdentity, ...] = ()  # v3+
    member_id: str = ""  # v0–2


@message
class MemberResponse:
    """The result for one member: v3+. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""

    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


@message
class LeaveGroupResponse:
    """The results. v1 adds the throttle time, v3 says it member by member (KIP-345), v4 is flexible.

    Errors at the top: INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR; in v0–2 the
    member's error too.
    """

    error_code: int = 0
    members: tuple[MemberResponse, ...] = ()  # v3+; in the order of the request
    throttle_time_ms: int = 0  # v1+


def _upgrade(request: LeaveGroupRequest, version: int) -> LeaveGroupRequest:
    """v0–2 name one member."""
    return replace(request, members=(MemberIdentity(member_id=request.member_id),)) if version < 3 else request


def _downgrade(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    """v0–2 have the error of the one member at the top."""
    if version >= 3 or response.error_code or not response.members:
        return response
    return replace(response, error_code=response.members[0].error_code)


API = Api(
    key=ApiKey.LEAVE_GROUP,
    request=LeaveGroupRequest,
    response=LeaveGroupResponse,
    min_version=0,
    max_version=5,
    summary="Leave a group, or remove members from it",
    upgrade=_upgrade,
    downgrade=_downgrade,
    groups=(GROUP_ID,),
    members=(RequestField("members[].member_id"),),
    instances=(RequestField("members[].group_instance_id"),),
)
