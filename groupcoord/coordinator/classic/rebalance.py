"""A rebalance from its start to the moment when every JoinGroup is answered.

Source: ``GroupMetadataManager.prepareRebalance``, ``tryCompleteInitialRebalanceElseSchedule``, ``completeClassicGroupJoin``.
"""

from contextlib import suppress

from groupcoord.coordinator import records
from groupcoord.coordinator.classic import session
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.errors import UnexpectedBrokerError
from groupcoord.coordinator.events import (
    Departure,
    GenerationStarted,
    InitialDelayExtended,
    LeaderElected,
    RebalanceStarted,
    RebalanceStuck,
)
from groupcoord.coordinator.shard import Shard
from groupcoord.core.handler_context import HandlerContext
from groupcoord.protocol.apis.join_group import JoinGroupResponseMember
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse


def prepare_or_complete(shard: Shard, ctx: HandlerContext, group: ClassicGroup, reason: str) -> None:
    """Start a rebalance, or, if one is under way, see whether the last missing member has now come."""
    if group.can_rebalance:
        prepare(shard, ctx, group, reason)
    else:
        maybe_complete_join(shard, ctx, group)


def prepare(shard: Shard, ctx: HandlerContext, group: ClassicGroup, reason: str) -> None:
    """Ask all members to join again. A group that was empty waits a while for others to come (KIP-134)."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(shard, ctx, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync_members.clear()
    shard.cancel(group.sync_key)

    initial = group.state is GroupState.EMPTY
    delay = shard.config.group_initial_rebalance_delay_ms
    timeout = group.rebalance_timeout_ms
    ctx.emit(
        RebalanceStarted,
        group=group.group_id,
        generation=group.generation_id,
        reason=reason,
        waits_ms=delay if initial else timeout,
        initial=initial,
    )
    shard.move(ctx, group, GroupState.PREPARING_REBALANCE)
    if initial:
        _schedule_initial(shard, ctx, group, delay, max(timeout - delay, 0))
    elif group.all_joined:
        complete_join(shard, ctx, group)
    else:
        _schedule_join(shard, ctx, group)


def maybe_complete_join(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """End the join phase if it waits for nobody any more; the initial delay is never cut short here."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and group.all_joined
    ):
        complete_join(shard, ctx, group)


def complete_join(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """End the join phase: who has not come is out, the others are the next generation.

    Raises Stumbled where Kafka does not get to the end of this. The group then stays in its join phase, which has no timer
    any more; it goes on when the next member comes, leaves or is missed, perhaps only to stumble again.
    """
    shard.cancel(group.join_key)
    timeout = group.rebalance_timeout_ms
    for member in group.members.values():
        if member.parked_join is None and member.instance_id is None:
            reason = "it did not join again within the rebalance timeout"
            shard.remove_member(ctx, group, member, reason, Departure.NOT_JOINED, timeout)
    if not _leader_is_here(ctx, group) and len(group.members):
        # Only static members that have not come back are left; they stay until their sessions run out.
        _schedule_join(shard, ctx, group)
        return
    group.generation_id += 1
    if not len(group.members):
        group.pending_sync_members.clear()
        group.protocol_name = None
        group.subscribed_topics = group.compute_subscribed_topics()
        shard.move(ctx, group, GroupState.EMPTY)
        shard.store(ctx, (records.group(group, {}),), lambda _: None, lambda _, __: None)
        return
    try:
        _begin_generation(shard, ctx, group)
    except UnexpectedBrokerError as problem:
        ctx.emit(RebalanceStuck, group=group.group_id, generation=group.generation_id, why=problem.message)
        raise


def _begin_generation(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """Raises Stumbled."""
    votes = group.votes()
    group.protocol_name = group.select_protocol(votes)
    group.subscribed_topics = group.compute_subscribed_topics()
    group.pending_sync_members.clear()
    shard.move(ctx, group, GroupState.COMPLETING_REBALANCE)
    ctx.emit(
        GenerationStarted,
        group=group.group_id,
        generation=group.generation_id,
        protocol=group.protocol_name,
        votes=votes,
        leader=group.leader_id,
        members=tuple(group.members),
    )
    for member in group.members.values():
        if member.parked_join is not None:
            ctx.reply(member.parked_join, current_generation(group, member))
            group.park_join(member, None)
        session.restart(shard, ctx, group, member)
        member.is_new = False
        group.pending_sync_members.add(member.member_id)
    _schedule_sync(shard, ctx, group)


def current_generation(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """What ``member`` is told of the present generation; only the leader learns who the members are."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or None,  # an empty name is said to be none (``JoinGroupResponse``)
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=joined_members(group) if group.leader_id == member.member_id else (),
    )


def joined_members(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    """Every member with its metadata for the voted protocol, static ones that did not return included. Raises Stumbled."""
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata_of(group.protocol_name),
        )
        for member in group.members.values()
    )


def answer_syncs(shard: Shard, ctx: HandlerContext, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer every parked SyncGroup, with the member's assignment or with ``error``.

    The session of each starts anew: if it ran out while the request was parked, nobody minded then.
    """
    for member in group.members.values():
        if member.parked_sync is None:
            continue
        ctx.reply(
            member.parked_sync,
            SyncGroupResponse(
                error_code=error,
                protocol_type=None if error else group.protocol_type,
                protocol_name=None if error else group.protocol_name,
                assignment=member.assignment,
            ),
        )
        member.parked_sync = None
        session.restart(shard, ctx, group, member)


def _leader_is_here(ctx: HandlerContext, group: ClassicGroup) -> bool:
    """Has the leader joined? If not, the first member that has leads from now on."""
    leader = group.members.get(group.leader_id) if group.leader_id is not None else None
    if leader is None:
        return False
    if leader.parked_join is not None:
        return True
    for member in group.members.values():
        if member.parked_join is not None:
            group.leader_id = member.member_id
            reason = f"the leader before, {leader.member_id}, did not join again in time"
            ctx.emit(LeaderElected, group=group.group_id, leader=member.member_id, reason=reason)
            return True
    return False


def _schedule_join(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """Never for this very moment: a timeout of 0 or less, which nobody forbids, must let time go on."""
    at_ms = ctx.now_ms + max(group.rebalance_timeout_ms, 1)
    shard.timers.schedule(group.join_key, at_ms, lambda due: _join_over(shard, due, group))


def _join_over(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    with suppress(UnexpectedBrokerError):
        complete_join(shard, ctx, group)


def _schedule_initial(shard: Shard, ctx: HandlerContext, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    """Each slice of the delay in which somebody more came is followed by another, up to the rebalance timeout."""

    def slice_over(due: HandlerContext) -> None:
        if not group.new_member_added or not remaining_ms:
            _join_over(shard, due, group)
            return
        group.new_member_added = False
        next_delay = min(shard.config.group_initial_rebalance_delay_ms, remaining_ms)
        next_remaining = max(remaining_ms - delay_ms, 0)
        due.emit(InitialDelayExtended, group=group.group_id, by_ms=next_delay, remaining_ms=next_remaining)
        _schedule_initial(shard, due, group, next_delay, next_remaining)

    shard.timers.schedule(group.join_key, ctx.now_ms + delay_ms, slice_over)


def _schedule_sync(shard: Shard, ctx: HandlerContext, group: ClassicGroup) -> None:
    """Whoever has not sent SyncGroup by then is out, static members too.

    The timer is cancelled when nobody is missing any more and when the next rebalance starts. Somebody who is missing may
    have been replaced by a static member of a new id; in Kafka too that still ends the generation.
    """
    timeout = group.rebalance_timeout_ms

    def too_late(due: HandlerContext) -> None:
        names = ", ".join(sorted(group.pending_sync_members))
        for member in group.members.values():
            if member.member_id in group.pending_sync_members:
                reason = f"it did not send SyncGroup within {timeout} ms"
                shard.remove_member(due, group, member, reason, Departure.NOT_SYNCED, timeout)
        with suppress(UnexpectedBrokerError):
            prepare(shard, due, group, f"{names} did not send SyncGroup within {timeout} ms")

    shard.timers.schedule(group.sync_key, ctx.now_ms + timeout, too_late)
