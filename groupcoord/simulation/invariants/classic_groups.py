"""Invariants of classic groups at the coordinator, and of committed offsets, also after loading from the log."""

from typing import Any, NamedTuple

from groupcoord.assignors import TopicPartition
from groupcoord.cluster.coordinator_partition_writer import STORE, AppendDecision
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.events import GroupRemoved, StateChanged, StaticMemberReplaced
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode as E
from groupcoord.protocol.messages import OffsetCommitRequest, TxnOffsetCommitRequest
from groupcoord.simulation.consumer_application import GROUP
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.plan import CHANGING_TOPIC, SimulationPlan

EMPTIED = "it has neither members nor offsets"
"""The reason of GroupRemoved when the coordinator deletes an empty group, with its generation."""

_IN_A_GENERATION = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


class GroupInvariant(Invariant):
    """An invariant of the classic group, checked after every step."""

    def step_done(self) -> None:
        """Check the group."""
        group = self.context.brokers.group
        if group is not None:
            self.check(group)

    def check(self, group: ClassicGroup) -> None:
        raise NotImplementedError


class LeaderIsMember(GroupInvariant):
    """A group with members has one of them as its leader. An Empty group has no members; in CompletingRebalance and Stable a
    group has members."""

    name = "leader-is-member"

    def check(self, group: ClassicGroup) -> None:
        ids = list(group.members)
        if ids and group.leader_id not in ids:
            raise self.violation(f"the leader is {group.leader_id}, the members are {', '.join(ids)}")
        if group.state is GroupState.EMPTY and ids:
            raise self.violation(f"the group is Empty and has the members {', '.join(ids)}")
        if group.state in _IN_A_GENERATION and not ids:
            raise self.violation(f"the group is {group.state} and has no members")


class CommonProtocol(GroupInvariant):
    """In CompletingRebalance and Stable, every member supports the assignor of the group."""

    name = "common-protocol"

    def check(self, group: ClassicGroup) -> None:
        if group.state not in _IN_A_GENERATION:
            return
        for member in group.members.unordered_values():
            if group.protocol_name not in member.protocol_names:
                supported = ", ".join(member.protocol_names)
                raise self.violation(f"the protocol is {group.protocol_name}; {member.member_id} supports {supported}")


class UniqueInstanceIds(GroupInvariant):
    """An instance id belongs to at most one member, and the group maps it to that member (KIP-345)."""

    name = "unique-instance-ids"

    def check(self, group: ClassicGroup) -> None:
        members = group.members.unordered_values()
        static = [(member.instance_id, member.member_id) for member in members if member.instance_id is not None]
        if sorted(static) != sorted(group.static_members.items()):
            raise self.violation(f"members with an instance id are {static}, known as such are {group.static_members}")


class TimersMatchState(Invariant):
    """There is a join timer only in PreparingRebalance; a sync timer while a SyncGroup is missing; a session timer for each
    member without a waiting request and for each member id that was given out for a second JoinGroup (KIP-394), and no other.
    Without a group there are no timers."""

    name = "timers-match-state"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._was_modern = False

    def step_done(self) -> None:
        timers = self.context.brokers.cluster.coordinator.timers
        group = self.context.brokers.group
        sessions = {at.key.subject for at in timers.pending() if at.key.kind == "session"}
        self._was_modern |= self.context.brokers.consumer_group is not None
        if self._was_modern or self.context.plan.may_migrate:
            return  # consumer groups have their own invariant, and may leave timers of removed members behind
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
    """The generation of a group never decreases, except that a coordinator that has moved returns to the last generation
    whose assignment was stored. A group without members and offsets is deleted, and starts again."""

    name = "generations-grow"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._latest = 0
        self._stored = 0

    def event_emitted(self, event: Event) -> None:
        """Track the stored generation."""
        if isinstance(event, StateChanged) and event.target == GroupState.STABLE:
            self._stored = max(self._stored, event.generation)
        elif isinstance(event, GroupRemoved):
            if event.reason == EMPTIED:
                self._stored = 0
            self._latest = self._stored

    def step_done(self) -> None:
        group = self.context.brokers.group
        if self.context.brokers.consumer_group is not None:
            self._latest = self._stored = 0  # consumer groups have their own invariant
        if group is None:
            return
        if group.generation_id < self._latest:
            raise self.violation(f"the generation is {group.generation_id}, and it was {self._latest} before")
        self._latest = group.generation_id


_VIEW_PARTS = ("state", "generation", "protocol type", "protocol", "leader", "members")


def _view(group: ClassicGroup) -> tuple[object, ...]:
    """The state of a Stable or Empty group that must be in the log."""
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
    """A coordinator that loads its log has the state as of the last time that the group was stored: state, generation,
    protocol, leader and all fields of each member. Requests in flight when it resigned are lost, as in Kafka. Not checked
    where brokers fail, since the effects of such requests may be in the log."""

    name = "replay-matches-state"

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        return not plan.replicated

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stored: tuple[object, ...] | None = None
        self._all_stored = True
        self._changed = False
        self._expected: tuple[object, ...] | None = None

    def append_decided(self, decision: AppendDecision) -> None:
        """After an append that is not stored at once, the stored state is unknown."""
        self._all_stored &= decision == STORE

    def event_emitted(self, event: Event) -> None:
        """Note the events after which the group is stored."""
        match event:
            case StateChanged(target=GroupState.STABLE | GroupState.EMPTY) | StaticMemberReplaced(rebalances=False):
                self._changed = True
            case GroupRemoved():
                self._stored = None
            case _:
                pass

    def step_done(self) -> None:
        """Remember the stored state."""
        if self.context.brokers.consumer_group is not None:
            self._stored = None  # it is not a classic group any more
        if self._changed:
            group = self.context.brokers.group
            stable = group is not None and group.state in (GroupState.STABLE, GroupState.EMPTY)
            self._stored = _view(group) if group is not None and stable and self._all_stored else None
        self._changed, self._all_stored = False, True

    def coordinator_unloading(self) -> None:
        """Remember the stored state, which is expected after loading."""
        self._expected = self._stored

    def coordinator_loaded(self) -> None:
        expected, group = self._expected, self.context.brokers.group
        if expected is None:
            return
        if group is None:
            raise self.violation("the group is not there any more")
        self._stored = found = _view(group)
        for part, before, after in zip(_VIEW_PARTS, expected, found, strict=True):
            if before != after:
                raise self.violation(f"{part}: it was {before}, the log says {after}")


_NEVER_STORED = frozenset(
    {
        E.UNKNOWN_MEMBER_ID,
        E.ILLEGAL_GENERATION,
        E.FENCED_INSTANCE_ID,
        E.REBALANCE_IN_PROGRESS,
        E.GROUP_ID_NOT_FOUND,
        E.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors after which a commit is certainly not stored; after any other error it may still be stored later."""


def _generation_of(request: OffsetCommitRequest | TxnOffsetCommitRequest) -> int:
    if isinstance(request, TxnOffsetCommitRequest):
        return request.generation_id
    return request.generation_id_or_member_epoch


class CommitFencing(Invariant):
    """A commit is accepted only from a member of the group with the current generation and, if it has an instance id, only
    while that belongs to it: not from removed, fenced or late members. In a consumer group it must have the epoch of the
    member, or one that is not older than the assignment of any of its partitions (KIP-1251). The same holds for offsets in
    transactions (KIP-447)."""

    name = "commit-fencing"
    apis = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._invalid: dict[tuple[int, int], str] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Decide whether the commit is valid, before the coordinator does; one in a transaction may wait until it is loaded."""
        if not self.context.brokers.has_coordinator:
            return
        modern = self.context.brokers.consumer_group
        reason = self._why_invalid(request) if modern is None else self._why_stale(modern, request)
        if reason:
            self._invalid[call.connection_id, call.correlation_id] = reason

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation if an invalid commit was accepted."""
        reason = self._invalid.pop((call.connection_id, call.correlation_id), None)
        if reason is not None and not all(each.error_code for topic in response.topics for each in topic.partitions):
            raise self.violation(f"a commit of {call.client_id} was accepted, and {reason}")

    def _why_invalid(self, request: Any) -> str | None:
        group = self.context.brokers.group
        if group is None:
            return "there is no group"
        if request.member_id not in group.members:
            return f"{request.member_id} is not in the group"
        sent = _generation_of(request)
        if sent != group.generation_id:
            return f"it has generation {sent}, the group {group.generation_id}"
        instance_id = request.group_instance_id
        if instance_id is not None and group.static_members.get(instance_id) != request.member_id:
            return f"{instance_id} belongs to another member"
        return None

    def _why_stale(self, group: ConsumerGroup, request: Any) -> str | None:
        member = group.members.get(request.member_id)
        if member is None:
            return f"{request.member_id} is not in the group"
        sent = _generation_of(request)
        if sent == member.member_epoch:
            return None
        since = {
            (group.context.topics.view.topic_name(topic_id), partition): epoch
            for assigned in (member.revoking, member.assigned)
            for topic_id, of_topic in assigned.items()
            for partition, epoch in of_topic.items()
        }
        wanted = [(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions]
        if sent > member.member_epoch or any(sent < since.get(partition, sent + 1) for partition in wanted):
            return f"it has epoch {sent}, the member {member.member_epoch}"
        return None


class _Commit(NamedTuple):
    """A commit of one partition; commits are numbered in order of arrival."""

    number: int
    offset: int


class CommitDurability(Invariant):
    """The committed offset is that of the last acknowledged commit, or of a later one that may be stored: one with an
    ambiguous error, or without a response because its broker failed. This also holds after the coordinator has loaded its
    log, and in OffsetFetch responses."""

    name = "commit-durability"
    apis = frozenset({ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH})

    @classmethod
    def applies(cls, plan: SimulationPlan) -> bool:
        """See Invariant. In runs with transactions, ExactlyOnce compares the offsets with the output instead."""
        return not plan.is_transactional

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = 0
        self._requests: dict[tuple[int, int], tuple[int, Any]] = {}
        self._last: dict[TopicPartition, _Commit] = {}
        self._maybe: dict[TopicPartition, list[_Commit]] = {}
        self._must_check = False

    def request_received(self, call: Call, request: Any) -> None:
        """Remember the commit."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            self._count += 1
            self._requests[call.connection_id, call.correlation_id] = self._count, request
            self._must_check = True

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation for a wrong offset in a response to OffsetFetch."""
        if call.api.key == ApiKey.OFFSET_COMMIT:
            self._must_check = True
            commit = self._requests.pop((call.connection_id, call.correlation_id), None)
            if commit is not None:
                self._responded(*commit, response)
        elif call.api.key == ApiKey.OFFSET_FETCH and not response.groups[0].error_code:
            for topic in response.groups[0].topics:
                for each in topic.partitions if topic.name != CHANGING_TOPIC else ():
                    self._compare((topic.name, each.partition_index), each.committed_offset, "a response has")

    def coordinator_loaded(self) -> None:
        """Check all offsets."""
        self._must_check = True

    def step_done(self) -> None:
        """Check the offsets, after commits and after loading."""
        brokers = self.context.brokers
        if not self._must_check or not brokers.has_coordinator:
            return
        self._must_check = False
        committed = brokers.shard.committed
        for topic, count in self.context.plan.topics.items():
            for number in range(count) if topic != CHANGING_TOPIC else ():
                found = committed.offset(GROUP, topic, number)
                self._compare((topic, number), -1 if found is None else found.offset, "the coordinator has")

    def _responded(self, number: int, request: Any, response: Any) -> None:
        codes = {
            (topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        for topic in request.topics:
            for each in topic.partitions:
                partition = topic.name, each.partition_index
                commit = _Commit(number, each.committed_offset)
                code = codes[partition]
                if not code:
                    if number > self._last.get(partition, _Commit(0, -1)).number:
                        self._last[partition] = commit
                    self._maybe[partition] = [one for one in self._maybe.get(partition, ()) if one.number > number]
                elif code not in _NEVER_STORED:
                    self._maybe.setdefault(partition, []).append(commit)

    def _compare(self, partition: TopicPartition, offset: int, source: str) -> None:
        last = self._last.get(partition, _Commit(0, -1))
        if offset == last.offset or offset in {one.offset for one in self._maybe.get(partition, ())}:
            return
        for number, request in self._requests.values():
            if number > last.number and offset == _offsets_of(request).get(partition):
                return
        name = f"{partition[0]}-{partition[1]}"
        raise self.violation(f"{source} offset {offset} of {name}, the last acknowledged commit has {last.offset}")


def _offsets_of(request: OffsetCommitRequest) -> dict[TopicPartition, int]:
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in request.topics
        for each in topic.partitions
    }
