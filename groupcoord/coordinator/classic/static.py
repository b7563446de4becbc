"""A static member comes back: same instance id, new member id, and usually no rebalance (KIP-345, KIP-814).

Source: ``GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin``.
"""

from groupcoord.coordinator import records
from groupcoord.coordinator.classic import rebalance, session
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member, Protocols
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import response_error
from groupcoord.coordinator.events import StaticMemberReplaced
from groupcoord.coordinator.shard import Shard
from groupcoord.core.effects import Call
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse

SKIP_ASSIGNMENT_FROM = 9  # KIP-814


def replace(
    shard: Shard,
    ctx: HandlerContext,
    call: Call,
    request: JoinGroupRequest,
    group: ClassicGroup,
    old: Member,
    new_id: str,
    protocols: Protocols,
) -> None:
    """Put the caller in the place of ``old``. Without a rebalance only if the voted protocol stays what it is.

    Raises Stumbled.
    """
    old_leader = group.leader_id
    old_terms = old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms
    _fence(ctx, group, old)
    shard.cancel(old.session_key)
    new = group.replace_static(old, new_id)
    session.restart(shard, ctx, group, new)  # with the old session timeout, before the request's is stored
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
        rebalance.prepare_or_complete(shard, ctx, group, why)
        return

    def stored(later: HandlerContext) -> None:
        if new.parked_join is call:
            group.park_join(new, None)
            later.reply(call, _same_generation(group, new, call.version, old_leader))

    def failed(later: HandlerContext, error: ErrorCode) -> None:
        """Nobody shall know an id that is not in the log: the old one is put back, unless the new one is gone already."""
        if group.members.get(new_id) is not new:
            return
        waits = new.parked_join is call
        if waits:
            group.park_join(new, None)
        _fence(later, group, new)
        shard.cancel(new.session_key)
        group.update(new, *old_terms)
        restored = group.replace_static(new, old.member_id)
        session.restart(shard, later, group, restored)
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
    shard.store(ctx, (records.group(group, assignments),), stored, failed)


def _fence(ctx: HandlerContext, group: ClassicGroup, old: Member) -> None:
    """Whoever still waits under the old member id learns that its place is taken."""
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
        members=rebalance.joined_members(group) if skips and leads else (),
    )
