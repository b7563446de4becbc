"""The invariants of every group, checked after every step."""

import uuid
from collections import Counter
from typing import TYPE_CHECKING

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.consumer.member_aggregates import MemberIndex
from groupcoord.coordinator.events import GroupMigrated, RebalanceStuck
from groupcoord.core.effects import Call
from groupcoord.protocol.apis import ApiKey

if TYPE_CHECKING:
    from tests.coordinator.world import World

REBALANCING = (GroupState.PREPARING_REBALANCE,)
WITH_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class Watch:
    """Looks at a world after each step and remembers what it has to compare."""

    def __init__(self) -> None:
        self._generations: dict[ClassicGroup, int] = {}
        self._parked: dict[Call, tuple[ClassicGroup, str]] = {}
        self._consumer_groups: set[str] = set()

    def look(self, world: "World") -> None:
        """Raises AssertionError if something is not as it always is."""
        groups = [
            group
            for machine in world.coordinator.runtime.machines()
            for group in machine.groups.values()
            if isinstance(group, ClassicGroup)
        ]
        for group in groups:
            self._look_at(world, group)
        for each in consumer_groups(world):
            self._consumer_groups.add(each.group_id)
            index_is_right(each)
            nobody_shares(each)
        _no_stray_deadlines(world, {group.group_id: group for group in groups}, self._consumer_groups)
        self._nothing_lost(world, groups)

    def _look_at(self, world: "World", group: ClassicGroup) -> None:
        members = group.members.values()
        assert group.generation_id >= self._generations.get(group, 0), "a generation never goes back"
        self._generations[group] = group.generation_id
        assert group.awaiting_join == sum(member.parked_join is not None for member in members)
        recount = Counter(name for member in members for name, _ in member.protocols)
        assert group.supported_protocols == recount
        assert group.static_members == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
        assert [member.member_id for member in members] == list(group.members)
        assert (group.leader_id in group.members) if members else (group.leader_id is None)
        assert not group.pending_join_members & set(group.members)
        # A group that got stuck has lost its timer, or has it all told and not heard.
        stuck = any(event.group == group.group_id for event in world.seen(RebalanceStuck))
        assert bool(members) or group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
        assert not (members and group.state is GroupState.EMPTY)
        timers = world.coordinator.timers
        for member in members:
            # A timer that fires while a request is parked is dropped; the answer starts it again.
            assert member.session_key in timers or member.has_satisfied_heartbeat
            assert member.parked_sync is None or group.state is GroupState.COMPLETING_REBALANCE
            if member.parked_join is not None and not world.held and not stuck:
                assert group.state is GroupState.PREPARING_REBALANCE
        # The timer of a join phase outlives changes of the group's type, and acts on the classic group of this id.
        preparing = group.state is GroupState.PREPARING_REBALANCE
        assert group.join_key not in timers or preparing or world.seen(GroupMigrated)
        assert group.sync_key not in timers or group.pending_sync_members
        if not stuck:
            assert group.join_key in timers or not preparing
            assert (group.sync_key in timers) == bool(group.pending_sync_members)
        assert not group.pending_sync_members or group.state in WITH_GENERATION
        for member_id in group.pending_join_members:
            assert group.session_key(member_id) in timers

    def _nothing_lost(self, world: "World", groups: list[ClassicGroup]) -> None:
        """Every call is answered, or parked, or waits for the log, or was given up as Kafka gives it up."""
        now_parked = {
            call: (group, member.member_id)
            for group in groups
            for member in group.members.values()
            for call in (member.parked_join, member.parked_sync)
            if call is not None
        }
        self._parked |= now_parked
        for asked in world.asked:
            call = asked.call
            if asked.replies:
                assert call not in now_parked, "answered and still parked"
                self._parked.pop(call, None)
            elif call not in now_parked and call not in world.unverified and not world.held:
                assert call in self._parked, f"{call.api.name} got no answer and nobody knows of it"
                group, member_id = self._parked[call]
                superseded = any(
                    later.call.correlation_id > call.correlation_id
                    and later.call.api is call.api
                    and later.request.member_id == member_id
                    for later in world.asked
                )
                removed_in_sync = call.api.key == ApiKey.SYNC_GROUP and member_id not in group.members
                assert superseded or removed_in_sync, f"{call.api.name} of {member_id} was lost"


def consumer_groups(world: "World") -> list[ConsumerGroup]:
    """All of them."""
    machines = world.coordinator.runtime.machines()
    return [group for machine in machines for group in machine.groups.values() if isinstance(group, ConsumerGroup)]


def index_is_right(group: ConsumerGroup) -> None:
    """What follows from the members is what an index that is built anew has."""
    anew = MemberIndex()
    for member in group.members.values():
        anew.add(member)
    for resolved in group.regexes.values():
        anew.counts.add_matches(resolved)
    index = group.index
    assert index.counts == anew.counts
    assert dict(index.assignors) == dict(anew.assignors)
    assert anew.static.items() <= index.static.items()  # earlier instance ids of a member stay
    assert (index.stable_at, index.classic) == (anew.stable_at, anew.classic)
    assert +index.protocols == +anew.protocols
    assert index.partition_epochs == anew.partition_epochs


def nobody_shares(group: ConsumerGroup) -> None:
    """No partition has two owners, and an epoch of a partition is one that its owner has been at."""
    seen: set[tuple[uuid.UUID, int]] = set()
    for member in group.members.values():
        for assigned in (member.assigned, member.revoking):
            for topic_id, of_topic in assigned.items():
                these = {(topic_id, partition) for partition in of_topic}
                assert not these & seen, f"{these & seen} have two owners"
                seen |= these


def _no_stray_deadlines(world: "World", groups: dict[str, ClassicGroup], consumer_groups: set[str]) -> None:
    """Of consumer groups there may be timers of members that are gone; Kafka does not cancel them either."""
    for deadline in world.coordinator.timers.pending():
        kind, scope, subject = deadline.key
        if kind == "retention":
            continue
        if kind == "append":
            assert world.held, f"{deadline.key} waits for nothing"
            continue
        if scope in consumer_groups:
            continue
        assert scope in groups, f"{deadline.key} is of a group that is gone"
        if kind == "session":
            group = groups[scope]
            assert subject in group.members or subject in group.pending_join_members, f"{deadline.key} is of nobody"
