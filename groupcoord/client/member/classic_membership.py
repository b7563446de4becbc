"""Membership: a group member that uses the classic protocol (JoinGroup, SyncGroup, Heartbeat), as a state machine without I/O.

Kafka's class: ``ConsumerCoordinator``.


Its driver calls one method for each event, with the time, carries out the returned actions in order, and calls ``expire`` when
``next_deadline`` is reached. It rebalances eagerly or cooperatively (KIP-429), as a dynamic or static member (KIP-345). The
driver runs the assignor, so that a slow assignor does not delay heartbeats.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from groupcoord.assignors import Assignor, RebalanceProtocol
from groupcoord.client import error_reactions
from groupcoord.client.client_errors import BrokerError, ClientError, CommitFailedError, RebalanceInProgressError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.exponential_backoff import ExponentialBackoff
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.classic_heartbeat import Heartbeater
from groupcoord.client.member.classic_rebalance import Rebalance
from groupcoord.client.member.context import (
    NO_GENERATION,
    Generation,
    MemberContext,
    MemberState,
    shortened,
)
from groupcoord.client.member.coordinator_lookup import CoordinatorLookup
from groupcoord.client.member.group_member import GroupMember
from groupcoord.client.member.member_settings import MemberSettings
from groupcoord.core.events import Answered, TimerFired
from groupcoord.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from groupcoord.protocol.errors import ErrorCode


class Membership(GroupMember):
    """One member of one group, by the classic protocol.

    ``assignors`` are in order of preference; ``chance`` returns a number from 0 up to 1, for the jitter of back-offs. Raises
    ValueError for assignors without a common rebalance protocol.
    """

    def __init__(self, settings: MemberSettings, assignors: Sequence[Assignor], *, chance: Callable[[], float]) -> None:
        by_name = {assignor.name: assignor for assignor in assignors}
        if len(by_name) != len(assignors):
            raise ValueError("two assignors have the same name")
        protocol = common_protocol({name: each.protocols for name, each in by_name.items()})
        backoff = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, chance)
        self._member = MemberContext(settings, by_name, protocol, backoff)
        self._heart = Heartbeater(self._member)
        super().__init__(self._member, CoordinatorLookup(self._member, self._heart.session_renewed))
        self._rebalance = Rebalance(self._member, self._heart)
        self._ending = Shutdown(self._member, self._rebalance)
        self._member.on_failure = self._ending.fail
        self._polled_too_late = False

    def __repr__(self) -> str:
        member = self._member
        return (
            f"<Membership {member.settings.group_id} {member.state.value} {member.generation.member_id or 'nobody'} "
            f"gen={member.generation.generation_id} owns {len(member.owned)}>"
        )

    # Events.

    def subscribe(self, topics: Iterable[str], now_ms: int) -> list[a.Action]:
        """Subscribe to ``topics``; a changed subscription needs a rebalance. Raises ValueError for none."""
        wanted = frozenset(topics)
        if not wanted:
            raise ValueError("a member of a group subscribes to one topic at least")
        self._member.begin_action(now_ms, "subscribe")
        self._member.subscription = wanted
        return self._advance()

    def unsubscribe(self, now_ms: int) -> list[a.Action]:
        """Leave the group, after the callback for what is owned, or end the manual assignment; it may subscribe again."""
        self._member.begin_action(now_ms, "unsubscribe")
        self._member.subscription, self._member.manual = frozenset(), False
        self._ending.unsubscribe("the consumer unsubscribed from all topics")
        return self._advance()

    def rejoin(self, reason: str, now_ms: int) -> list[a.Action]:
        """The user wants a rebalance (``enforceRebalance``, KIP-568)."""
        self._member.begin_action(now_ms, "rejoin")
        self._member.request_rejoin(reason)
        return self._advance()

    def polled(self, now_ms: int) -> list[a.Action]:
        """The user has begun to poll: callbacks may run until ``poll_ended``."""
        self._member.begin_action(now_ms, "poll")
        self._member.user_present = True
        self._polled_too_late = False
        self._heart.user_polled()
        return self._advance()

    def poll_ended(self, now_ms: int) -> list[a.Action]:
        """The poll of the user has returned: no callback begins until the next poll."""
        self._member.begin_action(now_ms, "poll")
        self._member.user_present = False
        self._heart.user_polled()
        return self._advance()

    def commit_answered(self, code: ErrorCode, sent: Generation, now_ms: int) -> list[a.Action]:
        """A commit sent as ``sent`` returned ``code`` (``OffsetCommitResponseHandler``).

        Deviation: Kafka's consumer also leaves its generation because of the response to a commit of an earlier one.
        """
        member = self._member
        member.begin_event(now_ms, Answered("OffsetCommit", code.name))
        reaction = error_reactions.to_offset_commit(code)
        if reaction is ErrorReaction.FIND_COORDINATOR:
            member.lose_coordinator(f"it answered OffsetCommit with {code.name}")
        elif reaction is ErrorReaction.REJOIN:
            member.request_rejoin("offset commit failed since group is already rebalancing")
        elif member.manual:
            pass  # a commit without a member says nothing about its generation
        elif sent == member.generation and reaction in (ErrorReaction.RESET_MEMBER, ErrorReaction.RESET_GENERATION):
            member.reset(f"OffsetCommit was answered {code.name}", forget_id=reaction is ErrorReaction.RESET_MEMBER)
        elif sent == member.generation and code == ErrorCode.FENCED_INSTANCE_ID:
            member.fail(BrokerError(code, "OffsetCommit"))
        return self._advance()

    def leave(self, reason: str, now_ms: int) -> list[a.Action]:
        """Close the member; ``MembershipEnded`` is the last action. Callbacks may run until then."""
        self._member.begin_action(now_ms, "leave")
        self._member.user_present = True
        self._ending.close(reason)
        return self._advance()

    def expire(self, now_ms: int) -> list[a.Action]:
        """Handle the deadlines that are reached at ``now_ms``."""
        member = self._member
        member.begin_event(now_ms, TimerFired("member", member.settings.group_id, member.generation.member_id, now_ms))
        self._search.expire()
        self._rebalance.progress.expire()
        if self._heart.expire():
            self._polled_too_late = True
            member.emit(e.PolledTooLate, max_poll_interval_ms=member.settings.max_poll_interval_ms)
            self._ending.leave_group("consumer poll timeout has expired.")
            member.reset("consumer pro-actively leaving the group", forget_id=True)
        return self._advance()

    def next_deadline(self) -> int | None:
        """When ``expire`` has something to do (ms), or None."""
        deadlines = [self._search.retry_at_ms, self._heart.next_deadline()]
        if not self._polled_too_late:
            deadlines.append(self._rebalance.progress.next_deadline())
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    # State.

    @property
    def state(self) -> MemberState:
        """Its state in the group."""
        return self._member.state

    @property
    def is_stable(self) -> bool:
        """Is it in the state Stable, with no callback running?"""
        return self._member.state is MemberState.STABLE and not self.in_callback

    @property
    def generation(self) -> Generation:
        """Its generation and member id."""
        return self._member.generation

    @property
    def failure(self) -> Exception | None:
        """The fatal error that ended it, if any; it may not have been raised to the user yet."""
        return self._ending.failure

    @property
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata it needs: its subscription and, if it leads, those of all members."""
        return self._member.subscription | self._rebalance.group_topics

    @property
    def in_callback(self) -> bool:
        """Is a callback running? No records are returned meanwhile."""
        return self._rebalance.progress.callback_running

    def commits_as(self) -> Generation:
        """The generation for a commit (``generationIfStable``). Raises RebalanceInProgressError, CommitFailedError."""
        if self._member.state is MemberState.STABLE or self._member.manual:
            return self._member.generation
        if self._member.rebalancing:
            raise RebalanceInProgressError("the group is between two generations: poll until it is over, then commit")
        raise CommitFailedError("the member is not part of the group: it was thrown out, or has not joined yet")

    def fetches_as(self) -> Generation | None:
        """None: OffsetFetch names only members of the consumer protocol."""
        return None

    def commit_error(self, code: ErrorCode, sent: Generation) -> ClientError:
        """The exception for a commit, sent as ``sent``, that returned ``code``. Call it before ``commit_answered``."""
        reaction = error_reactions.to_offset_commit(code)
        if reaction is ErrorReaction.REJOIN:
            return RebalanceInProgressError("the group began to rebalance: poll until it is over, then commit")
        changed = sent != self._member.generation
        of_member = reaction in (ErrorReaction.RESET_MEMBER, ErrorReaction.RESET_GENERATION)
        if of_member or (changed and code == ErrorCode.FENCED_INSTANCE_ID):
            if changed and self._member.state is MemberState.PREPARING_REBALANCE:
                return RebalanceInProgressError("the commit was for a generation that is over: poll, then commit")
            return CommitFailedError(f"{code.name}: others may own the partitions by now")
        return BrokerError(code, "OffsetCommit")

    # The steps after each event.

    def _advance(self) -> list[a.Action]:
        member = self._member
        if member.ending:
            self._ending.step()
        if member.manual and not member.ending:
            self._search.begin()
        if member.subscription and not member.ending and not self._polled_too_late:
            self._notice_changes()
            self._search.begin()
            while self._rebalance.step():
                pass
        if member.ending:
            self._ending.step()
            if self._ending.callback_running and self._ending.failure is None:
                self._search.begin()  # the callback may commit
        return member.take_actions()

    def _notice_changes(self) -> None:
        """Rejoin if the subscription or the metadata has changed (``ConsumerCoordinator.rejoinNeededOrPending``)."""
        member, rebalance = self._member, self._rebalance
        if member.rejoin_needed:
            return
        assigned_from, joined = rebalance.assigned_from, rebalance.joined_subscription
        if assigned_from is not None and rebalance.watched(member.topics) != assigned_from:
            member.request_rejoin("cached metadata has changed")
        elif joined is not None and joined != member.subscription:
            member.request_rejoin("subscription has changed")


class Shutdown:
    """Ends the membership, or only the subscription: calls the last callback, sends LeaveGroup, raises the fatal error."""

    def __init__(self, member: MemberContext, rebalance: Rebalance) -> None:
        self._member = member
        self._rebalance = rebalance
        self.failure: Exception | None = None
        """The fatal error, if the member was not just closed."""
        self._raised = False
        self._closing: str | None = None
        self._unsubscribing: str | None = None
        self.callback_running = False
        self._leave_ticket: int | None = None
        self._left = False

    def fail(self, error: Exception) -> None:
        """A fatal error. LeaveGroup is sent at once, so that the group does not wait for this member.

        Deviation: after some of these errors Kafka's consumer retries at the next poll. A member of this client that
        failed stays failed, so that no error is overlooked in a loop; a new consumer is a fresh start.
        """
        member = self._member
        if member.ending:
            return
        member.ending = True
        self.failure = error
        member.emit(e.MemberFailed, error=str(error))
        self._rebalance.stop()
        if member.owned:
            member.add_action(a.StopDelivery(member.owned))
        self.leave_group(f"it failed: {type(error).__name__}")
        member.reset("the member failed", forget_id=True)

    def close(self, reason: str) -> None:
        """Close the member; LeaveGroup carries ``reason``."""
        if self._closing is None:
            self._closing = reason
            self._member.ending = True
            self._rebalance.stop()

    def unsubscribe(self, reason: str) -> None:
        """Leave the group until the member subscribes again; LeaveGroup carries ``reason``."""
        member = self._member
        if not member.ending:
            self._unsubscribing = reason
            member.ending = True
            self._rebalance.stop()
            if member.owned:
                member.add_action(a.StopDelivery(member.owned))

    def step(self) -> None:
        """Take the next steps that are possible: the callback waits for a poll, and LeaveGroup for the callback."""
        member = self._member
        if self.callback_running or self._rebalance.progress.callback_running:
            return
        if member.owned:
            if member.user_present or self._unsubscribing is not None:  # the user polls, or called unsubscribe
                self._call_back()
            return
        if self._unsubscribing is not None:
            self._unsubscribed(self._unsubscribing)
        if self.failure is not None and not self._raised:
            self._raised = True
            member.add_action(a.RaiseError(self.failure, final=True))
        if self._closing is not None and not self._left and self._leave_ticket is None:
            self.leave_group(self._closing)
            member.state = MemberState.UNJOINED
            if self._leave_ticket is None:
                self._left = True
                member.add_action(a.MembershipEnded())

    def _unsubscribed(self, reason: str) -> None:
        """All partitions are given up: leave the group, and return to the state before joining."""
        member = self._member
        self.leave_group(reason)
        self._unsubscribing = None
        member.ending = self.failure is not None or self._closing is not None
        member.state, member.generation = MemberState.UNJOINED, NO_GENERATION
        member.rejoin_needed, member.rejoin_reason, member.prepare_needed = True, "", True
        self._rebalance.forget()

    def _call_back(self) -> None:
        """Call the callback for all owned partitions (``onLeavePrepare``)."""
        member = self._member
        lost = member.has_no_generation or member.rebalancing
        news = a.CallbackKind.LOST if lost else a.CallbackKind.REVOKED

        def returned() -> None:
            self.callback_running = False

        self.callback_running = True
        member.give_up(news, returned)

    def leave_group(self, reason: str) -> None:
        """Send LeaveGroup, unless the member is static, has no member id, or knows no coordinator."""
        member = self._member
        coordinator, member_id = member.coordinator, member.generation.member_id
        static = member.settings.instance_id is not None
        if static or coordinator is None or member.state is MemberState.UNJOINED or not member_id:
            return
        member.emit(e.LeaveSent, reason=reason)
        request = LeaveGroupRequest(
            group_id=member.settings.group_id,
            members=(MemberIdentity(member_id=member_id, reason=shortened(reason)),),
        )
        # The response does not matter: if the request is lost, the session times out.
        self._leave_ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, coordinator, request, member.settings.request_timeout_ms),
            lambda _: self._leave_answered(),
            lambda _: self._leave_answered(),
        )

    def _leave_answered(self) -> None:
        self._leave_ticket = None


def common_protocol(supported: Mapping[str, Iterable[RebalanceProtocol]]) -> RebalanceProtocol:
    """The rebalance protocol of a member with these assignors: the highest that all of them support.

    It is then valid whichever assignor the group chooses (KIP-429). Raises ValueError if there is none.
    """
    common = set(RebalanceProtocol).intersection(*map(set, supported.values()))
    if not supported or not common:
        raise ValueError(f"the assignors {', '.join(supported) or '(none)'} have no rebalance protocol in common")
    return max(common)
