"""DescribeGroups (API key 15): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DescribeGroupsRequest:
    """Describe groups.

    v3 can ask for authorized operations (KIP-430), v5 is flexible, v6 may answer GROUP_ID_NOT_FOUND.
    """

    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False  # v3+


@message
class DescribedGroupMember:
    """A member. v4 adds static membership (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None  # v4+
    client_id: str
    client_host: str  # "/" and the address
    member_metadata: bytes  # empty unless the group is Stable
    member_assignment: bytes


@message
class DescribedGroup:
    """One group. v3 adds authorized operations (KIP-430), v6 an error in words (KIP-1043).

    Errors: GROUP_ID_NOT_FOUND (v6; before, such a group is Dead), COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
    NOT_COORDINATOR.
    """

    error_code: int = 0
    error_message: str | None = None  # v6+
    group_id: str
    group_state: str  # "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
    protocol_type: str
    protocol_data: str  # the name of the chosen protocol, if the group is Stable
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -2147483648  # v3+; a bit per ACL operation, or not asked


@message
class DescribeGroupsResponse:
    """The groups, not in the order of the request. v1 adds the throttle time, v5 is flexible."""

    groups: tuple[DescribedGroup, ...] = ()
    throttle_time_ms: int = 0  # v1+


def _error_response(request: DescribeGroupsRequest, _version: int, error: ErrorCode) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple(
            DescribedGroup(
                error_code=error, group_id=group, group_state="", protocol_type="", protocol_data="", members=()
            )
            for group in request.groups
        )
    )


API = Api(
    key=ApiKey.DESCRIBE_GROUPS,
    request=DescribeGroupsRequest,
    response=DescribeGroupsResponse,
    min_version=0,
    max_version=6,
    summary="Describe classic groups",
    make_error_response=_error_response,
    groups=(RequestField("groups[]"),),
)
