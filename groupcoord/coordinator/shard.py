"""One partition of ``__consumer_offsets`` and everything that is coordinated through it: its groups and their offsets.

Source: ``GroupCoordinatorShard`` and ``CoordinatorRuntime``. A request changes groups and offsets at once; what it promises to
keep, it stores; the answer that depends on the storing waits for it. Who only reads sees what is stored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.events import (
    Departure,
    GroupCreated,
    GroupRemoved,
    LeaderElected,
    MemberRemoved,
    StateChanged,
)
from groupcoord.coordinator.offset_store import CommittedOffset, OffsetStore
from groupcoord.coordinator.pending_appends import Failed, PendingAppends, Stored, Waiter
from groupcoord.coordinator.uncommitted import CommittedView, Place, Uncommitted
from groupcoord.core.effects import Effect, LogRecord
from groupcoord.core.handler_context import HandlerContext
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.protocol.errors import ErrorCode

SessionOver = Callable[["Shard", HandlerContext, ClassicGroup, Member, int], None]
PendingOver = Callable[["Shard", HandlerContext, ClassicGroup, str, int], None]


class Shard:
    """The groups of one partition. ``new_uuid`` makes the random part of member ids; ``next_append_id`` numbers appends.

    ``session_over`` and ``pending_over`` are what to do when a session timer fires (see classic/expiry.py).
    """

    def __init__(
        self,
        partition: int,
        config: CoordinatorConfig,
        timers: Timers,
        new_uuid: Callable[[], str],
        next_append_id: Callable[[], int],
        session_over: "SessionOver",
        pending_over: "PendingOver",
    ) -> None:
        self.partition = partition
        self.config = config
        self.timers = timers
        self.new_uuid = new_uuid
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = OffsetStore()
        self.session_over = session_over
        self.pending_over = pending_over
        self._next_append_id = next_append_id
        self._appends = PendingAppends(partition, timers, config.offsets_commit_timeout_ms)

    def __repr__(self) -> str:
        return f"<Shard {self.partition} groups={len(self.groups)} pending={len(self._appends)}>"

    # --- groups

    def create_group(self, ctx: HandlerContext, group_id: str, *, simple: bool = False) -> ClassicGroup:
        """A new empty group."""
        group = self.groups[group_id] = ClassicGroup(group_id, ctx.now_ms)
        ctx.emit(GroupCreated, group=group_id, simple=simple)
        return group

    def drop_group(self, ctx: HandlerContext, group: ClassicGroup, reason: str) -> None:
        """Forget ``group`` and every deadline that has to do with it. What still waits for an append finds it dead."""
        del self.groups[group.group_id]
        self.timers.cancel(group.join_key)
        self.timers.cancel(group.sync_key)
        self.end_group(ctx, group, reason)

    def end_group(self, ctx: HandlerContext, group: ClassicGroup, reason: str) -> None:
        """``group``, an empty one, is gone and its tombstone is stored; another one may have its name by now."""
        group.move_to(GroupState.DEAD, ctx.now_ms)
        for member_id in (*group.members, *group.pending_join_members):
            self.timers.cancel(group.session_key(member_id))
        ctx.emit(GroupRemoved, group=group.group_id, reason=reason)

    def move(self, ctx: HandlerContext, group: ClassicGroup, state: GroupState) -> None:
        """Change the state of ``group``, and say so."""
        origin = group.state
        group.move_to(state, ctx.now_ms)
        ctx.emit(StateChanged, group=group.group_id, origin=origin, target=state, generation=group.generation_id)

    def remove_member(
        self,
        ctx: HandlerContext,
        group: ClassicGroup,
        member: Member,
        reason: str,
        how: Departure,
        timeout_ms: int | None = None,
    ) -> None:
        """Let ``member`` go, and its session timer; if it led, the first of the others leads. Says both."""
        led = group.leader_id == member.member_id
        self.timers.cancel(member.session_key)
        group.remove(member)
        ctx.emit(
            MemberRemoved,
            group=group.group_id,
            member=member.member_id,
            reason=reason,
            how=how,
            timeout_ms=timeout_ms,
        )
        if led and group.leader_id is not None:
            reason = f"the leader before, {member.member_id}, is out"
            ctx.emit(LeaderElected, group=group.group_id, leader=group.leader_id, reason=reason)

    def cancel(self, key: TimerKey) -> None:
        """Forget a timer, if there is one."""
        self.timers.cancel(key)

    # --- storing

    @property
    def is_idle(self) -> bool:
        """Is no append of this partition on its way?"""
        return not self._appends

    @property
    def committed(self) -> CommittedView:
        """What a read may see: nothing that an append changed which is still on its way."""
        return CommittedView(self.groups, self.offsets, self._appends.before() if self._appends else ())

    @property
    def latest(self) -> CommittedView:
        """What there will be once every append on its way is stored."""
        return CommittedView(self.groups, self.offsets, ())

    def store(
        self,
        ctx: HandlerContext,
        records: tuple[LogRecord, ...],
        stored: Stored,
        failed: Failed,
        *,
        offsets: Mapping[Place, CommittedOffset | None] | None = None,
        created: ClassicGroup | None = None,
        removed: Sequence[ClassicGroup] = (),
    ) -> None:
        """Append ``records``, then call ``stored``; or ``failed``, with the error of the append, or with REQUEST_TIMED_OUT if
        it takes longer than ``offsets.commit.timeout.ms``.

        What the records say of ``offsets`` (None: a tombstone) and of groups, ``created`` before or ``removed`` now, is so at
        once. It is undone if the append fails; not so if it only takes long, because then it may still be stored.

        Without records there is nothing to wait for but what is already on its way: an answer does not overtake the
        appends of its partition that were there before it.
        """
        if records:
            append_id = self._next_append_id()
            before = self._appends.add(append_id, ctx.origin).before
            if offsets:
                before.put_offsets(self.offsets, offsets)
            if created is not None:
                before.groups[created.group_id] = None
            for group in removed:
                before.groups[group.group_id] = self.groups.pop(group.group_id)
            self._appends.wait(ctx, stored, failed)
            ctx.append(append_id, self.partition, records)
        elif self._appends:
            self._appends.wait(ctx, stored, failed)
        else:
            stored(ctx)

    def awaits(self, append_id: int) -> bool:
        """Is that append still on its way, as far as the shard is concerned?"""
        return append_id in self._appends

    def append_held(self, append_id: int, now_ms: int) -> None:
        """The append will take its time: whoever waits for it, now or later, is told REQUEST_TIMED_OUT if it is too long."""
        self._appends.hold(append_id, now_ms)

    def appended(self, append_id: int, now_ms: int) -> list[Effect]:
        """The append is stored: do what waited for it. Appends are stored in the order in which they were made."""
        effects: list[Effect] = []
        for waiter in self._appends.take(append_id):
            ctx = HandlerContext(now_ms, waiter.origin)
            waiter.stored(ctx)
            effects += ctx.effects
        return effects

    def append_failed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The append failed with ``error``, and with it those behind it and whoever waited: as if they had never been.

        So it is in Kafka, where all of them are one batch (``CoordinatorContext.failCurrentBatch``).
        """
        failed, waiters = self._appends.take_all_from(append_id)
        effects: list[Effect] = []
        for append in failed:
            ctx = HandlerContext(now_ms, append.origin)
            self._revert(ctx, append.before, error)
            effects += ctx.effects
        return effects + _tell(waiters, error, now_ms)

    def give_up(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The log is somebody else's or nobody's: whoever waits for an append is told ``error``."""
        return _tell(self._appends.take_all(), error, now_ms)

    def _revert(self, ctx: HandlerContext, before: Uncommitted, error: ErrorCode) -> None:
        before.revert_offsets(self.offsets)
        for group_id, group in before.groups.items():
            if group is None:
                self.drop_group(ctx, self.groups[group_id], f"its first record could not be stored: {error.name}")
            else:
                self.groups[group_id] = group


def _tell(waiters: Iterable[Waiter], error: ErrorCode, now_ms: int) -> list[Effect]:
    effects: list[Effect] = []
    for waiter in waiters:
        ctx = HandlerContext(now_ms, waiter.origin)
        waiter.failed(ctx, error)
        effects += ctx.effects
    return effects
