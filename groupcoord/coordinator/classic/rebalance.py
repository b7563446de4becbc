"""The rebalance of a classic group: prepare, complete the join phase, answer every JoinGroup; and the timers of the group.

Source: ``GroupMetadataManager.prepareRebalance``, ``tryCompleteInitialRebalanceElseSchedule``, ``completeClassicGroupJoin``,
``expireClassicGroupMemberHeartbeat``.
"""

from collections.abc import Mapping

from groupcoord.coordinator import records
from groupcoord.coordinator.classic.classic_group_state import ClassicGroupMembers, GroupState, Member
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.events import (
    Departure,
    GenerationStarted,
    InitialDelayExtended,
    LeaderElected,
    MemberRemoved,
    RebalanceStarted,
    RebalanceStuck,
    StateChanged,
)
from groupcoord.coordinator.group import GroupContext
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.protocol.apis.join_group import JoinGroupResponseMember
from groupcoord.protocol.coordinator_records.group_records import GroupMetadataValue, MemberMetadata
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse


class RebalancingGroup(ClassicGroupMembers):
    """The rebalance logic of a classic group. Methods that may write return their records."""

    def __init__(self, group_id: str, now_ms: int, context: GroupContext) -> None:
        super().__init__(group_id, now_ms)
        self.context = context
        self.config, self.timers = context.config, context.timers

    def transition_to(self, ctx: HandlerContext, state: GroupState) -> None:
        """Change the state, and emit StateChanged."""
        origin = self.state
        self.move_to(state, ctx.now_ms)
        ctx.emit(StateChanged, group=self.group_id, origin=origin, target=state, generation=self.generation_id)

    # --- rebalancing

    def prepare_or_complete_rebalance(self, ctx: HandlerContext, reason: str) -> CoordinatorResult:
        """Start a rebalance or, if one is in progress, complete its join phase if no member is missing any more."""
        return self.prepare_rebalance(ctx, reason) if self.can_rebalance else self.maybe_complete_join(ctx)

    def prepare_rebalance(self, ctx: HandlerContext, reason: str) -> CoordinatorResult:
        """Start a rebalance: all members must join again. An Empty group waits for an initial delay first (KIP-134)."""
        if self.state is GroupState.COMPLETING_REBALANCE:
            for member in self.members.values():
                member.assignment = b""
            self.answer_syncs(ctx, ErrorCode.REBALANCE_IN_PROGRESS)
        self.pending_sync_members.clear()
        self.timers.cancel(self.sync_key)

        initial = self.state is GroupState.EMPTY
        delay = self.config.group_initial_rebalance_delay_ms
        timeout = self.rebalance_timeout_ms
        ctx.emit(
            RebalanceStarted,
            group=self.group_id,
            generation=self.generation_id,
            reason=reason,
            waits_ms=delay if initial else timeout,
            initial=initial,
        )
        self.transition_to(ctx, GroupState.PREPARING_REBALANCE)
        if initial:
            self._schedule_initial(ctx, delay, max(timeout - delay, 0))
        elif self.all_joined:
            return self.complete_join(ctx)
        else:
            self._schedule_join(ctx)
        return EMPTY_RESULT

    def maybe_complete_join(self, ctx: HandlerContext) -> CoordinatorResult:
        """Complete the join phase if no member is missing; the initial delay is never shortened here."""
        if (
            self.state is GroupState.PREPARING_REBALANCE
            and self.previous_state is not GroupState.EMPTY
            and self.all_joined
        ):
            return self.complete_join(ctx)
        return EMPTY_RESULT

    def complete_join(self, ctx: HandlerContext) -> CoordinatorResult:
        """Complete the join phase: remove members that have not joined, and begin the next generation with the others.

        Raises UnexpectedBrokerError where Kafka fails with an exception. The group then stays in its join phase without a
        timer, until the next member joins or leaves.
        """
        self.timers.cancel(self.join_key)
        timeout = self.rebalance_timeout_ms
        for member in self.members.values():
            if member.parked_join is None and member.instance_id is None:
                reason = "it did not join again within the rebalance timeout"
                self.remove_member(ctx, member, reason, Departure.NOT_JOINED, timeout)
        if not self._has_joined_leader(ctx) and len(self.members):
            # Only static members that have not rejoined are left; they stay until their sessions expire.
            self._schedule_join(ctx)
            return EMPTY_RESULT
        self.generation_id += 1
        if not len(self.members):
            self.pending_sync_members.clear()
            self.protocol_name = None
            self.subscribed_topics = self.compute_subscribed_topics()
            if self.state is GroupState.EMPTY:
                raise UnexpectedBrokerError("the join phase that ended was that of an earlier group of this id")
            self.transition_to(ctx, GroupState.EMPTY)
            return CoordinatorResult(records=(self.metadata_record({}),), replay_records=False)
        try:
            self._begin_generation(ctx)
        except UnexpectedBrokerError as problem:
            ctx.emit(RebalanceStuck, group=self.group_id, generation=self.generation_id, why=problem.message)
            raise
        return EMPTY_RESULT

    def _begin_generation(self, ctx: HandlerContext) -> None:
        """Raises UnexpectedBrokerError."""
        votes = self.votes()
        self.protocol_name = self.select_protocol(votes)
        self.subscribed_topics = self.compute_subscribed_topics()
        self.pending_sync_members.clear()
        self.transition_to(ctx, GroupState.COMPLETING_REBALANCE)
        ctx.emit(
            GenerationStarted,
            group=self.group_id,
            generation=self.generation_id,
            protocol=self.protocol_name,
            votes=votes,
            leader=self.leader_id,
            members=tuple(self.members),
        )
        for member in self.members.values():
            if member.parked_join is not None:
                ctx.reply(member.parked_join, self.join_response(member))
                self.park_join(member, None)
            self.restart_session(ctx, member)
            member.is_new = False
            self.pending_sync_members.add(member.member_id)
        self._schedule_sync(ctx)

    def _has_joined_leader(self, ctx: HandlerContext) -> bool:
        """Has the leader joined? If not, the first member that has joined becomes leader."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None:
            return False
        if leader.parked_join is not None:
            return True
        for member in self.members.values():
            if member.parked_join is not None:
                self.leader_id = member.member_id
                reason = f"the leader before, {leader.member_id}, did not join again in time"
                ctx.emit(LeaderElected, group=self.group_id, leader=member.member_id, reason=reason)
                return True
        return False

    # --- answers

    def join_response(self, member: Member) -> JoinGroupResponse:
        """The JoinGroup response of ``member`` for the current generation; only the leader gets the members."""
        return JoinGroupResponse(
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name or None,  # null for an empty name (``JoinGroupResponse``)
            leader=self.leader_id or "",
            member_id=member.member_id,
            members=self.joined_members() if self.leader_id == member.member_id else (),
        )

    def joined_members(self) -> tuple[JoinGroupResponseMember, ...]:
        """Every member with its metadata for the chosen protocol, including static members that did not rejoin.

        Raises UnexpectedBrokerError.
        """
        return tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata_of(self.protocol_name),
            )
            for member in self.members.values()
        )

    def answer_syncs(self, ctx: HandlerContext, error: ErrorCode) -> None:
        """Answer every waiting SyncGroup, with the member's assignment or with ``error``.

        The session of each restarts: a member is not removed while its request waits.
        """
        for member in self.members.values():
            if member.parked_sync is None:
                continue
            ctx.reply(
                member.parked_sync,
                SyncGroupResponse(
                    error_code=error,
                    protocol_type=None if error else self.protocol_type,
                    protocol_name=None if error else self.protocol_name,
                    assignment=member.assignment,
                ),
            )
            member.parked_sync = None
            self.restart_session(ctx, member)

    # --- removing members

    def remove_member(
        self, ctx: HandlerContext, member: Member, reason: str, how: Departure, timeout_ms: int | None = None
    ) -> None:
        """Remove ``member`` and its session timer; if it was the leader, the first other member becomes leader. Emits both."""
        led = self.leader_id == member.member_id
        self.timers.cancel(member.session_key)
        self.discard_member(member)
        ctx.emit(
            MemberRemoved,
            group=self.group_id,
            member=member.member_id,
            reason=reason,
            how=how,
            timeout_ms=timeout_ms,
        )
        if led and self.leader_id is not None:
            reason = f"the leader before, {member.member_id}, is out"
            ctx.emit(LeaderElected, group=self.group_id, leader=self.leader_id, reason=reason)

    def remove_and_answer_member(
        self, ctx: HandlerContext, member: Member, reason: str, how: Departure, timeout_ms: int | None = None
    ) -> None:
        """Remove ``member``, and answer its waiting JoinGroup with UNKNOWN_MEMBER_ID, so that a live client joins again.

        Its waiting SyncGroup is never answered, as in Kafka (``removeCurrentMemberFromClassicGroup``).
        """
        if member.parked_join is not None:
            refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, leader="", member_id="", members=())
            ctx.reply(member.parked_join, refusal)
        self.remove_member(ctx, member, reason, how, timeout_ms)

    # --- timers

    def restart_session(self, ctx: HandlerContext, member: Member, timeout_ms: int | None = None) -> None:
        """Restart the session timer of ``member``, with its session timeout or ``timeout_ms``."""
        now_ms = ctx.now_ms
        length = member.session_timeout_ms if timeout_ms is None else timeout_ms
        if member.timed_ms == length and self.timers.postpone(member.session_key, now_ms + length):
            return  # the common case of a heartbeat
        member.timed_ms = length
        self.timers.schedule(
            member.session_key, now_ms + length, lambda due: self._session_expired(due, member, length)
        )

    def start_pending_session(self, ctx: HandlerContext, member_id: str, timeout_ms: int) -> None:
        """Start the timer within which the pending member ``member_id`` must join."""
        self.timers.schedule(
            self.session_key(member_id),
            ctx.now_ms + timeout_ms,
            lambda due: self._pending_session_expired(due, member_id, timeout_ms),
        )

    def _session_expired(self, ctx: HandlerContext, member: Member, timeout_ms: int) -> CoordinatorResult:
        """The session of ``member`` expired. It stays while a request of it waits: the response restarts the timer."""
        if member.has_satisfied_heartbeat:
            return EMPTY_RESULT
        what = "its first JoinGroup waited for" if member.is_new else "nothing was heard of it in its session of"
        reason = f"{what} {timeout_ms} ms"
        how = Departure.FIRST_JOIN_OVER if member.is_new else Departure.SESSION_OVER
        self.remove_and_answer_member(ctx, member, reason, how, timeout_ms)
        try:
            if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                return self.prepare_rebalance(ctx, f"member {member.member_id} is out: {reason}")
            return self._complete_join_if_all_joined(ctx)
        except UnexpectedBrokerError:
            return EMPTY_RESULT

    def _pending_session_expired(self, ctx: HandlerContext, member_id: str, timeout_ms: int) -> CoordinatorResult:
        """The pending member ``member_id`` did not join in time."""
        self.pending_join_members.discard(member_id)
        reason = f"it did not come back with its new id within {timeout_ms} ms"
        ctx.emit(
            MemberRemoved,
            group=self.group_id,
            member=member_id,
            reason=reason,
            how=Departure.NEVER_CAME_BACK,
            timeout_ms=timeout_ms,
        )
        try:
            return self._complete_join_if_all_joined(ctx)
        except UnexpectedBrokerError:
            return EMPTY_RESULT

    def _complete_join_if_all_joined(self, ctx: HandlerContext) -> CoordinatorResult:
        """Complete the join phase if all have joined; unlike a leave, an expired session even ends the initial delay early."""
        if self.state is GroupState.PREPARING_REBALANCE and self.all_joined:
            return self.complete_join(ctx)
        return EMPTY_RESULT

    def _schedule_join(self, ctx: HandlerContext) -> None:
        """Let the join phase end after the rebalance timeout.

        That is at least 1 ms from now: a timeout of 0, which is allowed, must not fire at the same time again.
        """
        self.timers.schedule(self.join_key, ctx.now_ms + max(self.rebalance_timeout_ms, 1), self._join_timed_out)

    def _join_timed_out(self, ctx: HandlerContext) -> CoordinatorResult:
        """As in Kafka, the timer is about the group of this id: this one may have become a consumer group, and that a classic
        group again, which loses its dynamic members then."""
        group = self.context.groups.get(self.group_id)
        if not isinstance(group, RebalancingGroup):
            return EMPTY_RESULT
        try:
            return group.complete_join(ctx)
        except UnexpectedBrokerError:
            return EMPTY_RESULT

    def _schedule_initial(self, ctx: HandlerContext, delay_ms: int, remaining_ms: int) -> None:
        """Schedule the initial delay; it is extended as long as members join, up to the rebalance timeout."""

        def slice_over(due: HandlerContext) -> CoordinatorResult:
            if not self.new_member_added or not remaining_ms:
                return self._join_timed_out(due)
            self.new_member_added = False
            next_delay = min(self.config.group_initial_rebalance_delay_ms, remaining_ms)
            next_remaining = max(remaining_ms - delay_ms, 0)
            due.emit(InitialDelayExtended, group=self.group_id, by_ms=next_delay, remaining_ms=next_remaining)
            self._schedule_initial(due, next_delay, next_remaining)
            return EMPTY_RESULT

        self.timers.schedule(self.join_key, ctx.now_ms + delay_ms, slice_over)

    def _schedule_sync(self, ctx: HandlerContext) -> None:
        """Schedule the removal of members that have not sent SyncGroup in time, including static ones.

        The timer is cancelled when no member is missing and when the next rebalance starts. If a missing static member was
        replaced under a new id, the timer still ends the generation, as in Kafka.
        """
        timeout = self.rebalance_timeout_ms

        def timed_out(due: HandlerContext) -> CoordinatorResult:
            names = ", ".join(sorted(self.pending_sync_members))
            for member in self.members.values():
                if member.member_id in self.pending_sync_members:
                    reason = f"it did not send SyncGroup within {timeout} ms"
                    self.remove_member(due, member, reason, Departure.NOT_SYNCED, timeout)
            return self.prepare_rebalance(due, f"{names} did not send SyncGroup within {timeout} ms")

        self.timers.schedule(self.sync_key, ctx.now_ms + timeout, timed_out)

    # --- records

    def empty_record(self) -> TypedRecord:
        """The record of a new group: generation 0, no type, no members."""
        value = GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp_ms=self._since()
        )
        return records.group_metadata(self.group_id, value)

    def metadata_record(self, assignments: Mapping[str, bytes]) -> TypedRecord:
        """The record of the group, its members with ``assignments`` (member id → bytes)."""
        members = tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.session_timeout_ms,
                subscription=member.metadata_of(self.protocol_name),
                assignment=assignments[member.member_id],
            )
            for member in self.members.values()
        )
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp_ms=self._since(),
            members=members,
        )
        return records.group_metadata(self.group_id, value)

    def _since(self) -> int:
        return -1 if self.state_since_ms is None else self.state_since_ms
