"""The data of a classic group: its state, its members, and the operations that keep them consistent.

Sources: ``ClassicGroupState``, ``ClassicGroupMember``, ``ClassicGroup``. The values of states are their names on the wire.
Rebalances are in rebalance.py; the request handlers are in join.py, sync.py, heartbeat.py and leave.py.
"""

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.group import Group
from groupcoord.core.api_error import ApiError
from groupcoord.core.effects import NO_CONNECTION, Call
from groupcoord.core.java_hash_order import HashMap
from groupcoord.core.timers import TimerKey
from groupcoord.protocol.consumer_protocol import OverrunError, subscribed_topics
from groupcoord.protocol.errors import ErrorCode

CONSUMER_PROTOCOL_TYPE = "consumer"


# --- states


class GroupState(enum.StrEnum):
    """The state of a classic group (``ClassicGroupState``)."""

    EMPTY = "Empty"
    """No members. May have offsets, and member ids given to clients that have not joined with them yet (KIP-394)."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to send JoinGroup."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """Every JoinGroup is answered; waiting for the leader's SyncGroup with the assignment."""
    STABLE = "Stable"
    """The assignment is stored."""
    DEAD = "Dead"
    """No longer coordinated here. On the wire it means that the group does not exist."""


_E, _P, _C, _S, _D = GroupState

# state: the states from which it may be reached
_LEGAL: Mapping[GroupState, frozenset[GroupState]] = MappingProxyType(
    {
        _E: frozenset({_P}),
        _P: frozenset({_E, _C, _S}),
        _C: frozenset({_P}),
        _S: frozenset({_C}),
        _D: frozenset({_E, _P, _C, _S, _D}),
    }
)


def may_move(origin: GroupState, target: GroupState) -> bool:
    """Is the transition from ``origin`` to ``target`` allowed?"""
    return origin in _LEGAL[target]


_OK, _REBALANCING = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
_UNKNOWN, _GONE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE

HEARTBEAT_ANSWERS: Mapping[GroupState, ErrorCode] = MappingProxyType(
    {_E: _UNKNOWN, _P: _REBALANCING, _C: _OK, _S: _OK, _D: _GONE}
)
"""The error of a Heartbeat of a member of the current generation, by group state."""

COMMIT_ANSWERS: Mapping[GroupState, ErrorCode] = MappingProxyType(
    {_E: _UNKNOWN, _P: _OK, _C: _REBALANCING, _S: _OK, _D: _GONE}
)
"""The error of an OffsetCommit of a member of the current generation; in PREPARING_REBALANCE it is still accepted."""


# --- a member


Protocols = tuple[tuple[str, bytes], ...]
"""Protocol names (for consumers: assignors) with their metadata, in order of preference."""


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """One member (``ClassicGroupMember``); times are milliseconds. ``parked_join`` and ``parked_sync`` await their response."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    session_key: TimerKey
    assignment: bytes = b""
    parked_join: Call | None = None
    parked_sync: Call | None = None
    is_new: bool = False
    timed_ms: int = -1
    """The timeout with which the session timer was last set; -1 before that."""

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Is the member alive because a request of it waits here? For a new member that does not count."""
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    @property
    def protocol_names(self) -> tuple[str, ...]:
        """The names of its protocols in order of preference. A name that the client lists twice is there twice."""
        return tuple(name for name, _ in self.protocols)

    def metadata_of(self, protocol: str | None) -> bytes:
        """The metadata that the member sent for ``protocol``. Raises UnexpectedBrokerError if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise UnexpectedBrokerError(f"member {self.member_id} does not offer protocol {protocol}")

    def vote(self, candidates: set[str]) -> str:
        """The first of the member's protocols that every member supports. Raises UnexpectedBrokerError if there is none."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise UnexpectedBrokerError(f"member {self.member_id} offers no protocol that counts as offered by all")

    def __repr__(self) -> str:
        parked = " parked in join" if self.parked_join else " parked in sync" if self.parked_sync else ""
        return f"<Member {self.member_id}{parked}>"


# --- the group


class ClassicGroupMembers(Group):
    """The members of a group. ``subscribed_topics`` is None while unknown, ``protocol_type`` until the first member joins."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state: GroupState = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_since_ms: int | None = now_ms
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.members: HashMap[Member] = HashMap()
        self.static_members: dict[str, str] = {}
        self.pending_join_members: set[str] = set()
        self.pending_sync_members: set[str] = set()
        self.supported_protocols: Counter[str] = Counter()
        self.awaiting_join = 0
        self.subscribed_topics: frozenset[str] | None = None
        self.new_member_added = False
        self.join_key = TimerKey("join", group_id)
        self.sync_key = TimerKey("sync", group_id)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.group_id} {self.state} gen={self.generation_id} members={len(self.members)}>"
        )

    # --- state

    def move_to(self, state: GroupState, now_ms: int) -> None:
        """Change the state; an illegal transition is a bug here, never a client's fault."""
        if not may_move(self.state, state):
            raise AssertionError(f"group {self.group_id} cannot go from {self.state} to {state}")
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        """May a rebalance start in the current state?"""
        return may_move(self.state, GroupState.PREPARING_REBALANCE)

    @property
    def is_simple(self) -> bool:
        """Is it a simple group, which only has offsets of clients with manual assignment?"""
        return self.protocol_type is None and self.state is GroupState.EMPTY and not self.pending_join_members

    @property
    def all_joined(self) -> bool:
        """Has every member, and every client that was given a member id, sent JoinGroup?"""
        return len(self.members) == self.awaiting_join and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members; at least 0, even if all are negative."""
        return max([0, *(member.rebalance_timeout_ms for member in self.members.unordered_values())])

    def session_key(self, member_id: str) -> TimerKey:
        """The key of the session timer of ``member_id``, which may be a pending member."""
        return TimerKey("session", self.group_id, member_id)

    # --- members

    def add_member(self, member: Member, call: Call | None) -> None:
        """Add ``member``, with its waiting JoinGroup ``call``, if there is one."""
        if not len(self.members):
            self.protocol_type = member.protocol_type
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.pending_join_members.discard(member.member_id)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.supported_protocols.update(member.protocol_names)
        self.park_join(member, call)

    def discard_member(self, member: Member) -> None:
        """Remove ``member``; if it was the leader, the first other member becomes it. Answer its JoinGroup before."""
        self.members.pop(member.member_id)
        self._forget_protocols(member)
        if member.parked_join is not None:
            self.park_join(member, None)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        self.pending_sync_members.discard(member.member_id)
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace_static(self, old: Member, new_id: str) -> Member:
        """Replace the static member ``old`` by a member with the id ``new_id`` (KIP-345), and return that.

        It inherits all fields, even the client id and host of the first process; no request of ``old`` may be waiting. If
        ``old`` has not sent SyncGroup yet, it stays in the list of missing members, as in Kafka.
        """
        if old.instance_id is None:
            raise AssertionError(f"member {old.member_id} of group {self.group_id} is not static")
        self.members.pop(old.member_id)
        new = Member(
            member_id=new_id,
            instance_id=old.instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            protocols=old.protocols,
            session_key=self.session_key(new_id),
            assignment=old.assignment,
        )
        self.members[new_id] = new
        self.static_members[old.instance_id] = new_id
        if self.leader_id == old.member_id:
            self.leader_id = new_id
        return new

    def update(self, member: Member, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int) -> None:
        """Store the fields of the JoinGroup of a rejoining ``member``."""
        self._forget_protocols(member)
        member.protocols = protocols
        self.supported_protocols.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def park_join(self, member: Member, call: Call | None) -> None:
        """Set, replace or clear the waiting JoinGroup of ``member``.

        A replaced JoinGroup is never answered (as in Kafka up to 4.3; fixed by KAFKA-20938).
        """
        if (member.parked_join is None) != (call is None):
            self.awaiting_join += 1 if call is not None else -1
        member.parked_join = call

    def waits_to_join(self, call: Call) -> bool:
        """Is ``call`` the waiting JoinGroup of a member?"""
        return any(member.parked_join is call for member in self.members.unordered_values())

    def answered_already(self, call: Call) -> None:
        """``call`` is answered but stays stored as waiting: a second response to it is dropped."""
        unconnected = call._replace(connection_id=NO_CONNECTION)
        for member in self.members.unordered_values():
            if member.parked_join is call:
                member.parked_join = unconnected
            if member.parked_sync is call:
                member.parked_sync = unconnected

    def static_member(self, instance_id: str | None) -> Member | None:
        """The static member with ``instance_id``, or None."""
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    # --- protocols

    def supports(self, protocol_type: str, names: Sequence[str]) -> bool:
        """May a client with these protocols join? An empty group accepts any."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(self.supported_protocols[name] == size for name in names)

    def votes(self) -> dict[str, int]:
        """The number of votes for each protocol; each member votes for its first protocol that all members support.

        As in Kafka, support is a count of names, and a name that a member lists twice counts twice. So a protocol that all
        support may be no candidate, and one that a member does not support may be. Raises UnexpectedBrokerError if a member
        has no candidate to vote for.
        """
        size = len(self.members)
        candidates = {name for name, count in self.supported_protocols.items() if count == size}
        count: Counter[str] = Counter(member.vote(candidates) for member in self.members.values())
        return dict(count)

    def select_protocol(self, votes: Mapping[str, int]) -> str:
        """The protocol with most ``votes``; on a tie the first in the order of Java's HashMap."""
        ordered: HashMap[int] = HashMap()
        for name, count in votes.items():
            ordered[name] = count
        return max(ordered, key=votes.__getitem__)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics in the members' subscriptions, or None if they cannot be decoded.

        Raises UnexpectedBrokerError for a member that does not support the protocol, and for a subscription of a wrong
        length.
        """
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not len(self.members):
            return frozenset()
        topics: set[str] = set()
        for member in self.members.values():
            metadata = member.metadata_of(self.protocol_name)
            try:
                subscription = subscribed_topics(metadata)
            except OverrunError as problem:
                raise UnexpectedBrokerError(
                    f"the subscription of {member.member_id} cannot be read: {problem}"
                ) from problem
            if subscription is None:
                return None
            topics |= subscription
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Is a member subscribed to ``topic``? If that is unknown, a group of consumers counts as subscribed to all topics."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    def _forget_protocols(self, member: Member) -> None:
        for name in member.protocol_names:
            self.supported_protocols[name] -= 1
            if not self.supported_protocols[name]:
                del self.supported_protocols[name]


def known_member(group: ClassicGroupMembers, member_id: str, instance_id: str | None) -> Member:
    """The member that sent a request, by its ids.

    If ``instance_id`` belongs to another member id, the sender is fenced, whether its member id is known or not (KIP-345).
    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is not None:
        mapped = group.static_members.get(instance_id)
        if mapped is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"group_instance_id {instance_id!r} is of no member")
        if mapped != member_id:
            why = f"group_instance_id {instance_id!r} now belongs to member_id {mapped!r}, not {member_id!r}"
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID, why)
    member = group.members.get(member_id)
    if member is None:
        waiting = " yet: it was handed out and has not joined" if member_id in group.pending_join_members else ""
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"member_id {member_id!r} is not in the group{waiting}")
    return member


def current_generation(group: ClassicGroupMembers, generation_id: int) -> None:
    """Raises ApiError (ILLEGAL_GENERATION) unless ``generation_id`` is the group's."""
    if generation_id != group.generation_id:
        why = f"generation_id is {generation_id}, the group is at {group.generation_id}"
        raise ApiError(ErrorCode.ILLEGAL_GENERATION, why)
