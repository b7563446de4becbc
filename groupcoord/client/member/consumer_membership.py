"""ConsumerMembership: a member by the consumer protocol (KIP-848) as a state machine without I/O.

Drive it as :class:`~groupcoord.client.member.group_member.GroupMember` says, with an
:class:`~groupcoord.client.member.action_executor.ActionExecutor`, as the member of the classic protocol:

1. ``subscribe`` or ``subscribe_pattern``: it finds the coordinator (``SendRequest`` of FindCoordinator) and joins
   (``SendRequest`` of ConsumerGroupHeartbeat with epoch 0). All its heartbeats are such actions: carry them out and answer
   with ``complete(ticket, response, now_ms)`` or ``fail(ticket, DisconnectedError(…), now_ms)``.
2. ``polled`` and ``poll_ended`` begin and end a poll of the user. Only in between callbacks run (``InvokeCallback``) and the
   owned partitions change (``SetOwned``). A driver whose user always polls calls ``polled`` once.
3. ``CommitOffsets`` requests a commit before a revocation, ``FetchMetadata`` the names of topics known by id.
4. ``expire(now_ms)`` when ``next_deadline()`` is reached: heartbeat interval, back-off, ``max.poll.interval.ms``.
5. ``leave`` closes it: callback, heartbeat with epoch -1 (static member: -2), ``MembershipEnded``.

Send OffsetCommit (v9 or higher) with the member id and epoch of ``commits_as()``, OffsetFetch with those of ``fetches_as()``.
The member never requests RunAssignor, because the coordinator assigns.

Sources: ``AbstractMembershipManager``, ``ConsumerMembershipManager``.
"""

from collections.abc import Callable, Iterable

from groupcoord.client import error_reactions
from groupcoord.client.client_errors import BrokerError, ClientError, CommitFailedError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.consumer_heartbeat import (
    IN_GROUP,
    JOIN_EPOCH,
    NO_ASSIGNMENT,
    ConsumerHeartbeater,
    ConsumerMember,
    ConsumerMemberState,
    LocalAssignment,
)
from groupcoord.client.member.consumer_reconciliation import Reconciliation
from groupcoord.client.member.context import NO_GENERATION, Generation
from groupcoord.client.member.coordinator_lookup import CoordinatorLookup
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.core.events import Answered, TimerFired
from groupcoord.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from groupcoord.protocol.errors import ErrorCode

_GIVES_UP = frozenset(
    {
        ConsumerMemberState.FENCED,
        ConsumerMemberState.STALE,
        ConsumerMemberState.FATAL,
        ConsumerMemberState.PREPARE_LEAVING,
    }
)
_LOST_MEMBER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.ILLEGAL_GENERATION,
    }
)


class ConsumerMembership(GroupMember):
    """One member of one group, by the consumer protocol.

    ``member_id`` is unique (KIP-1082): a random UUID of 22 characters in Kafka's clients. ``chance`` returns a number
    from 0 up to 1, for the jitter of back-offs.
    """

    def __init__(self, settings: MemberSettings, member_id: str, *, chance: Callable[[], float]) -> None:
        backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, chance)
        self._member = ConsumerMember(settings, member_id, backoff)
        super().__init__(self._member, CoordinatorLookup(self._member))
        self._heart = ConsumerHeartbeater(self._member, self._heartbeat_succeeded, self._fenced)
        self._reconciliation = Reconciliation(self._member)
        self._member.on_failure = self._fail
        self._failure: Exception | None = None
        self._raised = False
        self._releasing = False
        self._closing: str | None = None
        self._unsubscribing: str | None = None
        self._leaving = self._ended = False
        self._poll_due_ms = 0

    def __repr__(self) -> str:
        member = self._member
        return (
            f"<ConsumerMembership {member.settings.group_id} {member.state.value} {member.member_id} "
            f"epoch={member.epoch} owns {len(member.owned)}>"
        )

    # Events.

    def subscribe(self, topics: Iterable[str], now_ms: int) -> list[a.Action]:
        """Subscribe to ``topics``; the next heartbeat says so. Raises ValueError for none."""
        wanted = frozenset(topics)
        if not wanted:
            raise ValueError("a member of a group subscribes to one topic at least")
        return self._subscribe(wanted, None, now_ms)

    def subscribe_pattern(self, pattern: str, now_ms: int) -> list[a.Action]:
        """Subscribe to the topics whose names match ``pattern``, an RE2 regular expression.

        The coordinator resolves it, so a new topic joins the subscription when the coordinator notices it.
        """
        return self._subscribe(frozenset(), pattern, now_ms)

    def unsubscribe(self, now_ms: int) -> list[a.Action]:
        """Leave the group, after the callback for what is owned, or end the manual assignment; it may subscribe again."""
        member = self._member
        member.begin_action(now_ms, "unsubscribe")
        member.subscription, member.pattern, member.manual = frozenset(), None, False
        if (
            self._closing is None
            and self._unsubscribing is None
            and member.state is not ConsumerMemberState.UNSUBSCRIBED
        ):
            self._unsubscribing = "the consumer unsubscribed from all topics"
            self._reconciliation.abort()
            if member.owned:
                member.add_action(a.StopDelivery(member.owned))
            if member.state in IN_GROUP:
                member.state = ConsumerMemberState.PREPARE_LEAVING
        return self._advance()

    def rejoin(self, reason: str, now_ms: int) -> list[a.Action]:
        """Nothing: the coordinator decides when a group rebalances (``AsyncKafkaConsumer.enforceRebalance``)."""
        self._member.begin_action(now_ms, f"rejoin: {reason}")
        return self._advance()

    def polled(self, now_ms: int) -> list[a.Action]:
        """The user has begun to poll: callbacks may run until ``poll_ended``; a member that is stale joins again."""
        self._member.begin_action(now_ms, "poll")
        self._member.user_present = True
        self._reconciliation.user_polled()
        return self._advance()

    def poll_ended(self, now_ms: int) -> list[a.Action]:
        """The poll of the user has returned: no callback begins until the next poll."""
        self._member.begin_action(now_ms, "poll")
        self._member.user_present = False
        self._poll_due_ms = now_ms + self._member.settings.max_poll_interval_ms
        return self._advance()

    def commit_answered(self, code: ErrorCode, sent: Generation, now_ms: int) -> list[a.Action]:
        """A commit sent as ``sent`` returned ``code``; only heartbeats tell whether the member is fenced."""
        del sent
        self._member.begin_event(now_ms, Answered("OffsetCommit", code.name))
        if error_reactions.to_offset_commit(code) is ErrorReaction.FIND_COORDINATOR:
            self._member.lose_coordinator(f"it answered OffsetCommit with {code.name}")
        return self._advance()

    def leave(self, reason: str, now_ms: int) -> list[a.Action]:
        """Close the member; ``MembershipEnded`` is the last action. Callbacks may run until then."""
        member = self._member
        member.begin_action(now_ms, "leave")
        member.user_present = True
        if self._closing is None:
            self._closing = reason
            self._reconciliation.abort()
            if member.state in IN_GROUP:
                member.state = ConsumerMemberState.PREPARE_LEAVING
        return self._advance()

    def expire(self, now_ms: int) -> list[a.Action]:
        """Do what is due at ``now_ms``."""
        member = self._member
        member.begin_event(now_ms, TimerFired("member", member.settings.group_id, member.member_id, now_ms))
        self._search.expire()
        if member.state in IN_GROUP and not member.user_present and self._poll_due_ms <= now_ms:
            member.emit(e.PolledTooLate, max_poll_interval_ms=member.settings.max_poll_interval_ms)
            self._heart.send_leave("consumer poll timeout has expired.", lambda: None)
            self._leave_group(ConsumerMemberState.STALE)
        return self._advance()

    def next_deadline(self) -> int | None:
        """When ``expire`` has something to do (ms), or None."""
        member = self._member
        deadlines = [
            self._search.retry_at_ms,
            self._heart.next_deadline(),
            self._reconciliation.next_deadline(),
            self._poll_due_ms if member.state in IN_GROUP and not member.user_present else None,
        ]
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    # State.

    @property
    def state(self) -> ConsumerMemberState:
        """Its state in the group."""
        return self._member.state

    @property
    def is_stable(self) -> bool:
        """Is it in the state Stable, with no callback running?"""
        return self._member.state is ConsumerMemberState.STABLE and not self.in_callback

    @property
    def generation(self) -> Generation:
        """Its member id and its epoch; -1 if it is not in the group."""
        member = self._member
        return (
            Generation(member.epoch, member.member_id) if member.epoch > 0 else Generation(member_id=member.member_id)
        )

    @property
    def failure(self) -> Exception | None:
        """The fatal error that ended it, if any; it may not have been raised to the user yet."""
        return self._failure

    @property
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata it needs: the subscribed and the assigned ones."""
        return self._member.subscription | self._reconciliation.names.topics()

    @property
    def in_callback(self) -> bool:
        """Is a callback running? No records are returned meanwhile."""
        return self._releasing or self._reconciliation.in_callback

    def commits_as(self) -> Generation:
        """The member id and the epoch for a commit. Raises CommitFailedError if it is not in the group.

        Deviation: Kafka's consumer then sends the commit without a member id, and the coordinator refuses it.
        """
        if self._member.manual:
            return NO_GENERATION
        if self._member.epoch > 0:
            return self.generation
        raise CommitFailedError("the member is not part of the group: it was thrown out, or has not joined yet")

    def fetches_as(self) -> Generation | None:
        """The member id and the epoch for a fetch of offsets; None if it is not in the group."""
        return self.generation if self._member.epoch > 0 else None

    def commit_error(self, code: ErrorCode, sent: Generation) -> ClientError:
        """The exception for a commit that returned ``code``."""
        del sent
        if code in _LOST_MEMBER:
            return CommitFailedError(f"{code.name}: others may own the partitions by now")
        return BrokerError(code, "OffsetCommit")

    # The steps after each event.

    def _advance(self) -> list[a.Action]:
        member = self._member
        while self._release() or self._reconciliation.step() or self._heart.step():
            pass
        if member.manual or member.state not in (ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.FATAL):
            self._search.begin()
        return member.take_actions()

    def _subscribe(self, topics: frozenset[str], pattern: str | None, now_ms: int) -> list[a.Action]:
        member = self._member
        member.begin_action(now_ms, "subscribe")
        member.subscription, member.pattern = topics, pattern
        if member.state is ConsumerMemberState.UNSUBSCRIBED and self._closing is None:
            self._poll_due_ms = now_ms + member.settings.max_poll_interval_ms
            member.state = ConsumerMemberState.JOINING
        return self._advance()

    def _heartbeat_succeeded(self, response: ConsumerGroupHeartbeatResponse) -> None:
        member = self._member
        if member.epoch != response.member_epoch:
            member.epoch = response.member_epoch
            member.emit(e.EpochReached, epoch=member.epoch)
        if response.assignment is None or member.state not in IN_GROUP:
            return
        assigned = {
            each.topic_id: frozenset(each.partitions) for each in response.assignment.topic_partitions if each.topic_id
        }
        if member.target == NO_ASSIGNMENT or assigned != member.target.partitions:
            member.target = LocalAssignment(member.target.local_epoch + 1, assigned)
        if member.current != member.target:
            member.state = ConsumerMemberState.RECONCILING

    # Out of the group.

    def _fenced(self, reason: str) -> None:
        """The coordinator has fenced or removed the member (``transitionToFenced``)."""
        member = self._member
        member.emit(e.Fenced, reason=reason)
        leaving = member.state is ConsumerMemberState.PREPARE_LEAVING
        self._leave_group(ConsumerMemberState.UNSUBSCRIBED if leaving else ConsumerMemberState.FENCED)

    def _fail(self, error: Exception) -> None:
        """A fatal error (``transitionToFatal``).

        Deviation: Kafka's consumer raises it once. A member of this client that failed stays failed, so that no error is
        overlooked in a loop; a new consumer is a fresh start.
        """
        if self._failure is None and not self._ended:
            self._failure = error
            self._member.emit(e.MemberFailed, error=str(error))
            self._leave_group(ConsumerMemberState.FATAL)

    def _leave_group(self, state: ConsumerMemberState) -> None:
        """The member has left the group; it gives up its partitions when the user polls."""
        member = self._member
        member.state, member.epoch = state, JOIN_EPOCH
        self._heart.forget()
        self._reconciliation.abort()
        if member.owned:
            member.add_action(a.StopDelivery(member.owned))

    def _release(self) -> bool:
        """Give up all partitions, then do what the state requires. Returns whether there was a step."""
        member = self._member
        if self._ended or self.in_callback:
            return False
        if member.owned and (member.state in _GIVES_UP or self._closing is not None or self._unsubscribing is not None):
            may_call = member.user_present or self._unsubscribing is not None  # the user polls, or called unsubscribe
            if may_call:
                self._give_up()
            return may_call
        if member.state is ConsumerMemberState.FATAL and not self._raised and self._failure is not None:
            self._raised = True
            member.add_action(a.RaiseError(self._failure, final=True))
        if self._unsubscribing is not None and self._closing is None:
            self._unsubscribed(self._unsubscribing)
            return True
        if self._closing is not None:
            return self._close(self._closing)
        joins = member.state is ConsumerMemberState.FENCED or (
            member.state is ConsumerMemberState.STALE and member.user_present
        )
        if joins:
            member.forget_assignments()
            self._reconciliation.names.forget()
            member.state = ConsumerMemberState.JOINING
        return joins

    def _give_up(self) -> None:
        """Call the callback for all that the member owns."""
        member = self._member
        in_group = member.state is ConsumerMemberState.PREPARE_LEAVING and member.epoch > 0
        news = a.CallbackKind.REVOKED if in_group else a.CallbackKind.LOST

        def returned() -> None:
            self._releasing = False

        self._releasing = True
        member.give_up(news, returned)

    def _unsubscribed(self, reason: str) -> None:
        """All partitions are given up: leave the group if the member is in it, and return to the state before joining."""
        member = self._member
        self._unsubscribing = None
        if member.state is ConsumerMemberState.PREPARE_LEAVING:
            self._leaving = self._heart.send_leave(reason, self._has_left)
        if member.state is not ConsumerMemberState.FATAL:
            subscribed_again = member.subscription or member.pattern is not None
            member.state = ConsumerMemberState.JOINING if subscribed_again else ConsumerMemberState.UNSUBSCRIBED
        member.epoch = JOIN_EPOCH
        member.forget_assignments()
        self._reconciliation.names.forget()

    def _close(self, reason: str) -> bool:
        """All partitions are given up: leave the group if the member is in it. Returns whether there was a step."""
        member = self._member
        if self._leaving:
            return False
        told = member.state is ConsumerMemberState.PREPARE_LEAVING and self._heart.send_leave(reason, self._end)
        member.epoch = JOIN_EPOCH
        if member.state is not ConsumerMemberState.FATAL:
            member.state = ConsumerMemberState.UNSUBSCRIBED
        if told:
            self._leaving = True
        else:
            self._end()
        return True

    def _has_left(self) -> None:
        self._leaving = False

    def _end(self) -> None:
        self._ended = True
        self._member.add_action(a.MembershipEnded())
