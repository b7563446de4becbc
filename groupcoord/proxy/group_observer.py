"""GroupObserver, which derives the group events that a coordinator would emit from the requests and responses in a proxy.

The proxy does not see the coordinator's state, so the reasons of events say from what they are concluded. Members that connect
to the cluster without the proxy appear only in responses that name them.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from groupcoord.coordinator.events import (
    AssignmentReceived,
    ConsumerMemberJoined,
    Departure,
    GenerationStarted,
    GroupEpochBumped,
    MemberIdAssigned,
    MemberJoined,
    MemberReconciled,
    MemberRejoined,
    MemberRemoved,
    OffsetsCommitted,
    Owners,
    RebalanceStarted,
    RequestRefused,
    StaticMemberAway,
    SubscriptionChanged,
)
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol import messages as m
from groupcoord.protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment
from groupcoord.protocol.coordinator_records.record_formatting import id_text
from groupcoord.protocol.errors import ErrorCode, WireError

LEAVES, LEAVES_FOR_NOW = -1, -2


@dataclass(slots=True)
class _Member:
    """The state of a member, as far as its requests show it; times in milliseconds."""

    heard_ms: int
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    protocols: tuple[Any, ...] = ()
    has_joined: bool = False
    epoch: int = 0
    subscription: tuple[tuple[str, ...], str | None] = ((), None)


@dataclass(slots=True)
class _Group:
    """The state of a group, as far as its members' requests show it."""

    generation: int = -1
    rebalance: str = ""
    """Why it rebalances; empty if it does not rebalance, as far as is known."""
    members: dict[str, _Member] = field(default_factory=dict)
    epoch: int = 0
    epoch_reason: str = ""


class GroupObserver:
    """Is called with each request and each response, and returns events."""

    def __init__(self) -> None:
        self.topic_names: dict[uuid.UUID, str] = {}
        """Topic id → name, from Metadata responses."""
        self._groups: dict[str, _Group] = {}

    def asked(self, call: Call, request: Any, now_ms: int) -> list[Event]:
        """The events that a request shows."""
        if isinstance(request, m.JoinGroupRequest) and request.member_id:
            return list(_Told(self, call, request.group_id, now_ms).joins(request, request.member_id))
        return []

    def answered(self, call: Call, request: Any, response: Any, now_ms: int) -> list[Event]:
        """The events that a response shows."""
        if isinstance(response, m.MetadataResponse):
            for topic in response.topics:
                if topic.topic_id is not None and topic.name is not None:
                    self.topic_names[topic.topic_id] = topic.name
        handler = _ANSWERS.get(type(request))
        if handler is None:
            return []
        return list(handler(_Told(self, call, request.group_id, now_ms), request, response))

    def group(self, name: str) -> _Group:
        """The known state of a group."""
        return self._groups.setdefault(name, _Group())


class _Told:
    """Derives the events from one request or response of a group."""

    def __init__(self, observer: GroupObserver, call: Call, group: str, now_ms: int) -> None:
        self.observer, self.call, self.name, self.now_ms = observer, call, group, now_ms
        self.group = observer.group(group)

    def event(self, kind: type[Event], **fields: Any) -> Event:
        return kind(at_ms=self.now_ms, cause=self.call.as_cause(), group=self.name, **fields)  # type: ignore[call-arg]

    def refused(self, member: str, code: int, why: str = "") -> Event:
        error = ErrorCode(code)
        return self.event(
            RequestRefused,
            api=self.call.api.name,
            member=member,
            error=error.name,
            why=why or self.why_refused(member, error),
        )

    def heard(self, member: str) -> None:
        if member in self.group.members:
            self.group.members[member].heard_ms = self.now_ms

    # The classic protocol.

    def joins(self, request: m.JoinGroupRequest, member_id: str) -> Iterator[Event]:
        group = self.group
        member = group.members.get(member_id)
        client = self.call.client_id or "a client without id"
        changed = member is not None and member.protocols != request.protocols
        if not group.rebalance:
            wants = "joins again" + (" with new metadata" if changed else "") if member else "joins"
            yield from self.rebalances(f"{client} {wants}" + (f": {request.reason}" if request.reason else ""))
        if member is None:
            member = group.members[member_id] = _Member(self.now_ms)
            yield self.event(
                MemberJoined,
                member=member_id,
                instance_id=request.group_instance_id,
                client_id=self.call.client_id or "",
                client_host=self.call.client_host,
                protocols=tuple(protocol.name for protocol in request.protocols),
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                reason=request.reason or "",
            )
        elif not member.has_joined:
            yield self.event(MemberRejoined, member=member_id, changed=changed, reason=request.reason or "")
        member.heard_ms, member.has_joined = self.now_ms, True
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.protocols = request.protocols

    def rebalances(self, reason: str) -> Iterator[Event]:
        group = self.group
        group.rebalance = reason
        for member in group.members.values():
            member.has_joined = False
        waits_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=0)
        yield self.event(
            RebalanceStarted,
            generation=max(group.generation, 0),
            reason=reason,
            waits_ms=max(waits_ms, 0),
            initial=not group.members,
        )

    def joined(self, request: m.JoinGroupRequest, response: m.JoinGroupResponse) -> Iterator[Event]:
        group = self.group
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            yield self.event(MemberIdAssigned, member=response.member_id)
            return
        if response.error_code:
            yield self.refused(request.member_id, response.error_code)
            return
        if response.member_id != request.member_id:
            yield from self.joins(request, response.member_id)
        self.heard(response.member_id)
        if response.generation_id == group.generation:
            return  # the response to another member came before
        named = tuple(member.member_id for member in response.members)  # only the leader's response has the members
        yield from self.gone(named, response.generation_id)
        members = named or tuple(group.members)
        group.generation, group.rebalance = response.generation_id, ""
        yield self.event(
            GenerationStarted,
            generation=response.generation_id,
            protocol=response.protocol_name or "",
            votes=self.votes(members),
            leader=response.leader,
            members=members,
        )

    def gone(self, named: tuple[str, ...], generation: int) -> Iterator[Event]:
        """The removal of known members that are not in the new generation."""
        for name, member in list(self.group.members.items()):
            if (name not in named) if named else not member.has_joined:
                del self.group.members[name]
                silent_ms = self.now_ms - member.heard_ms
                session_over = silent_ms >= member.session_timeout_ms >= 0
                timeout_ms = member.session_timeout_ms if session_over else member.rebalance_timeout_ms
                yield self.event(
                    MemberRemoved,
                    member=name,
                    reason=f"it is not in generation {generation}, and was heard last {silent_ms} ms ago",
                    how=Departure.SESSION_OVER if session_over else Departure.NOT_JOINED,
                    timeout_ms=timeout_ms,
                )

    def votes(self, members: tuple[str, ...]) -> Mapping[str, int]:
        """The votes for each protocol, counted as by a coordinator: each member's first protocol that all members support."""
        known = [self.group.members[name].protocols for name in members if name in self.group.members]
        offered = [[protocol.name for protocol in protocols] for protocols in known]
        common = set.intersection(*map(set, offered)) if offered else set()
        votes: dict[str, int] = {}
        for names in offered:
            first = next((name for name in names if name in common), None)
            if first is not None:
                votes[first] = votes.get(first, 0) + 1
        return votes

    def synced(self, request: m.SyncGroupRequest, response: m.SyncGroupResponse) -> Iterator[Event]:
        self.heard(request.member_id)
        if response.error_code:
            yield self.refused(request.member_id, response.error_code)
        elif request.assignments:
            yield self.event(
                AssignmentReceived,
                generation=request.generation_id,
                leader=request.member_id,
                owners=_owners(request),
            )

    def beat(self, request: m.HeartbeatRequest, response: m.HeartbeatResponse) -> Iterator[Event]:
        if response.error_code:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS and not self.group.rebalance:
                yield from self.rebalances(
                    self.silent_member() or "the coordinator says so; who caused it was not seen here"
                )
            yield self.refused(request.member_id, response.error_code)
        if response.error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            self.heard(request.member_id)

    def silent_member(self) -> str:
        for name, member in self.group.members.items():
            silent_ms = self.now_ms - member.heard_ms
            if silent_ms >= member.session_timeout_ms >= 0:
                return f"{name} was not heard for {silent_ms} ms, and its session timeout is {member.session_timeout_ms} ms"
        return ""

    def why_refused(self, member_id: str, code: ErrorCode) -> str:
        """Kafka's text of the error, with an explanation from what was observed."""
        group, member = self.group, self.group.members.get(member_id)
        text = code.text
        if code == ErrorCode.REBALANCE_IN_PROGRESS and group.rebalance:
            return f"{text} It rebalances because {group.rebalance}."
        if code == ErrorCode.ILLEGAL_GENERATION and group.generation >= 0:
            return f"{text} Generation {group.generation} is the newest that was seen here."
        if code == ErrorCode.UNKNOWN_MEMBER_ID and member is not None and member.session_timeout_ms >= 0:
            silent_ms, session_ms = self.now_ms - member.heard_ms, member.session_timeout_ms
            return f"{text} It was heard last {silent_ms} ms ago, and its session timeout is {session_ms} ms."
        return text

    def left(self, request: m.LeaveGroupRequest, response: m.LeaveGroupResponse) -> Iterator[Event]:
        if response.error_code:
            yield self.refused("", response.error_code)
            return
        refused = {each.member_id: each.error_code for each in response.members}
        for leaving in request.members:
            code = refused.get(leaving.member_id, 0)
            if code:
                yield self.refused(leaving.member_id, code)
                continue
            name = leaving.member_id or f"instance {leaving.group_instance_id}"
            self.group.members.pop(leaving.member_id, None)
            reason = leaving.reason or "it asked for it"
            yield self.event(MemberRemoved, member=name, reason=reason, how=Departure.LEFT, timeout_ms=None)
            if self.group.members and not self.group.rebalance:
                yield from self.rebalances(f"{name} left")

    def committed(self, request: m.OffsetCommitRequest, response: m.OffsetCommitResponse) -> Iterator[Event]:
        self.heard(request.member_id)
        codes = {
            (topic.name, topic.topic_id, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        offsets: list[tuple[str, int, int]] = []
        for topic in request.topics:
            shown = topic.name or self.topic(topic.topic_id)
            offsets += [
                (shown, partition.partition_index, partition.committed_offset)
                for partition in topic.partitions
                if not codes.get((topic.name, topic.topic_id, partition.partition_index), 0)
            ]
        if offsets:
            yield self.event(
                OffsetsCommitted,
                member=request.member_id,
                generation=request.generation_id_or_member_epoch,
                offsets=tuple(offsets),
            )
        for code in sorted(set(codes.values()) - {0}):
            yield self.refused(request.member_id, code)

    def topic(self, topic_id: uuid.UUID | None) -> str:
        known = None if topic_id is None else self.observer.topic_names.get(topic_id)
        return known or id_text(topic_id)

    # KIP-848.

    def reconciled(
        self, request: m.ConsumerGroupHeartbeatRequest, response: m.ConsumerGroupHeartbeatResponse
    ) -> Iterator[Event]:
        group = self.group
        member_id = response.member_id or request.member_id
        if response.error_code:
            yield self.refused(member_id, response.error_code, response.error_message or "")
            return
        client = self.call.client_id or "a client without id"
        if request.member_epoch in (LEAVES, LEAVES_FOR_NOW):
            group.members.pop(member_id, None)
            group.epoch_reason = f"{client} left"
            if request.member_epoch == LEAVES_FOR_NOW:
                yield self.event(StaticMemberAway, member=member_id, instance_id=request.instance_id or "")
            else:
                yield self.event(MemberRemoved, member=member_id, reason="it left", how=Departure.LEFT, timeout_ms=None)
            return
        member = group.members.get(member_id)
        subscription = tuple(request.subscribed_topic_names or ()), request.subscribed_topic_regex or None
        if member is None:
            member = group.members[member_id] = _Member(self.now_ms, subscription=subscription)
            group.epoch_reason = f"{client} joined"
            yield self.event(
                ConsumerMemberJoined,
                member=member_id,
                instance_id=request.instance_id,
                client_id=self.call.client_id or "",
                client_host=self.call.client_host,
                topics=subscription[0],
                regex=subscription[1],
                assignor=request.server_assignor,
                rack=request.rack_id,
                protocol="consumer",
            )
        elif request.subscribed_topic_names is not None and subscription != member.subscription:
            member.subscription = subscription
            group.epoch_reason = f"{client} subscribes to something else"
            yield self.event(SubscriptionChanged, member=member_id, topics=subscription[0], regex=subscription[1])
        member.heard_ms = self.now_ms
        if response.member_epoch > group.epoch:
            group.epoch = response.member_epoch
            reason = group.epoch_reason or "the coordinator says so; what caused it was not seen here"
            group.epoch_reason = ""
            yield self.event(GroupEpochBumped, epoch=response.member_epoch, reason=reason)
        if response.assignment is not None or response.member_epoch != member.epoch:
            member.epoch = response.member_epoch
            assigned = tuple(
                (self.topic(topic.topic_id), partition)
                for topic in (response.assignment.topic_partitions if response.assignment else ())
                for partition in topic.partitions
            )
            yield self.event(
                MemberReconciled,
                member=member_id,
                epoch=response.member_epoch,
                state="STABLE" if response.member_epoch == group.epoch else "UNREVOKED_PARTITIONS",
                assigned=assigned,
                revoking=(),
            )


def _owners(request: m.SyncGroupRequest) -> Owners | None:
    if (request.protocol_type or PROTOCOL_TYPE) != PROTOCOL_TYPE:
        return None
    try:
        return {
            each.member_id: tuple(
                (topic.topic, partition)
                for topic in read_assignment(each.assignment).assigned_partitions
                for partition in topic.partitions
            )
            for each in request.assignments
        }
    except WireError:
        return None


_ANSWERS: Mapping[type[Any], Callable[[_Told, Any, Any], Iterator[Event]]] = {
    m.JoinGroupRequest: _Told.joined,
    m.SyncGroupRequest: _Told.synced,
    m.HeartbeatRequest: _Told.beat,
    m.LeaveGroupRequest: _Told.left,
    m.OffsetCommitRequest: _Told.committed,
    m.ConsumerGroupHeartbeatRequest: _Told.reconciled,
}
