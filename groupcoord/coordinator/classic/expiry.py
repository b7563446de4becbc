"""A member that is not heard of in time is out. Source: ``expireClassicGroupMemberHeartbeat`` of ``GroupMetadataManager``."""

from contextlib import suppress

from groupcoord.coordinator.classic import rebalance
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import UnexpectedBrokerError
from groupcoord.coordinator.events import Departure, MemberRemoved
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse


def pending_over(shard: Shard, ctx: HandlerContext, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    """Somebody did not come back with the id it was given."""
    group.pending_join_members.discard(member_id)
    reason = f"it did not come back with its new id within {timeout_ms} ms"
    ctx.emit(
        MemberRemoved,
        group=group.group_id,
        member=member_id,
        reason=reason,
        how=Departure.NEVER_CAME_BACK,
        timeout_ms=timeout_ms,
    )
    with suppress(UnexpectedBrokerError):
        _go_on_if_all_joined(shard, ctx, group)


def session_over(shard: Shard, ctx: HandlerContext, group: ClassicGroup, member: Member, timeout_ms: int) -> None:
    """``member`` was silent for ``timeout_ms``. Not so if a request of it waits here: answering it restarts the timer."""
    if member.has_satisfied_heartbeat:
        return
    what = "its first JoinGroup waited for" if member.is_new else "nothing was heard of it in its session of"
    reason = f"{what} {timeout_ms} ms"
    how = Departure.FIRST_JOIN_OVER if member.is_new else Departure.SESSION_OVER
    remove(shard, ctx, group, member, reason, how, timeout_ms)
    with suppress(UnexpectedBrokerError):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance.prepare(shard, ctx, group, f"member {member.member_id} is out: {reason}")
        else:
            _go_on_if_all_joined(shard, ctx, group)


def remove(
    shard: Shard,
    ctx: HandlerContext,
    group: ClassicGroup,
    member: Member,
    reason: str,
    how: Departure,
    timeout_ms: int | None = None,
) -> None:
    """Let ``member`` go. Its parked JoinGroup is told UNKNOWN_MEMBER_ID, so that a client that is still there comes again.

    A parked SyncGroup of it is never answered, as in Kafka (``removeCurrentMemberFromClassicGroup``).
    """
    if member.parked_join is not None:
        refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, leader="", member_id="", members=())
        ctx.reply(member.parked_join, refusal)
    shard.remove_member(ctx, group, member, reason, how, timeout_ms)


def _go_on_if_all_joined(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """Unlike a leave, an expiry ends even the initial delay early if everybody else is there."""
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
        rebalance.complete_join(shard, ctx, group)
