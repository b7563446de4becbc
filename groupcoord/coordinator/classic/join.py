"""The JoinGroup handler of classic groups (``GroupMetadataManager.classicGroupJoin``)."""

from collections.abc import Sequence

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState, Member, Protocols, known_member
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import (
    Departure,
    MemberIdAssigned,
    MemberJoined,
    MemberRejoined,
    StaticMemberReplaced,
)
from groupcoord.coordinator.group import ClassicMembersGroup
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

MEMBER_ID_REQUIRED_FROM = 4  # KIP-394
SKIP_ASSIGNMENT_FROM = 9  # KIP-814
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the first JoinGroup of a member may wait before the member is removed: it cannot send heartbeats yet, and a dead
client would otherwise delay the group (a constant in Kafka's ``GroupCoordinatorConfig``)."""


def join_group(shard: RuntimeShard, ctx: HandlerContext, call: Call, request: JoinGroupRequest) -> None:
    """Answer ``call``, now or when the join phase ends."""
    invalid = _invalid(shard.machine, request)
    if invalid is None:
        shard.write(ctx, call, request, _OPERATION)
    else:
        _refuse(ctx, call, request, invalid, request.member_id)


def _run(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: JoinGroupRequest
) -> CoordinatorResult:
    """Create the group if it does not exist, and write its record, even if the join itself is refused; then join."""
    group = machine.classic_group(request.group_id)
    replaced: Sequence[TypedRecord] = ()
    created = group is None
    if group is None:
        other = machine.groups.get(request.group_id)
        if isinstance(other, ClassicMembersGroup):
            if not other.is_empty:
                return _join_other(ctx, call, request, other)
            replaced = other.tombstones()
            other.cancel_timers()
            del machine.groups[request.group_id]
        if request.member_id:
            why = f"there is no group {request.group_id!r}, so member_id {request.member_id!r} is not in it"
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        group = machine.create_group(ctx, request.group_id)
    joined = group
    try:
        result = _join(machine, ctx, call, request, group)
    except UnexpectedBrokerError as problem:
        _refuse(ctx, call, request, problem, "")
        group.answered_already(call)
        return EMPTY_RESULT

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        """The response to a JoinGroup waits for members, not for the log. But if an append fails before, the JoinGroup is
        refused; as in Kafka it stays stored as waiting."""
        if result.failed is not None:
            result.failed(later, error)
        if joined.waits_to_join(call):
            later.reply(call, _error(response_error(error), ""))
            joined.answered_already(call)

    return CoordinatorResult(
        records=(*replaced, group.empty_record()) if created else result.records,
        stored=result.stored,
        failed=failed,
        replay_records=False,
    )


def _join_other(
    ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicMembersGroup
) -> CoordinatorResult:
    """Join a group of another type. A refusal then has no member id."""
    try:
        return group.join(ctx, call, request)
    except ApiError as refusal:
        return _refuse(ctx, call, request, refusal, "")


def _invalid(machine: GroupCoordinatorShard, request: JoinGroupRequest) -> ApiError | None:
    """The error of an invalid request, or None."""
    if not request.group_id:
        return ApiError(ErrorCode.INVALID_GROUP_ID, "group_id is empty")
    low, high = machine.config.group_min_session_timeout_ms, machine.config.group_max_session_timeout_ms
    if low <= request.session_timeout_ms <= high:
        return None
    why = (
        f"session_timeout_ms is {request.session_timeout_ms}; group.min.session.timeout.ms is {low}, "
        f"group.max.session.timeout.ms is {high}"
    )
    return ApiError(ErrorCode.INVALID_SESSION_TIMEOUT, why)


def _join(
    machine: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicGroup
) -> CoordinatorResult:
    """Check capacity and protocols, then add a new member, a pending member, or let a member rejoin.

    Raises UnexpectedBrokerError.
    """
    newcomer = not request.member_id
    if not _has_room(machine, group, request.member_id):
        why = f"group.max.size is {machine.config.group_max_size}"
        _evict(machine, ctx, group, request.member_id, why)
        return _refuse(ctx, call, request, ApiError(ErrorCode.GROUP_MAX_SIZE_REACHED, why), "")
    protocols = tuple((protocol.name, protocol.metadata) for protocol in request.protocols)
    if not group.supports(request.protocol_type, [name for name, _ in protocols]):
        return _refuse(ctx, call, request, _inconsistent(group, request), "" if newcomer else request.member_id)
    if newcomer:
        return _join_new(machine, ctx, call, request, group, protocols)
    if request.member_id not in group.pending_join_members:
        return _rejoin(ctx, call, request, group, protocols)
    if request.group_instance_id is None:
        return _add(ctx, call, request, group, request.member_id, protocols)
    # Only dynamic members are given ids. Kafka fails here with an unexpected exception.
    why = f"member_id {request.member_id!r} was handed out to a dynamic member, but group_instance_id is set"
    return _refuse(ctx, call, request, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, why), "")


def _has_room(machine: GroupCoordinatorShard, group: ClassicGroup, member_id: str) -> bool:
    """Is there room under ``group.max.size``? While a rebalance is prepared, waiting JoinGroups count instead of members."""
    limit = machine.config.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        return (member is not None and member.parked_join is not None) or group.awaiting_join < limit
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member is not None or len(group.members) < limit
    return True


def _evict(machine: GroupCoordinatorShard, ctx: HandlerContext, group: ClassicGroup, member_id: str, why: str) -> None:
    group.pending_join_members.discard(member_id)
    machine.timers.cancel(group.session_key(member_id))
    member = group.members.get(member_id)
    if member is not None:
        group.remove_member(ctx, member, f"it came back too late: {why}", Departure.NO_ROOM)


def _join_new(
    machine: GroupCoordinatorShard,
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    protocols: Protocols,
) -> CoordinatorResult:
    """Add a new static member at once; give a dynamic one an id, with which it must join again (KIP-394)."""
    instance_id = request.group_instance_id
    prefix = (call.client_id or "") if instance_id is None else instance_id
    member_id = f"{prefix}-{machine.new_uuid()}"
    replaced = group.static_member(instance_id)
    if replaced is not None:
        return replace_static_member(ctx, call, request, group, replaced, member_id, protocols)
    if instance_id is None and call.version >= MEMBER_ID_REQUIRED_FROM:
        group.pending_join_members.add(member_id)
        group.start_pending_session(ctx, member_id, request.session_timeout_ms)
        ctx.emit(MemberIdAssigned, group=group.group_id, member=member_id)
        ctx.reply(call, _error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return EMPTY_RESULT
    return _add(ctx, call, request, group, member_id, protocols)


def _add(
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    member_id: str,
    protocols: Protocols,
) -> CoordinatorResult:
    """Add a new member. It cannot send heartbeats while its JoinGroup waits, so its first session timeout is 5 minutes."""
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
    group.add_member(member, call)
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
    group.restart_session(ctx, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return group.prepare_or_complete_rebalance(ctx, f"member {member_id} is new{_reason(request)}")


def _rejoin(
    ctx: HandlerContext, call: Call, request: JoinGroupRequest, group: ClassicGroup, protocols: Protocols
) -> CoordinatorResult:
    """A member rejoins. If it repeats its JoinGroup, it gets the same response, unless it leads a Stable group."""
    try:
        member = known_member(group, request.member_id, request.group_instance_id)
    except ApiError as refusal:
        return _refuse(ctx, call, request, refusal, request.member_id)
    changed = member.protocols != protocols
    leads = group.leader_id == member.member_id
    if group.state is GroupState.STABLE and not changed and not leads:
        ctx.reply(call, group.join_response(member))
        return EMPTY_RESULT
    if group.state is GroupState.COMPLETING_REBALANCE and not changed:
        ctx.reply(call, group.join_response(member))
        return EMPTY_RESULT
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(member, call)
    ctx.emit(
        MemberRejoined, group=group.group_id, member=member.member_id, changed=changed, reason=request.reason or ""
    )
    who = "leader" if leads else "member"
    what = "has new metadata" if changed else "joins again"
    return group.prepare_or_complete_rebalance(ctx, f"{who} {member.member_id} {what}{_reason(request)}")


def _reason(request: JoinGroupRequest) -> str:
    """The reason in the request, if there is one (KIP-800)."""
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


def _refuse(
    ctx: HandlerContext, call: Call, request: JoinGroupRequest, refusal: ApiError, member_id: str
) -> CoordinatorResult:
    emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
    ctx.reply(call, _error(refusal.code, member_id))
    return EMPTY_RESULT


def _refused(ctx: HandlerContext, call: Call, request: JoinGroupRequest, refusal: ApiError) -> None:
    _refuse(ctx, call, request, refusal, "" if refusal.code is ErrorCode.NOT_COORDINATOR else request.member_id)


def _error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, leader="", member_id=member_id, members=())


def _failed(ctx: HandlerContext, call: Call, _: JoinGroupRequest, error: ErrorCode) -> None:
    """The records of a group of another type could not be stored."""
    ctx.reply(call, _error(response_error(error), ""))


_OPERATION = GroupOperation(_run, _refused, _failed)


# --- a static member rejoins


def replace_static_member(
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    old: Member,
    new_id: str,
    protocols: Protocols,
) -> CoordinatorResult:
    """Replace ``old`` by the sender, without a rebalance only if the chosen protocol stays the same.

    Raises UnexpectedBrokerError.
    """
    old_leader = group.leader_id
    old_terms = old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms
    _fence(ctx, group, old)
    group.timers.cancel(old.session_key)
    new = group.replace_static(old, new_id)
    group.restart_session(ctx, new)  # with the old session timeout; that of the request is set below
    group.update(new, protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    group.park_join(new, call)
    quiet = group.state is GroupState.STABLE and group.select_protocol(group.votes()) == group.protocol_name
    ctx.emit(
        StaticMemberReplaced,
        group=group.group_id,
        instance_id=new.instance_id,
        old_member=old.member_id,
        new_member=new_id,
        rebalances=not quiet,
    )
    if not quiet:
        why = f"static member {new.instance_id} is back as {new_id}"
        if group.state is GroupState.STABLE:
            why += " and the voted protocol changes"
        return group.prepare_or_complete_rebalance(ctx, why)

    def stored(later: HandlerContext) -> None:
        if new.parked_join is call:
            group.park_join(new, None)
            later.reply(call, _same_generation(group, new, call.version, old_leader))

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        """The new id could not be stored: restore the old one, unless the new member was removed meanwhile."""
        if group.members.get(new_id) is not new:
            return
        waits = new.parked_join is call
        if waits:
            group.park_join(new, None)
        _fence(later, group, new)
        group.timers.cancel(new.session_key)
        group.update(new, *old_terms)
        restored = group.replace_static(new, old.member_id)
        group.restart_session(later, restored)
        if waits:
            later.reply(
                call,
                JoinGroupResponse(
                    error_code=response_error(error),
                    generation_id=group.generation_id,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name or None,
                    leader=old_leader or "",
                    member_id="",
                    members=(),
                ),
            )

    assignments = {member.member_id: member.assignment for member in group.members.values()}
    return CoordinatorResult(
        records=(group.metadata_record(assignments),), stored=stored, failed=failed, replay_records=False
    )


def _fence(ctx: HandlerContext, group: ClassicGroup, old: Member) -> None:
    """Answer waiting requests of the old member id with FENCED_INSTANCE_ID."""
    if old.parked_join is not None:
        ctx.reply(
            old.parked_join,
            JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, leader="", member_id=old.member_id, members=()),
        )
        group.park_join(old, None)
    if old.parked_sync is not None:
        refusal = SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, assignment=b"")
        ctx.reply(old.parked_sync, refusal)
        old.parked_sync = None


def _same_generation(group: ClassicGroup, member: Member, version: int, old_leader: str | None) -> JoinGroupResponse:
    """The response without a rebalance. From v9 on a leader gets the members and ``skip_assignment`` (KIP-814). Before, it gets
    its *old* id as the leader, so it takes itself for a follower, and does not assign either."""
    leads = group.leader_id == member.member_id
    skips = version >= SKIP_ASSIGNMENT_FROM
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or None,
        leader=(group.leader_id if skips else old_leader) or "",
        skip_assignment=skips and leads,
        member_id=member.member_id,
        members=group.joined_members() if skips and leads else (),
    )
