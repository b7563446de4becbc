"""The LeaveGroup handler of classic groups (``GroupMetadataManager.classicGroupLeave``)."""

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState, known_member
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.coordinator.group import ClassicMembersGroup
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call
from groupcoord.protocol.apis.leave_group import MemberIdentity, MemberResponse
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import LeaveGroupRequest, LeaveGroupResponse


def leave_group(shard: RuntimeShard, ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> None:
    """Remove each member in the request, and answer ``call`` when that is stored."""
    if request.group_id:
        shard.write(ctx, call, request, _OPERATION)
    else:
        _refused(ctx, call, request, ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty"))


def _run(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: LeaveGroupRequest
) -> CoordinatorResult:
    group = machine.classic_group(request.group_id)
    if group is None:
        other = machine.groups.get(request.group_id)
        if isinstance(other, ClassicMembersGroup):
            return other.leave(ctx, call, request)
        _refuse_all(ctx, call, request)
        return EMPTY_RESULT
    answers = []
    left = []
    for identity in request.members:
        code = ErrorCode.NONE
        try:
            left.append(_remove(machine, ctx, group, identity))
        except ApiError as refusal:
            emit_refusal(ctx, call, request.group_id, identity.member_id, refusal)
            code = refusal.code
        answers.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
        )
    result = EMPTY_RESULT
    if left:
        try:
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                result = group.prepare_rebalance(ctx, f"{', '.join(left)} left")
            else:
                result = group.maybe_complete_join(ctx)
        except UnexpectedBrokerError as problem:
            _refused(ctx, call, request, problem)
            return EMPTY_RESULT
    # If the last member left, the response waits for the record of the empty group.
    return CoordinatorResult(
        response=LeaveGroupResponse(members=tuple(answers)), records=result.records, replay_records=False
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


def _remove(machine: GroupCoordinatorShard, ctx: HandlerContext, group: ClassicGroup, identity: MemberIdentity) -> str:
    """Remove a member, and return its id. Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    reason = f"it left ({identity.reason})" if identity.reason else "it left"
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_join_members:
        group.pending_join_members.discard(member_id)
        machine.timers.cancel(group.session_key(member_id))
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
    group.remove_and_answer_member(ctx, member, reason, Departure.LEFT)
    return member.member_id


def _refused(ctx: HandlerContext, call: Call, request: LeaveGroupRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.group_id, "", refusal)
    ctx.reply(call, LeaveGroupResponse(error_code=refusal.code))


def _failed(ctx: HandlerContext, call: Call, _request: LeaveGroupRequest, error: ErrorCode) -> None:
    ctx.reply(call, LeaveGroupResponse(error_code=response_error(error)))


_OPERATION = GroupOperation(_run, _refused, _failed)
