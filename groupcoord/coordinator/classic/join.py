"""JoinGroup: asking to be a member. Source: ``GroupMetadataManager.classicGroupJoin``."""

from groupcoord.coordinator import records
from groupcoord.coordinator.classic import rebalance, session, static
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member, Protocols
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.classic.validate import known_member
from groupcoord.coordinator.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from groupcoord.coordinator.errors import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import Departure, MemberIdAssigned, MemberJoined, MemberRejoined
from groupcoord.coordinator.shard import Shard
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_FROM = 4  # KIP-394


def join_group(shard: Shard, ctx: HandlerContext, call: Call, request: JoinGroupRequest) -> None:
    """Answer ``call``, now or when the join phase ends."""
    created = False
    try:
        _check_request(shard, request)
        group = shard.groups.get(request.group_id)
        if group is None:
            if request.member_id:
                why = f"there is no group {request.group_id!r}, so member_id {request.member_id!r} is not in it"
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why)
            group = shard.create_group(ctx, request.group_id)
            created = True
    except ApiError as refusal:
        lost = refusal.code is ErrorCode.NOT_COORDINATOR
        _refuse(ctx, call, request, refusal, "" if lost else request.member_id)
        return
    try:
        _join(shard, ctx, call, request, group)
    except UnexpectedBrokerError as problem:
        _refuse(ctx, call, request, problem, "")
        group.answered_already(call)
        return
    _store(shard, ctx, call, group, created)


def _store(shard: Shard, ctx: HandlerContext, call: Call, group: ClassicGroup, created: bool) -> None:
    """A new group exists from now on, also for whoever reads the log, even if the join itself was refused.

    The answer to a join waits for members and not for the log. But if appends that were before it fail, or take too long, and
    it still waits then, it is refused; as in Kafka the group does not learn that nobody listens there any more.
    """

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        if group.waits_to_join(call):
            later.reply(call, _error(response_error(error), ""))
            group.answered_already(call)

    if created:
        shard.store(ctx, (records.empty_group(group),), lambda _: None, failed, created=group)
    elif not shard.is_idle:
        shard.store(ctx, (), lambda _: None, failed)


def _check_request(shard: Shard, request: JoinGroupRequest) -> None:
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")
    low, high = shard.config.group_min_session_timeout_ms, shard.config.group_max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        why = (
            f"session_timeout_ms is {request.session_timeout_ms}; group.min.session.timeout.ms is {low}, "
            f"group.max.session.timeout.ms is {high}"
        )
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT, why)


def _join(shard: Shard, ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicGroup) -> None:
    """1 capacity · 2 protocols · 3 newcomer, 4 somebody with a handed-out id, or 5 a member that joins again."""
    newcomer = not request.member_id
    if not _has_room(shard, group, request.member_id):
        why = f"group.max.size is {shard.config.group_max_size}"
        _evict(shard, ctx, group, request.member_id, why)
        _refuse(ctx, call, request, ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, why), "")
        return
    protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
    if not group.supports(request.protocol_type, [name for name, _ in protocols]):
        _refuse(ctx, call, request, _inconsistent(group, request), "" if newcomer else request.member_id)
    elif newcomer:
        _join_new(shard, ctx, call, request, group, protocols)
    elif request.member_id in group.pending_join_members:
        if request.group_instance_id is None:
            _add(shard, ctx, call, request, group, request.member_id, protocols)
        else:
            # Only dynamic members are handed ids. Kafka runs into an exception of its own here, and this is how it shows.
            why = f"member_id {request.member_id!r} was handed out to a dynamic member, but group_instance_id is set"
            _refuse(ctx, call, request, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, why), "")
    else:
        _rejoin(shard, ctx, call, request, group, protocols)


def _has_room(shard: Shard, group: ClassicGroup, member_id: str) -> bool:
    """While a group prepares, parked joins count and not members: so the members that come last are the ones evicted."""
    limit = shard.config.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.parked_join is not None) or group.awaiting_join < limit
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member is not None or len(group.members) < limit
    return True


def _evict(shard: Shard, ctx: HandlerContext, group: ClassicGroup, member_id: str, why: str) -> None:
    group.pending_join_members.discard(member_id)
    shard.cancel(group.session_key(member_id))
    member = group.members.get(member_id)
    if member is not None:
        shard.remove_member(ctx, group, member, f"it came back too late: {why}", Departure.NO_ROOM)


def _join_new(
    shard: Shard, ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicGroup, protocols: Protocols
) -> None:
    """A static newcomer is taken at once; a dynamic one gets an id first and has to come back with it (KIP-394)."""
    instance_id = request.group_instance_id
    prefix = (call.client_id or "") if instance_id is None else instance_id
    member_id = f"{prefix}-{shard.new_uuid()}"
    replaced = group.static_member(instance_id)
    if replaced is not None:
        static.replace(shard, ctx, call, request, group, replaced, member_id, protocols)
    elif instance_id is None and call.version >= MEMBER_ID_REQUIRED_FROM:
        group.pending_join_members.add(member_id)
        session.start_pending(shard, ctx, group, member_id, request.session_timeout_ms)
        ctx.emit(MemberIdAssigned, group=group.group_id, member=member_id)
        ctx.reply(call, _error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add(shard, ctx, call, request, group, member_id, protocols)


def _add(
    shard: Shard,
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    member_id: str,
    protocols: Protocols,
) -> None:
    """Take a new member in. It cannot send heartbeats while it is parked, so its first timer is a long fixed one."""
    member = Member(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=call.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=protocols,
        session_key=group.session_key(member_id),
        is_new=True,
    )
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member, call)
    ctx.emit(
        MemberJoined,
        group=group.group_id,
        member=member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        protocols=tuple(name for name, _ in protocols),
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        reason=request.reason or "",
    )
    session.restart(shard, ctx, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.prepare_or_complete(shard, ctx, group, f"member {member_id} is new{_reason(request)}")


def _rejoin(
    shard: Shard, ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicGroup, protocols: Protocols
) -> None:
    """A member joins again. Nothing is restarted for one that merely asks what it was told before."""
    try:
        member = known_member(group, request.member_id, request.group_instance_id)
    except ApiError as refusal:
        _refuse(ctx, call, request, refusal, request.member_id)
        return
    changed = member.protocols != protocols
    leads = group.leader_id == member.member_id
    if group.state is GroupState.STABLE and not changed and not leads:
        ctx.reply(call, rebalance.current_generation(group, member))
        return
    if group.state is GroupState.COMPLETING_REBALANCE and not changed:
        ctx.reply(call, rebalance.current_generation(group, member))
        return
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, call)
    ctx.emit(
        MemberRejoined, group=group.group_id, member=member.member_id, changed=changed, reason=request.reason or ""
    )
    who = "leader" if leads else "member"
    what = "has new metadata" if changed else "joins again"
    rebalance.prepare_or_complete(shard, ctx, group, f"{who} {member.member_id} {what}{_reason(request)}")


def _reason(request: JoinGroupRequest) -> str:
    """What the client says, if it does (KIP-800)."""
    return f" ({request.reason})" if request.reason else ""


def _inconsistent(group: ClassicGroup, request: JoinGroupRequest) -> ApiError:
    names = ", ".join(protocol.name for protocol in request.protocols) or "none"
    if group.state is GroupState.EMPTY:
        why = f"protocol_type is {request.protocol_type!r} and protocols are {names}; neither may be empty"
    elif request.protocol_type != group.protocol_type:
        why = f"protocol_type is {request.protocol_type!r}, the group's is {group.protocol_type!r}"
    else:
        common = [name for name, count in group.supported_protocols.items() if count == len(group.members)]
        why = f"protocols are {names}; those that every member supports are {', '.join(common) or 'none'}"
    return ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)


def _refuse(ctx: HandlerContext, call: Call, request: JoinGroupRequest, refusal: ApiError, member_id: str) -> None:
    emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
    ctx.reply(call, _error(refusal.code, member_id))


def _error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, leader="", member_id=member_id, members=())
