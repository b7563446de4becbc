"""The Heartbeat handler of classic groups (``GroupMetadataManager.classicGroupHeartbeat``)."""

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import HEARTBEAT_ANSWERS, current_generation, known_member
from groupcoord.coordinator.error_mapping import emit_refusal, response_error
from groupcoord.coordinator.group import ClassicMembersGroup
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse

_RESULTS = {
    state: CoordinatorResult(response=HeartbeatResponse(error_code=code)) for state, code in HEARTBEAT_ANSWERS.items()
}
_REFUSALS = {code: HeartbeatResponse(error_code=code) for code in ErrorCode}
"""One response object per error, so that it is encoded once per connection: see ``server.connection.ResponseCache``."""


def heartbeat(shard: RuntimeShard, ctx: HandlerContext, call: Call, request: HeartbeatRequest) -> None:
    """Answer ``call`` and restart the session of the member, even while the group rebalances."""
    if request.group_id:
        shard.write(ctx, call, request, _OPERATION)
    else:
        _refused(ctx, call, request, ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))


def _run(
    machine: GroupCoordinatorShard, ctx: HandlerContext, _call: Call, request: HeartbeatRequest
) -> CoordinatorResult:
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        if isinstance(group, ClassicMembersGroup):
            return group.heartbeat(ctx, request)
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {request.group_id!r}")
    member = known_member(group, request.member_id, request.group_instance_id)
    current_generation(group, request.generation_id)
    group.restart_session(ctx, member)
    return _RESULTS[group.state]


def _refused(ctx: HandlerContext, call: Call, request: HeartbeatRequest, refusal: ApiError) -> None:
    """Answer with the error of ``refusal``; while the partition is loading, with no error."""
    if refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        ctx.reply(call, HeartbeatResponse())
        return
    emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
    ctx.reply(call, _REFUSALS[refusal.code])


def _failed(ctx: HandlerContext, call: Call, _request: HeartbeatRequest, error: ErrorCode) -> None:
    """Answer after an earlier append of the partition failed."""
    code = response_error(error)
    ctx.reply(call, HeartbeatResponse(error_code=0 if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code))


_OPERATION = GroupOperation(_run, _refused, _failed)
