"""DeleteGroups (API key 42): request and response messages, and their Api."""

from groupcoord.protocol.api_descriptor import Api, ApiKey, RequestField
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class DeleteGroupsRequest:
    """Delete groups and their offsets. v2 is flexible."""

    groups_names: tuple[str, ...] = ()


@message
class DeletableGroupResult:
    """The result for one group.

    Errors: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    group_id: str
    error_code: int = 0


@message
class DeleteGroupsResponse:
    """The results for the groups, not in the order of the request. v2 is flexible."""

    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()


def _error_response(request: DeleteGroupsRequest, _version: int, error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(DeletableGroupResult(group_id=group, error_code=error) for group in request.groups_names)
    )


API = Api(
    key=ApiKey.DELETE_GROUPS,
    request=DeleteGroupsRequest,
    response=DeleteGroupsResponse,
    min_version=0,
    max_version=2,
    summary="Delete groups",
    make_error_response=_error_response,
    groups=(RequestField("groups_names[]"),),
)
