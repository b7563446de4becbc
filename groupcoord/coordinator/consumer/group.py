"""The interfaces Group and ClassicMembersGroup for consumer groups. Source: ``ConsumerGroup``; KIP-848."""

from collections.abc import Iterable

from groupcoord.coordinator.consumer import classic_protocol
from groupcoord.coordinator.consumer.member_timers import ConsumerGroupSessions
from groupcoord.coordinator.group import ClassicMembersGroup, Group
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest


class ConsumerGroup(ConsumerGroupSessions, ClassicMembersGroup):
    """One consumer group."""

    def describe(self) -> DescribedGroup:
        """See Group; DescribeGroups only knows classic groups."""
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    def state_before(self, pending: Iterable[UndoLog]) -> str:
        """See Group."""
        return self.snapshot(pending).state

    def join(self, ctx: HandlerContext, call: Call, request: JoinGroupRequest) -> CoordinatorResult:
        """See ClassicMembersGroup."""
        return classic_protocol.join(self, ctx, call, request)

    def sync(self, ctx: HandlerContext, call: Call, request: SyncGroupRequest) -> CoordinatorResult:
        """See ClassicMembersGroup."""
        return classic_protocol.sync(self, ctx, call, request)

    def heartbeat(self, ctx: HandlerContext, request: HeartbeatRequest) -> CoordinatorResult:
        """See ClassicMembersGroup."""
        return classic_protocol.heartbeat(self, ctx, request)

    def leave(self, ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> CoordinatorResult:
        """See ClassicMembersGroup."""
        return classic_protocol.leave(self, ctx, call, request)


def require_consumer_group(group: Group | None, group_id: str) -> ConsumerGroup:
    """The group called ``group_id``. Raises ApiError (GROUP_ID_NOT_FOUND) if it is none, or of another kind."""
    if isinstance(group, ConsumerGroup):
        return group
    what = "not found" if group is None else "is not a consumer group"
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
