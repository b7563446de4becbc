"""ConsumerGroupHeartbeat requests of a member (KIP-848): they join, report changes, and bring the assignment.

A heartbeat is sent at the interval that the coordinator sets, at once to join or to acknowledge an assignment, and never while
another one is in flight. Sources: ``AbstractHeartbeatRequestManager``,
``ConsumerHeartbeatRequestManager``.
"""

import enum
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupcoord.client import error_reactions
from groupcoord.client.client_errors import BrokerError, DisconnectedError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.context import MemberActions, in_order
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from groupcoord.protocol.errors import ErrorCode

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""The epoch with which a static member leaves temporarily: its partitions stay reserved until its session times out."""


class ConsumerMemberState(enum.Enum):
    """The state of a member of the consumer protocol (``MemberState``)."""

    UNSUBSCRIBED = "Unsubscribed"
    """It is not in the group: it has not subscribed yet, or has left."""
    JOINING = "Joining"
    """The heartbeat with epoch 0 is to be sent, or is not answered yet."""
    RECONCILING = "Reconciling"
    """It must change to a new assignment."""
    ACKNOWLEDGING = "Acknowledging"
    """It has changed to its assignment; the heartbeat that acknowledges it is to be sent."""
    STABLE = "Stable"
    """It owns what it is assigned, and has acknowledged it."""
    FENCED = "Fenced"
    """The coordinator has removed or fenced it: it gives up all it owned, then joins again."""
    PREPARE_LEAVING = "PrepareLeaving"
    """It is being closed, and gives up all it owns."""
    STALE = "Stale"
    """The user did not poll in time, so it has left; it joins again when the user polls."""
    FATAL = "Fatal"
    """It has failed."""


IN_GROUP = frozenset(
    {
        ConsumerMemberState.JOINING,
        ConsumerMemberState.RECONCILING,
        ConsumerMemberState.ACKNOWLEDGING,
        ConsumerMemberState.STABLE,
    }
)
"""The states of a member that is in its group."""


class LocalAssignment(NamedTuple):
    """Assigned partitions by topic id. ``local_epoch`` is incremented with every change, so that an assignment that is revoked
    and assigned again counts as new.
    """

    local_epoch: int
    partitions: Mapping[uuid.UUID, frozenset[int]]


NO_ASSIGNMENT = LocalAssignment(-1, {})


class ConsumerMember(MemberActions):
    """The state shared by the classes that make up a member of the consumer protocol."""

    def __init__(self, settings: MemberSettings, member_id: str, backoff: ExponentialBackoff) -> None:
        super().__init__(settings, backoff)
        self._member_id = member_id
        self.state = ConsumerMemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        self.subscription: frozenset[str] = frozenset()
        self.pattern: str | None = None
        self.target = NO_ASSIGNMENT
        """What the coordinator has assigned."""
        self.current = NO_ASSIGNMENT
        """What the member has changed to: it owns exactly this."""

    @property
    def member_id(self) -> str:
        """The id that the member has generated itself (KIP-1082)."""
        return self._member_id

    def forget_assignments(self) -> None:
        """The member owns nothing and is assigned nothing."""
        self.current = self.target = NO_ASSIGNMENT


@dataclass(slots=True)
class SentFields:
    """The fields that were sent already and need not be repeated (``SentFields``)."""

    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    assignment: LocalAssignment | None = field(default=None)


class ConsumerHeartbeater:
    """Sends heartbeats. ``on_success`` gets the responses without error, ``on_fenced`` the reason why it is fenced."""

    def __init__(
        self,
        member: ConsumerMember,
        on_success: Callable[[ConsumerGroupHeartbeatResponse], None],
        on_fenced: Callable[[str], None],
    ) -> None:
        self._member = member
        self._on_success = on_success
        self._on_fenced = on_fenced
        self._sent = SentFields()
        self._interval_ms = 0
        self._due_ms = 0
        self._retry_at_ms = 0
        self._attempts = 0
        self._ticket: int | None = None

    def next_deadline(self) -> int | None:
        """When the next heartbeat is due (ms), or None."""
        member = self._member
        beats = member.state in IN_GROUP or member.state is ConsumerMemberState.PREPARE_LEAVING
        if not beats or member.coordinator is None or self._ticket is not None:
            return None
        joins = member.state is ConsumerMemberState.JOINING and member.epoch == JOIN_EPOCH
        at_once = joins or member.state is ConsumerMemberState.ACKNOWLEDGING
        # Deviation: while the coordinator is loading, Kafka's joining consumer retries without back-off.
        return self._retry_at_ms if at_once else max(self._due_ms, self._retry_at_ms)

    def step(self) -> bool:
        """Send a heartbeat if one is due; returns whether it did."""
        due_ms, coordinator = self.next_deadline(), self._member.coordinator
        if due_ms is None or coordinator is None or due_ms > self._member.now_ms:
            return False
        self._send(coordinator)
        return True

    def forget(self) -> None:
        """The member is out of the group: ignore the request in flight, and send all fields next time."""
        self._sent = SentFields()
        self._ticket = None
        self._attempts = self._retry_at_ms = 0

    def send_leave(self, reason: str, done: Callable[[], None]) -> bool:
        """Send the heartbeat that leaves the group, then call ``done``. Returns False if no coordinator is known."""
        member = self._member
        coordinator = member.coordinator
        self.forget()
        if coordinator is None:
            return False
        member.emit(e.LeaveSent, reason=reason)
        static = member.settings.instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=member.settings.group_id,
            member_id=member.member_id,
            member_epoch=LEAVE_STATIC_EPOCH if static else LEAVE_EPOCH,
            instance_id=member.settings.instance_id,
        )
        # The response does not matter: if the request is lost, the session times out.
        member.start_action(
            lambda ticket: a.SendRequest(ticket, coordinator, request, member.settings.request_timeout_ms),
            lambda _: done(),
            lambda _: done(),
        )
        return True

    # Requests.

    def _send(self, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        request = self._request()
        if member.state is ConsumerMemberState.JOINING:
            subscription = ", ".join(sorted(member.subscription)) if member.pattern is None else member.pattern
            member.emit(e.HeartbeatJoinSent, subscription=subscription)
        self._due_ms = member.now_ms + self._interval_ms
        ticket = 0

        def current() -> bool:
            """Is the response still of interest? Not if the member has left since."""
            return self._ticket == ticket

        ticket = self._ticket = member.start_action(
            lambda given: a.SendRequest(given, coordinator, request, member.settings.request_timeout_ms),
            lambda response: self._answered(response) if current() else None,
            lambda error: self._failed(error, coordinator) if current() else None,
        )
        if member.state is ConsumerMemberState.ACKNOWLEDGING:
            member.emit(e.AssignmentAcknowledged, owns=in_order(member.owned))
            reconciled = member.current == member.target
            member.state = ConsumerMemberState.STABLE if reconciled else ConsumerMemberState.RECONCILING

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        """With all fields to join, and after an error; otherwise with those that changed since the last heartbeat."""
        member, settings, sent = self._member, self._member.settings, self._sent
        everything = member.state is ConsumerMemberState.JOINING
        timeout_ms, assignor = settings.max_poll_interval_ms, settings.remote_assignor
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            instance_id=settings.instance_id,
            rack_id=settings.rack_id if everything else None,
            rebalance_timeout_ms=timeout_ms if everything or timeout_ms != sent.rebalance_timeout_ms else -1,
            subscribed_topic_names=(
                tuple(sorted(member.subscription)) if everything or member.subscription != sent.topics else None
            ),
            subscribed_topic_regex=(
                (member.pattern or "")
                if (everything and member.pattern is not None) or member.pattern != sent.pattern
                else None
            ),
            server_assignor=assignor if everything or assignor != sent.assignor else None,
            topic_partitions=_listed(member.current) if everything or member.current != sent.assignment else None,
        )
        self._sent = SentFields(timeout_ms, member.subscription, member.pattern, assignor, member.current)
        return request

    # Answers.

    def _answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        member = self._member
        self._ticket = None
        code = ErrorCode(response.error_code)
        reaction = error_reactions.to_consumer_group_heartbeat(code)
        if reaction is ErrorReaction.GO_ON:
            self._attempts = self._retry_at_ms = 0
            if response.heartbeat_interval_ms != self._interval_ms:
                self._interval_ms = response.heartbeat_interval_ms
                self._due_ms = member.now_ms + self._interval_ms
            self._on_success(response)
            return
        error = BrokerError(code, f"ConsumerGroupHeartbeat ({response.error_message or 'no message'})")
        if reaction is ErrorReaction.FAIL:
            member.fail(error)
            return
        member.emit(e.RequestFailed, request="ConsumerGroupHeartbeat", error=code.name, then=reaction.value)
        self._sent, self._due_ms = SentFields(), member.now_ms
        if reaction is ErrorReaction.FIND_COORDINATOR:
            member.lose_coordinator(f"it answered ConsumerGroupHeartbeat with {code.name}")
        elif reaction is ErrorReaction.FENCED:
            self._attempts = self._retry_at_ms = 0
            self._on_fenced(f"a heartbeat was answered {code.name}")
        else:
            if reaction is ErrorReaction.TELL:
                member.add_action(a.RaiseError(error, final=False))
            self._back_off()

    def _failed(self, error: Exception, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        self._ticket = None
        if not isinstance(error, DisconnectedError):
            member.fail(error)
            return
        member.emit(
            e.RequestFailed,
            request="ConsumerGroupHeartbeat",
            error=str(error),
            then=ErrorReaction.FIND_COORDINATOR.value,
        )
        if member.coordinator == coordinator:
            member.lose_coordinator(str(error))
        self._sent, self._due_ms = SentFields(), member.now_ms
        self._back_off()

    def _back_off(self) -> None:
        self._retry_at_ms = self._member.now_ms + self._member.backoff.delay_ms(self._attempts)
        self._attempts += 1


def _listed(assignment: LocalAssignment) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(partitions)))
        for topic_id, partitions in sorted(assignment.partitions.items())
    )
