"""What a group of the coordinator looks like at any time."""

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.classic.states import GroupState
from groupcoord.testing.simulation.invariants.base import Invariant

_IN_A_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class OfGroup(Invariant):
    """Something about the group, as long as there is one."""

    def stepped(self) -> None:
        """Look at it."""
        group = self.scene.brokers.group
        if group is not None:
            self.look(group)

    def look(self, group: ClassicGroup) -> None:
        """Raises Broken."""
        raise NotImplementedError


class Leaders(OfGroup):
    """See ``promise``."""

    name = "leader-is-member"
    promise = (
        "A group with members has one of them as its leader; an empty one has none, and the state Empty means that."
    )

    def look(self, group: ClassicGroup) -> None:
        """Raises Broken."""
        ids = list(group.members)
        if ids and group.leader_id not in ids:
            raise self.broken(f"the leader is {group.leader_id}, the members are {', '.join(ids)}")
        if group.state is GroupState.EMPTY and ids:
            raise self.broken(f"the group is Empty and has the members {', '.join(ids)}")
        if group.state in _IN_A_GENERATION and not ids:
            raise self.broken(f"the group is {group.state} and has no members")


class Protocols(OfGroup):
    """See ``promise``."""

    name = "protocol-of-all"
    promise = "While a generation is there (CompletingRebalance, Stable), its assignor is one that every member offers."

    def look(self, group: ClassicGroup) -> None:
        """Raises Broken."""
        if group.state not in _IN_A_GENERATION:
            return
        for member in group.members.unordered_values():
            if group.protocol_name not in member.protocol_names:
                offers = ", ".join(member.protocol_names)
                raise self.broken(f"the protocol is {group.protocol_name}; {member.member_id} offers {offers}")


class Instances(OfGroup):
    """See ``promise``."""

    name = "one-per-instance"
    promise = "Of each instance id there is one member at most, and the group knows which (KIP-345)."

    def look(self, group: ClassicGroup) -> None:
        """Raises Broken."""
        members = group.members.unordered_values()
        static = [(member.instance_id, member.member_id) for member in members if member.instance_id is not None]
        if sorted(static) != sorted(group.static_members.items()):
            raise self.broken(f"members with an instance id are {static}, known as such are {group.static_members}")


class Deadlines(Invariant):
    """See ``promise``."""

    name = "deadlines-fit"
    promise = (
        "No deadline outlives what it is for, and nothing is waited for without one: a join timer is set in PreparingRebalance "
        "and only then; a sync timer while somebody has to send SyncGroup; a session timer for each member that has no request "
        "waiting, for whoever was handed an id, and for nobody else."
    )

    def stepped(self) -> None:
        """Look at it. Raises Broken."""
        timers = self.scene.brokers.node.coordinator.timers
        group = self.scene.brokers.group
        sessions = {at.key.subject for at in timers.pending() if at.key.kind == "session"}
        if group is None:
            kinds = {at.key.kind for at in timers.pending()} - {"retention"}
            if kinds - {"append"}:
                raise self.broken(f"there is no group, and deadlines of it are left: {', '.join(sorted(kinds))}")
            return
        preparing = group.state is GroupState.PREPARING_REBALANCE
        if (group.join_key in timers) != preparing:
            there = "no join timer" if preparing else "a join timer"
            raise self.broken(f"the group is {group.state} and has {there}")
        syncs_missing = group.state in _IN_A_GENERATION and bool(group.pending_sync_members)
        if (group.sync_key in timers) != syncs_missing:
            there = "no sync timer" if syncs_missing else "a sync timer"
            raise self.broken(f"{len(group.pending_sync_members)} SyncGroups are missing, and there is {there}")
        strangers = sessions - set(group.members) - group.pending_join_members
        if strangers:
            raise self.broken(f"there are sessions of {', '.join(sorted(strangers))}, who are not in the group")
        for member in group.members.unordered_values():
            if member.member_id not in sessions and not member.has_satisfied_heartbeat:
                raise self.broken(f"{member.member_id} has no session timer and no request that waits")
        if missing := group.pending_join_members - sessions:
            raise self.broken(f"{', '.join(sorted(missing))} may come back with that id for ever")
