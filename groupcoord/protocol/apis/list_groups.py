"""ListGroups (API key 16): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey
from groupcoord.protocol.message_dataclass import message


@message
class ListGroupsRequest:
    """List the groups that the broker coordinates. v3 is flexible, v4 filters by state (KIP-518), v5 by type (KIP-848)."""

    states_filter: tuple[str, ...] = ()  # v4+
    types_filter: tuple[str, ...] = ()  # v5+; empty means all, of states too


@message
class ListedGroup:
    """One group. v4 adds its state (KIP-518), v5 its type (KIP-848)."""

    group_id: str
    protocol_type: str
    group_state: str = ""  # v4+
    group_type: str = ""  # v5+; "classic" or "consumer"


@message
class ListGroupsResponse:
    """The groups, in no order. v1 adds the throttle time, v3 is flexible. Error: COORDINATOR_LOAD_IN_PROGRESS."""

    error_code: int = 0
    groups: tuple[ListedGroup, ...] = ()
    throttle_time_ms: int = 0  # v1+


API = Api(
    key=ApiKey.LIST_GROUPS,
    request=ListGroupsRequest,
    response=ListGroupsResponse,
    min_version=0,
    max_version=5,
    summary="List groups",
)
