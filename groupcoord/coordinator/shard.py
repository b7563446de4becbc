"""One partition of ``__consumer_offsets`` and everything that is coordinated through it: its groups and their offsets.

Source: ``GroupCoordinatorShard`` and ``CoordinatorRuntime``. A request changes a group at once; what it promises to keep, it
stores; the answer that depends on the storing waits for it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.member import Member
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.config import CoordinatorConfig
from groupcoord.coordinator.events import GroupCreated, GroupRemoved, LeaderElected, MemberRemoved, StateChanged
from groupcoord.coordinator.offset_store import OffsetStore
from groupcoord.core.effects import Call, Effect, LogRecord
from groupcoord.core.events import Cause
from groupcoord.core.timers import TimerKey, Timers
from groupcoord.core.turn import Turn
from groupcoord.protocol.errors import ErrorCode

Stored = Callable[[Turn], None]
Failed = Callable[[Turn, ErrorCode], None]
SessionOver = Callable[["Shard", Turn, ClassicGroup, Member, int], None]
PendingOver = Callable[["Shard", Turn, ClassicGroup, str, int], None]


@dataclass(slots=True)
class PendingAppend:
    """What waits for one append, and what it came of; the first pair belongs to it, the others must not overtake it."""

    origin: Call | Cause
    waiting: list[tuple[Stored, Failed]]


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
        self._pending: dict[int, PendingAppend] = {}
        self._order: deque[int] = deque()

    def __repr__(self) -> str:
        return f"<Shard {self.partition} groups={len(self.groups)} pending={len(self._pending)}>"

    # --- groups

    def create_group(self, turn: Turn, group_id: str, *, simple: bool = False) -> ClassicGroup:
        """A new empty group."""
        group = self.groups[group_id] = ClassicGroup(group_id, turn.now_ms)
        turn.note(GroupCreated, group=group_id, simple=simple)
        return group

    def drop_group(self, turn: Turn, group: ClassicGroup, reason: str) -> None:
        """Forget ``group`` and every deadline that has to do with it. What still waits for an append finds it dead."""
        del self.groups[group.group_id]
        group.move_to(GroupState.DEAD, turn.now_ms)
        self.timers.cancel(group.join_key)
        self.timers.cancel(group.sync_key)
        for member_id in (*group.members, *group.pending_join_members):
            self.timers.cancel(group.session_key(member_id))
        turn.note(GroupRemoved, group=group.group_id, reason=reason)

    def move(self, turn: Turn, group: ClassicGroup, state: GroupState) -> None:
        """Change the state of ``group``, and say so."""
        origin = group.state
        group.move_to(state, turn.now_ms)
        turn.note(StateChanged, group=group.group_id, origin=origin, target=state, generation=group.generation_id)

    def remove_member(self, turn: Turn, group: ClassicGroup, member: Member, reason: str) -> None:
        """Let ``member`` go, and its session timer; if it led, the first of the others leads. Says both."""
        led = group.leader_id == member.member_id
        self.timers.cancel(member.session_key)
        group.remove(member)
        turn.note(MemberRemoved, group=group.group_id, member=member.member_id, reason=reason)
        if led and group.leader_id is not None:
            reason = f"the leader before, {member.member_id}, is out"
            turn.note(LeaderElected, group=group.group_id, leader=group.leader_id, reason=reason)

    def cancel(self, key: TimerKey) -> None:
        """Forget a timer, if there is one."""
        self.timers.cancel(key)

    # --- storing

    @property
    def is_idle(self) -> bool:
        """Is no append of this partition on its way?"""
        return not self._order

    def store(self, turn: Turn, records: tuple[LogRecord, ...], stored: Stored, failed: Failed) -> None:
        """Append ``records``, then call ``stored``; or ``failed``, with the error of the append.

        Without records there is nothing to wait for but what is already on its way: an answer does not overtake the
        appends of its partition that were there before it.
        """
        if records:
            append_id = self._next_append_id()
            self._pending[append_id] = PendingAppend(turn.origin, [(stored, failed)])
            self._order.append(append_id)
            turn.append(append_id, self.partition, records)
        elif self._order:
            self._pending[self._order[-1]].waiting.append((stored, failed))
        else:
            stored(turn)

    def appended(self, append_id: int, now_ms: int) -> list[Effect]:
        """The append is stored: do what waited for it."""
        turn, waiting = self._take(append_id, now_ms)
        for stored, _ in waiting:
            stored(turn)
        return turn.effects

    def append_failed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """The append failed with ``error``, and with it what waited behind it, as in ``CoordinatorRuntime``."""
        turn, waiting = self._take(append_id, now_ms)
        for _, failed in waiting:
            failed(turn, error)
        return turn.effects

    def _take(self, append_id: int, now_ms: int) -> tuple[Turn, list[tuple[Stored, Failed]]]:
        self._order.remove(append_id)
        pending = self._pending.pop(append_id)
        return Turn(now_ms, pending.origin), pending.waiting
