"""Heartbeat: a member says that it is there, and is told whether the group still is what it believes.

Source: ``GroupMetadataManager.classicGroupHeartbeat``.
"""

from groupcoord.coordinator.classic import session
from groupcoord.coordinator.classic.states import HEARTBEAT_ANSWERS
from groupcoord.coordinator.classic.validate import current_generation, known_member
from groupcoord.coordinator.errors import emit_refusal, response_error
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import HeartbeatRequest, HeartbeatResponse

_ANSWERS = {state: HeartbeatResponse(error_code=code) for state, code in HEARTBEAT_ANSWERS.items()}


def heartbeat(shard: Shard, ctx: HandlerContext, call: Call, request: HeartbeatRequest) -> None:
    """Answer ``call`` and give the member its whole session timeout again, also while the group rebalances."""
    try:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")
        group = shard.groups.get(request.group_id)
        if group is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {request.group_id!r}")
        member = known_member(group, request.member_id, request.group_instance_id)
        current_generation(group, request.generation_id)
    except ApiError as refusal:
        if refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            ctx.reply(call, HeartbeatResponse())  # nobody knows better yet
            return
        emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
        ctx.reply(call, HeartbeatResponse(error_code=refusal.code))
        return
    session.restart(shard, ctx, group, member)
    answer = _ANSWERS[group.state]
    if shard.is_idle:
        ctx.reply(call, answer)
    else:
        shard.store(ctx, (), lambda later: later.reply(call, answer), lambda later, error: _fail(later, call, error))


def _fail(ctx: HandlerContext, call: Call, error: ErrorCode) -> None:
    """A heartbeat that came behind an append that failed; while a partition loads, heartbeats are fine."""
    code = response_error(error)
    ctx.reply(call, HeartbeatResponse(error_code=0 if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code))
