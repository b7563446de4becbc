"""Invariants of the group as the coordinator has it, at any time and after reading its log."""

from typing import Any

from groupcoord.cluster.append_gate import STORE, AppendDecision
from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.coordinator.events import GroupRemoved, StateChanged, StaticMemberReplaced
from groupcoord.core.events import Event
from groupcoord.simulation.invariants.base import Invariant

EMPTIED = "it has neither members nor offsets"
"""The reason of GroupRemoved when the coordinator deletes an empty group, with its generation."""

_IN_A_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class GroupInvariant(Invariant):
    """An invariant of the group, if there is one."""

    def step_done(self) -> None:
        """Check the group."""
        group = self.context.brokers.group
        if group is not None:
            self.check(group)

    def check(self, group: ClassicGroup) -> None:
        """Raises InvariantViolation."""
        raise NotImplementedError


class LeaderIsMember(GroupInvariant):
    """See ``statement``."""

    name = "leader-is-member"
    statement = (
        "A group with members has one of them as its leader. An Empty group has no members; in CompletingRebalance and Stable "
        "a group has members."
    )

    def check(self, group: ClassicGroup) -> None:
        """Raises InvariantViolation."""
        ids = list(group.members)
        if ids and group.leader_id not in ids:
            raise self.violation(f"the leader is {group.leader_id}, the members are {', '.join(ids)}")
        if group.state is GroupState.EMPTY and ids:
            raise self.violation(f"the group is Empty and has the members {', '.join(ids)}")
        if group.state in _IN_A_GENERATION and not ids:
            raise self.violation(f"the group is {group.state} and has no members")


class CommonProtocol(GroupInvariant):
    """See ``statement``."""

    name = "common-protocol"
    statement = "In CompletingRebalance and Stable, every member supports the assignor of the group."

    def check(self, group: ClassicGroup) -> None:
        """Raises InvariantViolation."""
        if group.state not in _IN_A_GENERATION:
            return
        for member in group.members.unordered_values():
            if group.protocol_name not in member.protocol_names:
                supported = ", ".join(member.protocol_names)
                raise self.violation(f"the protocol is {group.protocol_name}; {member.member_id} supports {supported}")


class UniqueInstanceIds(GroupInvariant):
    """See ``statement``."""

    name = "unique-instance-ids"
    statement = "An instance id has at most one member, and the group knows which (KIP-345)."

    def check(self, group: ClassicGroup) -> None:
        """Raises InvariantViolation."""
        members = group.members.unordered_values()
        static = [(member.instance_id, member.member_id) for member in members if member.instance_id is not None]
        if sorted(static) != sorted(group.static_members.items()):
            raise self.violation(f"members with an instance id are {static}, known as such are {group.static_members}")


class TimersMatchState(Invariant):
    """See ``statement``."""

    name = "timers-match-state"
    statement = (
        "There is a join timer in PreparingRebalance and only then; a sync timer while a SyncGroup is missing; a session timer "
        "of each member that has no request waiting and of each member id that was handed out for a second JoinGroup, and "
        "of nothing else. Without a group there is none of them."
    )

    def step_done(self) -> None:
        """Raises InvariantViolation."""
        timers = self.context.brokers.cluster.coordinator.timers
        group = self.context.brokers.group
        sessions = {at.key.subject for at in timers.pending() if at.key.kind == "session"}
        if group is None:
            kinds = {at.key.kind for at in timers.pending()} - {"retention"}
            if kinds - {"append"}:
                raise self.violation(f"there is no group, but it has timers: {', '.join(sorted(kinds))}")
            return
        preparing = group.state is GroupState.PREPARING_REBALANCE
        if (group.join_key in timers) != preparing:
            raise self.violation(f"the group is {group.state} and has {'no' if preparing else 'a'} join timer")
        syncs_missing = group.state in _IN_A_GENERATION and bool(group.pending_sync_members)
        if (group.sync_key in timers) != syncs_missing:
            there = "no sync timer" if syncs_missing else "a sync timer"
            raise self.violation(f"{len(group.pending_sync_members)} SyncGroups are missing, and there is {there}")
        unknown = sessions - set(group.members) - group.pending_join_members
        if unknown:
            raise self.violation(f"there are session timers of {', '.join(sorted(unknown))}, not members of the group")
        for member in group.members.unordered_values():
            if member.member_id not in sessions and not member.has_satisfied_heartbeat:
                raise self.violation(f"{member.member_id} has no session timer and no request that waits")
        if missing := group.pending_join_members - sessions:
            raise self.violation(
                f"{', '.join(sorted(missing))} may join with that id for ever: it has no session timer"
            )


class MonotonicGenerations(Invariant):
    """See ``statement``."""

    name = "generations-grow"
    statement = (
        "The generation of a group never decreases, except that a coordinator that has moved goes back to the last generation "
        "whose assignment was stored. A group without members and offsets is deleted, and starts anew."
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest = 0
        self._stored = 0

    def event_emitted(self, event: Event) -> None:
        """Follow which generation is stored."""
        if isinstance(event, StateChanged) and event.target == GroupState.STABLE:
            self._stored = max(self._stored, event.generation)
        elif isinstance(event, GroupRemoved):
            if event.reason == EMPTIED:
                self._stored = 0
            self._latest = self._stored

    def step_done(self) -> None:
        """Raises InvariantViolation."""
        group = self.context.brokers.group
        if group is None:
            return
        if group.generation_id < self._latest:
            raise self.violation(f"the generation is {group.generation_id}, and it was {self._latest} before")
        self._latest = group.generation_id


_VIEW_PARTS = ("state", "generation", "protocol type", "protocol", "leader", "members")


def _view(group: ClassicGroup) -> tuple[object, ...]:
    """All state of a Stable or Empty group that must be in the log."""
    members = tuple(
        (
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata_of(group.protocol_name),
            member.assignment,
        )
        for member in group.members.values()
    )
    return group.state, group.generation_id, group.protocol_type, group.protocol_name, group.leader_id, members


class ReplayMatchesState(Invariant):
    """See ``statement``."""

    name = "replay-matches-state"
    statement = (
        "A coordinator that reads its log has the state that it had when the group was last stored: state, generation, "
        "protocol, leader and all of each member. Requests under way when it resigned are lost, as in Kafka."
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stored: tuple[object, ...] | None = None
        self._all_stored = True
        self._changed = False
        self._expected: tuple[object, ...] | None = None

    def append_decided(self, decision: AppendDecision) -> None:
        """Without a record that is stored at once, the stored state is not known."""
        self._all_stored &= decision == STORE

    def event_emitted(self, event: Event) -> None:
        """Notice the events that store the group."""
        match event:
            case StateChanged(target=GroupState.STABLE | GroupState.EMPTY) | StaticMemberReplaced(rebalances=False):
                self._changed = True
            case GroupRemoved():
                self._stored = None
            case _:
                pass

    def step_done(self) -> None:
        """Remember the stored state."""
        if self._changed:
            group = self.context.brokers.group
            stable = group is not None and group.state in (GroupState.STABLE, GroupState.EMPTY)
            self._stored = _view(group) if group is not None and stable and self._all_stored else None
        self._changed, self._all_stored = False, True

    def coordinator_unloading(self) -> None:
        """The stored state is expected again."""
        self._expected = self._stored

    def coordinator_loaded(self) -> None:
        """Raises InvariantViolation."""
        expected, group = self._expected, self.context.brokers.group
        if expected is None:
            return
        if group is None:
            raise self.violation("the group is not there any more")
        self._stored = found = _view(group)
        for part, before, after in zip(_VIEW_PARTS, expected, found, strict=True):
            if before != after:
                raise self.violation(f"{part}: it was {before}, the log says {after}")
