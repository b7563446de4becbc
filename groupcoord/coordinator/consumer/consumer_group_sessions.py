"""The session, rebalance, join and sync timers of members of a consumer group, and the removal of members.

Sources: ``GroupMetadataManager``: ``scheduleConsumerGroupSessionTimeout`` and its neighbours, ``consumerGroupFenceMembers``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from groupcoord.coordinator.consumer import migration, records
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import ConsumerGroupTables
from groupcoord.coordinator.consumer.member import ConsumerMember, MemberState
from groupcoord.coordinator.events import Departure, GroupEpochBumped, GroupRemoved, MemberRemoved
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.core.timers import TimerKey

SESSION, REBALANCE, JOIN, SYNC = "session", "rebalance", "member-join", "member-sync"
"""The kinds of member timers. ``rebalance`` runs while the member must revoke partitions (KIP-848); the last two limit the time
in which a member of the classic protocol must send JoinGroup and SyncGroup."""

_KINDS = (SESSION, REBALANCE, JOIN, SYNC)


class ConsumerGroupSessions(ConsumerGroupTables):
    """A consumer group with member timers."""

    # --- timers

    def restart_session(self, ctx: HandlerContext, member: ConsumerMember) -> None:
        """Restart the session timer of the member."""
        timeout_ms = member.session_timeout_ms
        if timeout_ms is None:
            timeout_ms = self.context.config_of(self.group_id).session_timeout_ms
        key = TimerKey(SESSION, self.group_id, member.member_id)
        at_ms = ctx.now_ms + timeout_ms
        if not self.context.timers.postpone(key, at_ms):
            why = "its session timed out"
            self._remove_at(key, at_ms, timeout_ms, why, Departure.SESSION_OVER)

    def start_revocation_timer(self, ctx: HandlerContext, member: ConsumerMember) -> None:
        """Start the rebalance timer, within which the member must revoke its partitions and leave its epoch."""
        key = TimerKey(REBALANCE, self.group_id, member.member_id)
        epoch, timeout_ms = member.member_epoch, member.rebalance_timeout_ms
        self._remove_at(
            key,
            ctx.now_ms + timeout_ms,
            timeout_ms,
            f"it did not give back within {timeout_ms} ms what it has to, and is still at epoch {epoch}",
            Departure.NOT_REVOKED,
            lambda now: now.member_epoch == epoch,
        )

    def start_join_timer(self, ctx: HandlerContext, member: ConsumerMember) -> None:
        """Start the timer within which a classic member must rejoin; a running timer is not restarted."""
        key = TimerKey(JOIN, self.group_id, member.member_id)
        if key not in self.context.timers:
            timeout_ms = member.rebalance_timeout_ms
            why = f"it did not join again within {timeout_ms} ms"
            self._remove_at(key, ctx.now_ms + timeout_ms, timeout_ms, why, Departure.NOT_JOINED)

    def start_sync_timer(self, ctx: HandlerContext, member_id: str, timeout_ms: int) -> None:
        """Start the timer within which a classic member that has joined must send SyncGroup."""
        key = TimerKey(SYNC, self.group_id, member_id)
        why = f"it did not send SyncGroup within {timeout_ms} ms"
        self._remove_at(key, ctx.now_ms + timeout_ms, timeout_ms, why, Departure.NOT_SYNCED)

    def cancel_timer(self, kind: str, member_id: str) -> None:
        """Cancel a timer of a member."""
        self.context.timers.cancel(TimerKey(kind, self.group_id, member_id))

    def _remove_at(
        self,
        key: TimerKey,
        at_ms: int,
        timeout_ms: int,
        why: str,
        how: Departure,
        holds: Callable[[ConsumerMember], bool] = lambda _: True,
    ) -> None:
        def expire(ctx: HandlerContext) -> CoordinatorResult:
            # The group may have been deleted or replaced by another of the same name.
            group = self.context.groups.get(self.group_id)
            member = group.members.get(key.subject) if isinstance(group, ConsumerGroupSessions) else None
            if member is None or not isinstance(group, ConsumerGroupSessions) or not holds(member):
                return EMPTY_RESULT
            return group.remove(ctx, [member], why, how, timeout_ms=timeout_ms)

        self.context.timers.schedule(key, at_ms, expire, retries=True)

    # --- removal

    def remove(
        self,
        ctx: HandlerContext,
        members: Sequence[ConsumerMember],
        reason: str,
        how: Departure,
        *,
        response: Any = None,
        timeout_ms: int | None = None,
    ) -> CoordinatorResult:
        """Remove ``members`` because of ``reason``, and bump the group epoch.

        If only members of the classic protocol are left, it becomes a classic group, if the migration policy allows.
        """
        if not members:
            return CoordinatorResult(response=response)

        def emit(later: HandlerContext) -> None:
            for member in members:
                later.emit(
                    MemberRemoved,
                    group=self.group_id,
                    member=member.member_id,
                    reason=reason,
                    how=how,
                    timeout_ms=timeout_ms,
                )

        if migration.can_downgrade_without(self, members):
            emit(ctx)
            return migration.downgrade(ctx, self, leaving=members, rebalance_because=reason, response=response)
        written: list[TypedRecord] = []
        for member in members:
            written += self.removal(member.member_id)
        gone = self._unused_regexes(members)
        written += [records.regex_tombstone(self.group_id, regex) for regex in gone]
        counts = self.counts.copy()
        for member in members:
            counts.add(member, -1)
        for regex in gone:
            resolved = self.regexes.get(regex)
            if resolved is not None:
                counts.add_matches(resolved, -1)
        epoch = self.epochs.group + 1
        metadata_hash = self.context.topics.group_hash(counts.topics())
        self.resubscribed(metadata_hash)
        written.append(records.group_epoch(self.group_id, epoch, metadata_hash))
        for member in members:
            self.cancel_timers_of(member.member_id)

        def stored(later: HandlerContext) -> None:
            emit(later)
            names = ", ".join(member.member_id for member in members)
            later.emit(GroupEpochBumped, group=self.group_id, epoch=epoch, reason=f"{names} is out: {reason}")

        return CoordinatorResult(response=response, records=written, stored=stored)

    def removal(self, member_id: str) -> list[TypedRecord]:
        """The records that remove a member."""
        return [
            records.current_assignment_tombstone(self.group_id, member_id),
            records.target_assignment_tombstone(self.group_id, member_id),
            records.member_tombstone(self.group_id, member_id),
        ]

    def _unused_regexes(self, without: Sequence[ConsumerMember]) -> list[str]:
        """The regular expressions that no member has any more."""
        counts = Counter(member.topic_regex for member in without if member.topic_regex)
        return [regex for regex, count in counts.items() if self.counts.regexes.get(regex) == count]

    def cancel_timers_of(self, member_id: str) -> None:
        """Cancel all timers of a member."""
        for kind in _KINDS:
            self.cancel_timer(kind, member_id)

    def cancel_timers(self) -> None:
        """See Group."""
        for member in self.members.values():
            self.cancel_timers_of(member.member_id)

    # --- loading and the end

    def on_loaded(self, ctx: HandlerContext) -> None:
        """See Group. The session of every member starts now, with the timeout of the group."""
        timeout_ms = self.context.config_of(self.group_id).session_timeout_ms
        for _, member in self.members.in_order():
            key = TimerKey(SESSION, self.group_id, member.member_id)
            self._remove_at(key, ctx.now_ms + timeout_ms, timeout_ms, "its session timed out", Departure.SESSION_OVER)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.start_revocation_timer(ctx, member)

    def on_restored(self, ctx: HandlerContext) -> None:
        """See Group."""
        for member in self.members.values():
            self.restart_session(ctx, member)
            if member.state is MemberState.UNREVOKED_PARTITIONS and not member.is_classic:
                self.start_revocation_timer(ctx, member)

    def on_unloaded(self, ctx: HandlerContext) -> None:
        """See Group; no request waits for others here."""

    def on_removed(self, ctx: HandlerContext, reason: str) -> None:
        """See Group."""
        ctx.emit(GroupRemoved, group=self.group_id, reason=reason)
