"""Invariants of members: partition ownership, session timeouts, responses, unexpected exits, and convergence at the end."""

from typing import Any

from groupcoord.assignors import TopicPartition, read_assignment, read_subscription
from groupcoord.client.client_errors import BrokerError
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import GroupState
from groupcoord.coordinator.classic.join import NEW_MEMBER_JOIN_TIMEOUT_MS
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup
from groupcoord.coordinator.events import (
    Departure,
    GenerationStarted,
    GroupRemoved,
    MemberJoined,
    MemberRemoved,
    ShardLoaded,
    StateChanged,
    StaticMemberReplaced,
)
from groupcoord.core.effects import Call
from groupcoord.core.events import Event
from groupcoord.protocol.apis import ApiKey
from groupcoord.protocol.errors import ErrorCode
from groupcoord.simulation.invariants.base import Invariant
from groupcoord.simulation.member_process import MemberProcess
from groupcoord.simulation.plan import CONSUMER


def _assigned(group: ClassicGroup) -> dict[str, frozenset[TopicPartition]]:
    """The coordinator's assignment of each member."""
    return {
        member.member_id: frozenset(read_assignment(member.assignment)) if member.assignment else frozenset()
        for member in group.members.unordered_values()
    }


def _reconciled(group: ConsumerGroup) -> dict[str, frozenset[TopicPartition]]:
    """The current assignment of each member of a consumer group."""
    return {member.member_id: frozenset(group.named(member.assigned)) for member in group.members.values()}


class SingleOwner(Invariant):
    """In a Stable generation a partition is assigned to at most one member, which is subscribed to its topic; and to at least
    one, unless a member's JoinGroup listed the partition as owned (KIP-429: it must revoke it first)."""

    name = "single-owner"

    def event_emitted(self, event: Event) -> None:
        """Raises InvariantViolation for a new assignment."""
        group = self.context.brokers.group
        if group is None or not isinstance(event, StateChanged) or event.target != GroupState.STABLE:
            return
        subscriptions = {
            member.member_id: read_subscription(member.metadata_of(group.protocol_name), member.instance_id)
            for member in group.members.unordered_values()
        }
        owners: dict[TopicPartition, str] = {}
        for member_id, partitions in _assigned(group).items():
            for partition in sorted(partitions):
                name = f"{partition[0]}-{partition[1]}"
                if partition in owners:
                    raise self.violation(f"{name} is assigned to {owners[partition]} and to {member_id}")
                if partition[0] not in subscriptions[member_id].topics:
                    raise self.violation(f"{name} is assigned to {member_id}, which does not subscribe to it")
                owners[partition] = member_id
        topics = {topic for each in subscriptions.values() for topic in each.topics}
        subscribed = {(topic, n) for topic in topics for n in range(self.context.plan.topics.get(topic, 0))}
        revoking = {partition for each in subscriptions.values() for partition in each.owned_partitions}
        if missing := sorted(subscribed - owners.keys() - revoking):
            raise self.violation(
                f"{missing[0][0]}-{missing[0][1]} is assigned to no member in generation {group.generation_id}"
            )


class ClientOwnership(Invariant):
    """No two processes own the same partition if both are members of the group that were admitted to its current generation
    by a JoinGroup response. Zombies may own anything until they notice: processes whose member was removed, was replaced
    under its instance id, or (static) has not joined the current generation or the one before it, or that were admitted to a
    generation that the coordinator lost because it moved before the assignment was stored. One that missed a generation keeps
    what others may have got in it until its next assignment (``ConsumerCoordinator.onJoinComplete``)."""

    name = "client-ownership"
    apis = frozenset({ApiKey.JOIN_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._admitted: dict[str, tuple[int, int]] = {}  # member id → the last two generations; a newcomer missed none

    def response_sent(self, call: Call, response: Any) -> None:
        """A JoinGroup response admits a member."""
        del call
        member_id, generation_id = response.member_id, response.generation_id
        _, last = self._admitted.get(member_id, (0, generation_id - 1))
        if not response.error_code and last != generation_id:
            self._admitted[member_id] = (last, generation_id)

    def event_emitted(self, event: Event) -> None:
        """Forget the admitted members of a group that is removed."""
        if isinstance(event, GroupRemoved):
            self._admitted.clear()

    def ownership_changed(self) -> None:
        group = self.context.brokers.group
        if group is None:
            return
        owners: dict[TopicPartition, str] = {}
        for process in self.context.processes():
            member_id = process.member_id
            last, current = self._admitted.get(member_id, (0, 0))
            if member_id in group.members and current == group.generation_id and last >= current - 1:
                for partition in process.owned:
                    if partition in owners:
                        two = f"{owners[partition]} and {process.client_id}"
                        name = f"{partition[0]}-{partition[1]}"
                        raise self.violation(f"{two} both own {name} in generation {group.generation_id}")
                    owners[partition] = process.client_id

    step_done = ownership_changed


class SessionTimeouts(Invariant):
    """The coordinator has heard from every member within its session timeout, or a request of it is waiting there (that of a
    new member for 5 minutes at most). A member whose session has expired was silent for the whole session timeout. A new
    generation and the loading of the log count as hearing from every member."""

    # Requests and responses show when the coordinator last heard from a member.

    name = "session-timeouts"
    apis = frozenset({ApiKey.HEARTBEAT, ApiKey.OFFSET_COMMIT, ApiKey.SYNC_GROUP})

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._last_ms: dict[str, int] = {}  # the latest time at which the coordinator may have heard from a member
        self._surely_ms: dict[str, int] = {}  # the latest time at which it certainly has
        self._syncs: dict[tuple[int, int], tuple[str, bool]] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """A request with the current generation renews the session."""
        key, group = call.api.key, self.context.brokers.group
        if group is None or not self.context.brokers.coordinates(call.broker):
            return
        member_id, completing = request.member_id, group.state is GroupState.COMPLETING_REBALANCE
        if key == ApiKey.SYNC_GROUP:
            self._syncs[call.connection_id, call.correlation_id] = member_id, completing
            return
        commits = key == ApiKey.OFFSET_COMMIT
        generation = request.generation_id_or_member_epoch if commits else request.generation_id
        instance_id = request.group_instance_id
        if member_id not in group.members or generation != group.generation_id or (commits and completing):
            return
        if instance_id is None or group.static_members.get(instance_id) == member_id:
            self._renew(member_id, self.context.event_queue.now_ms)

    def response_sent(self, call: Call, response: Any) -> None:
        """The response to a SyncGroup that waited renews the session."""
        sync = self._syncs.pop((call.connection_id, call.correlation_id), None)
        if sync is not None:
            member_id, waited = sync
            self._last_ms[member_id] = now_ms = self.context.event_queue.now_ms
            if waited and not response.error_code:
                self._surely_ms[member_id] = now_ms

    def event_emitted(self, event: Event) -> None:
        """Track sessions. Raises InvariantViolation for one that expired too early."""
        now_ms = self.context.event_queue.now_ms
        match event:
            case GenerationStarted(members=members):
                for member_id in members:
                    self._renew(member_id, now_ms)
            case MemberJoined(member=member_id):
                self._renew(member_id, now_ms)
            case StaticMemberReplaced(old_member=old_id, new_member=member_id):
                self._renew(member_id, now_ms)
                # If the append of the new member fails, the old member returns with a new session.
                self._last_ms.pop(old_id, None)
                self._surely_ms.pop(old_id, None)
            case ShardLoaded():
                self._last_ms.clear()
                self._surely_ms.clear()
            case MemberRemoved(member=member_id, how=Departure.SESSION_OVER, timeout_ms=timeout_ms):
                silent_ms = now_ms - self._surely_ms.get(member_id, 0)
                if timeout_ms is not None and silent_ms < timeout_ms:
                    raise self.violation(
                        f"{member_id} was removed after {timeout_ms} ms; it was last heard of {silent_ms} ms before"
                    )
            case _:
                pass

    def step_done(self) -> None:
        """Raises InvariantViolation for a member whose session should have expired."""
        group = self.context.brokers.group
        if group is None:
            if self.context.brokers.consumer_group is not None:  # it may become a classic group again
                self._last_ms.clear()
                self._surely_ms.clear()
            return
        now_ms, last_ms = self.context.event_queue.now_ms, self._last_ms
        for member in group.members.unordered_values():
            heard_ms = last_ms.setdefault(member.member_id, now_ms)
            limit_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
            if now_ms - heard_ms >= limit_ms and not member.has_satisfied_heartbeat:
                silent = f"it was silent for {now_ms - heard_ms} ms, and its timeout is {limit_ms} ms"
                raise self.violation(f"{member.member_id} is still in the group: {silent}")

    heartbeat_done = step_done

    def _renew(self, member_id: str, at_ms: int) -> None:
        self._last_ms[member_id] = max(at_ms, self._last_ms.get(member_id, 0))
        self._surely_ms[member_id] = max(at_ms, self._surely_ms.get(member_id, 0))


class OneResponse(Invariant):
    """Every response belongs to one request without a response. At the end no process waits for one: a client times out
    requests to which Kafka never responds (a JoinGroup that was replaced by another, the SyncGroup of a removed member)."""

    name = "one-response"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[tuple[int, int], Call] = {}

    def request_received(self, call: Call, request: Any) -> None:
        """Remember the request."""
        del request
        self._open[call.connection_id, call.correlation_id] = call

    def response_sent(self, call: Call, response: Any) -> None:
        """Raises InvariantViolation for a response without a request."""
        del response
        if self._open.pop((call.connection_id, call.correlation_id), None) is None:
            request = f"request {call.correlation_id} on connection {call.connection_id}"
            raise self.violation(f"{call.api.name} of {call.client_id} ({request}) is answered twice")

    def finish(self) -> None:
        """Raises InvariantViolation for a request whose response a process still awaits."""
        waiting = {
            key: call
            for process in self.context.processes()
            for key in process.awaited_requests()
            if (call := self._open.get(key))
        }
        for call in waiting.values():
            raise self.violation(f"{call.api.name} of {call.client_id} was not answered")


class NoUnexpectedExit(Invariant):
    """No member ends with an error, with these exceptions. A static member may be fenced because another process has joined
    with its instance id (its twin, its own next process, or a late JoinGroup of its previous process) or, by the consumer
    protocol, may find the instance id in use. A member of the consumer protocol may find that its group is gone or has become
    a classic one. Where members of both protocols meet, the migration policy may forbid the conversion of the group. A member
    with transactions may find that its producer is fenced, or that the transaction it commits has timed out. The log has only
    the assignor that was chosen: after loading, a member without it is refused until the others have joined again."""

    name = "no-unexpected-exit"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._loaded: int | None = None  # the generation that was loaded

    def coordinator_loaded(self) -> None:
        group = self.context.brokers.group
        self._loaded = None if group is None else group.generation_id

    def member_failed(self, process: MemberProcess, error: Exception) -> None:
        allowed = set[ErrorCode]()
        if process.plan.instance_id is not None:
            allowed |= {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}
        if process.protocol == CONSUMER:
            allowed.add(ErrorCode.GROUP_ID_NOT_FOUND)
        if process.plan.transactions is not None:
            allowed |= {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE}
        if self.context.plan.may_migrate:
            # A classic group before its first generation has no protocol, and Kafka's migration of it fails with these errors.
            allowed |= {ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.UNKNOWN_SERVER_ERROR}
        group = self.context.brokers.group
        if group is not None and group.generation_id == self._loaded:
            allowed.add(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not isinstance(error, BrokerError) or error.code not in allowed:
            raise self.violation(f"{process.client_id} ended: {error}")


class Convergence(Invariant):
    """Within 5 minutes, two session timeouts and three rebalance timeouts after the last action the group is Stable: its
    members are the running processes, each subscribed partition is assigned, and every process owns exactly its assignment.
    That holds for classic, consumer and migrated groups."""

    name = "converges"

    def finish(self) -> None:
        brokers, processes = self.context.brokers, self.context.processes()
        group: ClassicGroup | ConsumerGroup | None = brokers.group or brokers.consumer_group
        if group is None or group.state != GroupState.STABLE:
            raise self.violation(f"the group is {'not there' if group is None else group.state}")
        running = {process.member_id: process.client_id for process in processes}
        assigned = _assigned(group) if isinstance(group, ClassicGroup) else _reconciled(group)
        if running.keys() != assigned.keys():
            raise self.violation(f"{sorted(running)} are running, {sorted(assigned)} are members")
        for process in processes:
            if not process.is_stable:
                raise self.violation(f"{process.client_id} is {process.membership.state.value}")
            if process.owned != assigned[process.member_id]:
                owned, expected = sorted(process.owned), sorted(assigned[process.member_id])
                raise self.violation(f"{process.client_id} owns {owned}, but is assigned {expected}")
        topics = {topic for process in processes for topic in process.topics}
        subscribed = {(topic, n) for topic in topics for n in range(brokers.partition_counts.get(topic, 0))}
        if missing := sorted(subscribed.difference(*assigned.values())):
            raise self.violation(f"{missing[0][0]}-{missing[0][1]} is assigned to no member")
