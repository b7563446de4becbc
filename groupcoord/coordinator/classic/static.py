"""A static member comes back: same instance id, new member id, and usually no rebalance (KIP-345, KIP-814).

Source: ``GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin``.
"""

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member, Protocols
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import response_error
from groupcoord.coordinator.events import StaticMemberReplaced
from groupcoord.coordinator.runtime.state_machine import CoordinatorResult
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

SKIP_ASSIGNMENT_FROM = 9  # KIP-814


def replace(
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    old: Member,
    new_id: str,
    protocols: Protocols,
) -> CoordinatorResult:
    """Put the caller in the place of ``old``. Without a rebalance only if the voted protocol stays what it is.

    Raises UnexpectedBrokerError.
    """
    old_leader = group.leader_id
    old_terms = old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms
    _fence(ctx, group, old)
    group.timers.cancel(old.session_key)
    new = group.replace_static(old, new_id)
    group.restart_session(ctx, new)  # with the old session timeout, before the request's is stored
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
        """An id that is not in the log must not be known: the old one is put back, unless the new one is gone already."""
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
    """Requests that wait under the old member id are told that its place is taken."""
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
    """From v9 on a leader gets the members and is told to assign nothing. Before, it is given the leader's *old* id, takes
    itself for a follower, and assigns nothing either."""
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
