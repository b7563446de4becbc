"""LeaveGroup: versions 0–5."""

from groupcoord.protocol.codec.message import message


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

    What is behind the protocol looks at ``members`` in all versions; see protocol.shapes.
    """

    group_id: str
    members: tuple[MemberIdentity, ...] = ()  # v3+
    member_id: str = ""  # v0–2


@message
class MemberResponse:
    """What became of one of them: v3+. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""

    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


@message
class LeaveGroupResponse:
    """What became of it. v1 adds the throttle time, v3 says it member by member (KIP-345), v4 is flexible.

    Errors at the top: INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR; in v0–2 the
    member's error too.
    """

    error_code: int = 0
    members: tuple[MemberResponse, ...] = ()  # v3+; in the order of the request
    throttle_time_ms: int = 0  # v1+
