"""LeaveGroup: members go, by their own wish or an administrator's. Source: ``GroupMetadataManager.classicGroupLeave``."""

from groupcoord.coordinator.classic import expiry, rebalance
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.classic.validate import known_member
from groupcoord.coordinator.errors import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.leave_group import MemberIdentity, MemberResponse
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import LeaveGroupRequest, LeaveGroupResponse


def leave_group(shard: Shard, ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> None:
    """Remove each of the named members and answer ``call`` when that is stored."""
    if not request.group_id:
        emit_refusal(ctx, call, request.group_id, "", ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))
        ctx.reply(call, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    try:
        group = shard.groups.get(request.group_id)
    except ApiError as refusal:
        emit_refusal(ctx, call, request.group_id, "", refusal)
        ctx.reply(call, LeaveGroupResponse(error_code=refusal.code))
        return
    if group is None:
        _refuse_all(ctx, call, request)
        return
    answers = []
    left = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            left.append(_remove(shard, ctx, group, identity))
        except ApiError as refusal:
            emit_refusal(ctx, call, request.group_id, identity.member_id, refusal)
            code = refusal.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    if left:
        try:
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                rebalance.prepare(shard, ctx, group, f"{', '.join(left)} left")
            else:
                rebalance.maybe_complete_join(shard, ctx, group)
        except UnexpectedBrokerError as problem:
            emit_refusal(ctx, call, request.group_id, "", problem)
            ctx.reply(call, LeaveGroupResponse(error_code=problem.code))
            return
    response = LeaveGroupResponse(members=tuple(answers))
    # The answer waits for the record of the group that the last member left, and for whatever is on its way before it.
    shard.store(
        ctx,
        (),
        lambda later: later.reply(call, response),
        lambda later, error: later.reply(call, LeaveGroupResponse(error_code=response_error(error))),
    )


def _refuse_all(ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> None:
    why = f"there is no group {request.group_id!r}"
    answers = []
    for who in request.members:
        emit_refusal(ctx, call, request.group_id, who.member_id, ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why))
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        answers.append(
            MemberResponse(member_id=who.member_id, group_instance_id=who.group_instance_id, error_code=unknown)
        )
    ctx.reply(call, LeaveGroupResponse(members=tuple(answers)))


def _remove(shard: Shard, ctx: HandlerContext, group: ClassicGroup, identity: MemberIdentity) -> str:
    """Returns the id of who left. Raises Refused: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    reason = f"it left ({identity.reason})" if identity.reason else "it left"
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_join_members:
        group.pending_join_members.discard(member_id)
        shard.cancel(group.session_key(member_id))
        ctx.emit(
            MemberRemoved,
            group=group.group_id,
            member=member_id,
            reason=reason,
            how=Departure.LEFT,
            timeout_ms=None,
        )
        return member_id
    if not member_id:
        # An administrator removes a static member by its instance id alone.
        member = group.static_member(instance_id)
        if member is None:
            why = f"member_id is empty and group_instance_id {instance_id!r} is of no member"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why)
    else:
        member = known_member(group, member_id, instance_id)
    expiry.remove(shard, ctx, group, member, reason, Departure.LEFT)
    return member.member_id
