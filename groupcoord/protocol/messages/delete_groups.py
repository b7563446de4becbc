"""DeleteGroups: versions 0–2."""

from groupcoord.protocol.codec.message import message


@message
class DeleteGroupsRequest:
    """Forget these groups and their offsets. v2 is flexible."""

    groups_names: tuple[str, ...] = ()


@message
class DeletableGroupResult:
    """What became of one group.

    Errors: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    group_id: str
    error_code: int = 0


@message
class DeleteGroupsResponse:
    """What became of the groups, not in the order of the request. v2 is flexible."""

    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
