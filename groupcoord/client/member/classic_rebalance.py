"""A rebalance by the classic protocol: revoke, JoinGroup, assign if elected leader, SyncGroup, apply the assignment.

Sources: ``AbstractCoordinator.joinGroupIfNeeded``, ``ConsumerCoordinator.onJoinPrepare``, ``onLeaderElected`` and
``onJoinComplete``; KIP-429. The user's callbacks run only while the user polls, so that no partition is revoked while the user
processes its records. All other steps happen between polls, too.

:class:`RebalanceProgress` says what it waits for. The owned partitions change in :class:`Revocation`, before the member joins,
and in :class:`AssignmentApplier`, after SyncGroup, which also does the revocation of the cooperative protocol.
"""

import enum
from collections.abc import Callable, Iterable

from groupcoord.assignors import (
    Assignment,
    GroupSubscription,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
    as_leader,
    read_assignment,
    read_subscription,
    write_assignment,
)
from groupcoord.client import error_reactions
from groupcoord.client.client_errors import AssignorFailedError, BrokerError, DisconnectedError
from groupcoord.client.error_reactions import ErrorReaction
from groupcoord.client.member import actions as a
from groupcoord.client.member import member_events as e
from groupcoord.client.member.classic_heartbeat import Heartbeater
from groupcoord.client.member.context import (
    PROTOCOL_TYPE,
    Generation,
    MemberContext,
    MemberState,
    callback_failed,
    in_order,
    shortened,
)
from groupcoord.client.member.join_protocols import join_protocols
from groupcoord.client.member.metadata_and_commit_requests import MetadataSnapshot
from groupcoord.protocol.apis.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from groupcoord.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from groupcoord.protocol.errors import ErrorCode, WireError


class RebalancePhase(enum.Enum):
    """What the rebalance waits for."""

    IDLE = "nothing: the next step can begin"
    COMMITTING = "the commit of what was consumed"
    COMMITTED = "the user, to tell it what it gives up"
    REVOKING_BEFORE_JOIN = "the user's callback about what it gives up"
    JOINING = "the other members"
    FETCHING_METADATA = "the topics, to assign them"
    ASSIGNING = "the assignor"
    SYNCING = "the leader"
    SYNCED = "the user, to tell it what has changed"
    REVOKING = "the user's callback about what the assignment takes away"
    APPLYING = "the user's callback about what it gets"
    BACKING_OFF = "the right moment to try again"


_IN_A_GENERATION = (RebalancePhase.FETCHING_METADATA, RebalancePhase.ASSIGNING, RebalancePhase.SYNCING)
_IN_CALLBACK = (RebalancePhase.REVOKING_BEFORE_JOIN, RebalancePhase.REVOKING, RebalancePhase.APPLYING)


class RebalanceProgress:
    """The phase of a rebalance, the action it waits for, and its retries."""

    def __init__(self, member: MemberContext) -> None:
        self._member = member
        self.phase = RebalancePhase.IDLE
        self.ticket = 0
        """The ticket of the awaited action, if there is one."""
        self.retry_at_ms: int | None = None
        self._attempts = 0
        self._assigned_by_ms = 0
        """When the assignor that runs has to have ended."""

    @property
    def callback_running(self) -> bool:
        """Is a callback running?"""
        return self.phase in _IN_CALLBACK

    @property
    def obsolete(self) -> bool:
        """Does it wait for a response of a generation that has ended?"""
        return self.phase in _IN_A_GENERATION and self._member.state is not MemberState.COMPLETING_REBALANCE

    def stop_waiting(self) -> None:
        """Cancel the awaited action and the retry."""
        self.retry_at_ms = None
        self.phase = RebalancePhase.IDLE
        if self._member.is_pending(self.ticket):
            self._member.cancel_action(self.ticket)

    def next_deadline(self) -> int | None:
        """When ``expire`` has something to do (ms), or None."""
        return self._assigned_by_ms if self.phase is RebalancePhase.ASSIGNING else self.retry_at_ms

    def wait_for_assignor(self, ticket: int) -> None:
        """Wait for the assignor, for ``max.poll.interval.ms`` at most: after that the coordinator has removed the leader."""
        self._assigned_by_ms = self._member.now_ms + self._member.settings.max_poll_interval_ms
        self.phase, self.ticket = RebalancePhase.ASSIGNING, ticket

    def expire(self) -> None:
        """End the back-off if its time is over; fail the member if its assignor took too long."""
        if self.phase is RebalancePhase.ASSIGNING and self._assigned_by_ms <= self._member.now_ms:
            name, limit_ms = self._member.generation.protocol_name, self._member.settings.max_poll_interval_ms
            self._member.fail(
                AssignorFailedError(f"assignor {name}: it has not ended within max_poll_interval_ms={limit_ms} ms")
            )
        if self.retry_at_ms is not None and self.retry_at_ms <= self._member.now_ms:
            self.retry_at_ms = None
            self.phase = RebalancePhase.IDLE

    def succeeded(self) -> None:
        """Reset the back-off."""
        self._attempts = 0

    def invoke_callback(
        self,
        phase: RebalancePhase,
        news: a.CallbackKind,
        partitions: frozenset[TopicPartition],
        done: Callable[[Exception | None], None],
    ) -> None:
        """Call a callback of the user; then ``done`` is called with the exception that it raised, or None."""
        self.phase = phase
        self.ticket = self._member.invoke_callback(news, partitions, done)

    def handle_error(self, request: str, code: ErrorCode, reaction: ErrorReaction) -> None:
        """React to an error code."""
        member = self._member
        if reaction is ErrorReaction.FAIL:
            member.fail(BrokerError(code, request))
            return
        member.emit(e.RequestFailed, request=request, error=code.name, then=reaction.value)
        if reaction in (ErrorReaction.RESET_MEMBER, ErrorReaction.RESET_GENERATION):
            member.reset(f"{request} was answered {code.name}", forget_id=reaction is ErrorReaction.RESET_MEMBER)
        else:
            member.request_rejoin(f"rebalance failed due to {code.name}")
        if reaction is ErrorReaction.FIND_COORDINATOR:
            member.lose_coordinator(f"it answered {request} with {code.name}")
        if reaction in (ErrorReaction.FIND_COORDINATOR, ErrorReaction.RETRY):
            self._back_off()
        else:
            self.phase = RebalancePhase.IDLE

    def handle_failure(self, request: str, error: Exception, coordinator: a.CoordinatorNode | None) -> None:
        """A request failed without a response."""
        member = self._member
        if not isinstance(error, DisconnectedError):
            member.fail(error)
            return
        member.emit(e.RequestFailed, request=request, error=str(error), then=ErrorReaction.FIND_COORDINATOR.value)
        if coordinator is not None and member.coordinator == coordinator:
            member.lose_coordinator(str(error))
        member.request_rejoin(f"rebalance failed due to {type(error).__name__}")
        self._back_off()

    def _back_off(self) -> None:
        member = self._member
        self.phase = RebalancePhase.BACKING_OFF
        self.retry_at_ms = member.now_ms + member.backoff.delay_ms(self._attempts)
        self._attempts += 1


class Revocation:
    """Revokes all partitions if eager, those of unsubscribed topics if cooperative; without a generation all are lost."""

    def __init__(self, member: MemberContext, progress: RebalanceProgress) -> None:
        self._member = member
        self._progress = progress

    def prepare(self) -> bool:
        """Commit first, with auto-commit. Returns whether the revocation has begun."""
        member = self._member
        if self._to_revoke() is not None and not member.user_present:
            return False
        member.prepare_needed = False
        if member.settings.auto_commit and member.state is MemberState.STABLE and member.owned:
            if member.protocol is RebalanceProtocol.EAGER:
                member.add_action(a.StopDelivery(member.owned))
            self._progress.phase = RebalancePhase.COMMITTING
            # The coordinator removes a member that takes longer in a rebalance, so a later commit would fail.
            timeout_ms = member.settings.max_poll_interval_ms
            self._progress.ticket = member.start_action(
                lambda ticket: a.CommitOffsets(ticket, timeout_ms),
                lambda _: self._committed(),
                lambda _: self._committed(),
            )
            return True
        self._progress.phase = RebalancePhase.COMMITTED
        return True

    def _committed(self) -> None:
        self._progress.phase = RebalancePhase.COMMITTED

    def _to_revoke(self) -> tuple[a.CallbackKind, frozenset[TopicPartition]] | None:
        """The callback that is due before the member joins, and its partitions."""
        member = self._member
        if member.has_no_generation:
            return (a.CallbackKind.LOST, member.owned) if member.owned else None
        if member.protocol is RebalanceProtocol.EAGER:
            return a.CallbackKind.REVOKED, member.owned
        unwanted = frozenset(owned for owned in member.owned if owned[0] not in member.subscription)
        return (a.CallbackKind.REVOKED, unwanted) if unwanted else None

    def revoke(self) -> bool:
        """Call the callback once the user polls. Returns whether the step is done or in progress."""
        member = self._member
        revoking = self._to_revoke()
        if revoking is None:
            self._done()
            return True
        if not member.user_present:
            return False
        news, partitions = revoking

        def returned(error: Exception | None) -> None:
            member.owned -= partitions
            member.add_action(a.SetOwned(member.owned))
            if error is not None:
                member.raise_callback_error(news, error)
            self._done()

        self._progress.invoke_callback(RebalancePhase.REVOKING_BEFORE_JOIN, news, partitions, returned)
        return True

    def _done(self) -> None:
        self._progress.phase = RebalancePhase.IDLE


SHORTEST_ASSIGNMENT = 2
"""Bytes: the version field with which every assignment begins."""


class AssignmentApplier:
    """Applies the assignment of a SyncGroup response, and calls the callbacks for what changes."""

    def __init__(self, member: MemberContext, progress: RebalanceProgress) -> None:
        self._member = member
        self._progress = progress
        self.assignment = b""
        """The assignment of this member, in bytes."""
        self._error: Exception | None = None

    def complete(self) -> None:
        """Apply the assignment; the user polls, so callbacks may run (``onJoinComplete``)."""
        member = self._member
        if member.state is not MemberState.STABLE:
            self._progress.phase = RebalancePhase.IDLE  # the generation ended before its assignment was applied
            return
        try:
            assigned = self._read()
        except AssignorFailedError as failure:
            member.fail(failure)
            return
        member.prepare_needed = True
        if any(topic not in member.subscription for topic, _ in assigned):
            self._progress.phase = RebalancePhase.IDLE
            member.request_rejoin("received assignment does not match the current subscription")
            return
        new = frozenset(assigned)
        cooperative = member.protocol is RebalanceProtocol.COOPERATIVE
        gives_up = member.owned - new if cooperative else frozenset()
        member.emit(
            e.Synced,
            generation=member.generation.generation_id,
            keeps=in_order(member.owned & new),
            gains=in_order(new - member.owned),
            gives_up=in_order(gives_up),
        )
        self._error = None
        if not gives_up:
            self._take(assigned)
            return

        def returned(error: Exception | None) -> None:
            if error is not None:
                self._error = callback_failed(a.CallbackKind.REVOKED, error)
            if member.ending:
                member.owned -= gives_up
                member.add_action(a.SetOwned(member.owned))
                self._progress.phase = RebalancePhase.IDLE
                return
            member.request_rejoin("need to revoke partitions and re-join")
            self._take(assigned)

        self._progress.invoke_callback(RebalancePhase.REVOKING, a.CallbackKind.REVOKED, gives_up, returned)

    def _read(self) -> list[TopicPartition]:
        name = self._member.generation.protocol_name
        if len(self.assignment) < SHORTEST_ASSIGNMENT:
            raise AssignorFailedError(f"assignor {name}: the leader assigned nothing to this member, not even nothing")
        try:
            return read_assignment(self.assignment)
        except WireError as problem:
            raise AssignorFailedError(
                f"assignor {name}: what the leader assigned is unreadable: {problem}"
            ) from problem

    def _take(self, assigned: list[TopicPartition]) -> None:
        member = self._member
        try:
            member.assignors[str(member.generation.protocol_name)].on_assignment(
                assigned, member.generation.generation_id
            )
        except Exception as error:
            self._error = self._error or callback_failed(a.CallbackKind.ASSIGNED, error)
        gained = frozenset(assigned) - member.owned
        member.owned = frozenset(assigned)
        member.add_action(a.SetOwned(member.owned))

        def returned(error: Exception | None) -> None:
            first = self._error or (None if error is None else callback_failed(a.CallbackKind.ASSIGNED, error))
            if first is not None:
                member.add_action(a.RaiseError(first, final=False))
            self._progress.phase = RebalancePhase.IDLE

        self._progress.invoke_callback(RebalancePhase.APPLYING, a.CallbackKind.ASSIGNED, gained, returned)


JOIN_LAPSE_MS = 5_000
"""Added to the rebalance timeout to give the request timeout of JoinGroup (``JOIN_GROUP_TIMEOUT_LAPSE``)."""


class Rebalance:
    """Takes a member from one assignment to the next."""

    def __init__(self, member: MemberContext, heart: Heartbeater) -> None:
        self._member = member
        self._heart = heart
        self.progress = RebalanceProgress(member)
        self._revocation = Revocation(member, self.progress)
        self._assignment_applier = AssignmentApplier(member, self.progress)
        self.joined_subscription: frozenset[str] | None = None
        """The subscription that the last JoinGroup sent."""
        self.group_topics: frozenset[str] = frozenset()
        """The topics of all subscriptions, if this member leads."""
        self.assigned_from: MetadataSnapshot | None = None
        """The metadata from which this member, as the leader, made the last assignment."""

    def step(self) -> bool:
        """Take the next step that is possible now. Returns whether there was one."""
        member, progress = self._member, self.progress
        if member.ending:
            return False
        if progress.obsolete:
            # A heartbeat has ended the generation, so the awaited response may never come.
            progress.stop_waiting()
            member.rejoin_needed = True
            return True
        if progress.phase is RebalancePhase.IDLE and member.rejoin_needed:
            if member.prepare_needed:
                return self._revocation.prepare()
            return member.coordinator is not None and self._join(member.coordinator)
        if progress.phase is RebalancePhase.COMMITTED:
            return self._revocation.revoke()
        if progress.phase is RebalancePhase.SYNCED and (member.user_present or member.state is not MemberState.STABLE):
            self._assignment_applier.complete()
            return True
        return False

    def stop(self) -> None:
        """Stop waiting, except for a callback that is running."""
        if not self.progress.callback_running:
            self.progress.stop_waiting()

    def forget(self) -> None:
        """The member has left the group."""
        self.joined_subscription, self.assigned_from, self.group_topics = None, None, frozenset()

    # Joining.

    def _join(self, coordinator: a.CoordinatorNode) -> bool:
        member, settings = self._member, self._member.settings
        topics = sorted(member.subscription)
        member.state = MemberState.PREPARING_REBALANCE
        self.group_topics, self.assigned_from = frozenset(), None
        self.joined_subscription = member.subscription
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=member.generation.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=join_protocols(
                member.assignors, topics, in_order(member.owned), member.generation.generation_id, settings.rack_id
            ),
            reason=shortened(member.rejoin_reason),
        )
        member.emit(
            e.JoinSent,
            generation=member.generation.generation_id,
            protocol=member.protocol.name.lower(),
            assignors=tuple(member.assignors),
            keeps=in_order(member.owned),
            reason=member.rejoin_reason,
        )
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        self.progress.phase = RebalancePhase.JOINING
        self.progress.ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, coordinator, request, timeout_ms, parks=True),
            lambda response: self._join_answered(response, coordinator),
            lambda error: self.progress.handle_failure("JoinGroup", error, coordinator),
        )
        return True

    def _join_answered(self, response: JoinGroupResponse, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        code = ErrorCode(response.error_code)
        if code == ErrorCode.NONE and response.protocol_type not in (None, PROTOCOL_TYPE):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        reaction = error_reactions.to_join_group(code)
        if reaction is ErrorReaction.REJOIN_WITH_ID:
            member.generation = Generation(member_id=response.member_id)
            member.emit(e.MemberIdGiven)
            member.request_rejoin(f"need to re-join with the given member-id: {response.member_id}")
            self.progress.phase = RebalancePhase.IDLE
        elif reaction is not ErrorReaction.GO_ON:
            self.progress.handle_error("JoinGroup", code, reaction)
        elif member.state is not MemberState.PREPARING_REBALANCE:
            # A commit failed with UNKNOWN_MEMBER_ID meanwhile, so the member id of this JoinGroup is not valid any more.
            self.progress.handle_error("JoinGroup", ErrorCode.UNKNOWN_MEMBER_ID, ErrorReaction.RETRY)
        else:
            self._joined(response, coordinator)

    def _joined(self, response: JoinGroupResponse, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        member.generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        member.state = MemberState.COMPLETING_REBALANCE
        self._heart.start()
        name = response.protocol_name or ""
        member.emit(
            e.Joined,
            generation=response.generation_id,
            assignor=name,
            leader=response.leader,
            members=len(response.members),
        )
        if name not in member.assignors:
            member.fail(
                AssignorFailedError(f"assignor {name}: the coordinator chose it, but this member does not have it")
            )
        elif response.leader == response.member_id:
            self._lead(response, coordinator)
        else:
            self._sync((), coordinator)

    # Leading.

    def _lead(self, response: JoinGroupResponse, coordinator: a.CoordinatorNode) -> None:
        """Fetch metadata of all topics that any member subscribes to, then run the assignor (``onLeaderElected``)."""
        member = self._member
        try:
            subscriptions = subscriptions_of(response.members)
        except WireError as problem:
            member.fail(AssignorFailedError(f"a member sent a subscription that is none: {problem}"))
            return
        self.group_topics = frozenset(topic for each in subscriptions.values() for topic in each.topics)

        def learned(topics: MetadataSnapshot) -> None:
            member.topics = topics
            self.assigned_from = self.watched(topics)
            seen = topics.of(self.group_topics)
            group = as_leader(
                GroupSubscription(subscriptions=subscriptions, partitions=seen.partitions, racks=seen.racks)
            )
            if response.skip_assignment:
                member.emit(e.AssignmentSkipped)
                self._sync((), coordinator)
            else:
                self._assign(group, coordinator)

        self.progress.phase = RebalancePhase.FETCHING_METADATA
        self.progress.ticket = member.start_action(
            lambda ticket: a.FetchMetadata(ticket, self.group_topics),
            learned,
            lambda error: self.progress.handle_failure("Metadata", error, None),
        )

    def watched(self, topics: MetadataSnapshot) -> MetadataSnapshot:
        """The part of ``topics`` on which the assignment depends; if it changes, the leader rejoins."""
        of_group = topics.of(self.group_topics)
        return of_group if self._member.settings.rack_id is not None else of_group.without_racks()

    def _assign(self, group: GroupSubscription, coordinator: a.CoordinatorNode) -> None:
        member = self._member
        name = str(member.generation.protocol_name)

        def answered(assignment: Assignment) -> None:
            member.emit(
                e.AssignorRan,
                assignor=name,
                assignment=tuple((member_id, tuple(given)) for member_id, given in assignment.items()),
                withheld=withheld(group, assignment),
            )
            self._sync(encode_assignments(assignment), coordinator)

        def failed(error: Exception) -> None:
            failure = AssignorFailedError(str(error))
            failure.__cause__ = error
            member.fail(failure)

        assignor = member.assignors[name]
        # While a group is upgraded, some members with owned partitions are cooperative though the leader is not: their
        # partitions may stay unassigned in this rebalance.
        any_owned = any(said.owned_partitions for said in group.subscriptions.values())
        protocol = RebalanceProtocol.COOPERATIVE if any_owned else member.protocol
        self.progress.wait_for_assignor(
            member.start_action(lambda ticket: a.RunAssignor(ticket, assignor, group, protocol), answered, failed)
        )

    # Syncing.

    def _sync(self, assignments: tuple[SyncGroupRequestAssignment, ...], coordinator: a.CoordinatorNode) -> None:
        member, settings = self._member, self._member.settings
        request = SyncGroupRequest(
            group_id=settings.group_id,
            generation_id=member.generation.generation_id,
            member_id=member.generation.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=member.generation.protocol_name,
            assignments=assignments,
        )
        # The coordinator waits for the leader's SyncGroup as long as for JoinGroup: the rebalance timeout.
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        self.progress.phase = RebalancePhase.SYNCING
        self.progress.ticket = member.start_action(
            lambda ticket: a.SendRequest(ticket, coordinator, request, timeout_ms, parks=True),
            self._sync_answered,
            lambda error: self.progress.handle_failure("SyncGroup", error, coordinator),
        )

    def _sync_answered(self, response: SyncGroupResponse) -> None:
        member = self._member
        code = ErrorCode(response.error_code)
        if code == ErrorCode.NONE and (
            response.protocol_type not in (None, PROTOCOL_TYPE)
            or response.protocol_name not in (None, member.generation.protocol_name)
        ):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        reaction = error_reactions.to_sync_group(code)
        if reaction is not ErrorReaction.GO_ON:
            self.progress.handle_error("SyncGroup", code, reaction)
            return
        member.state = MemberState.STABLE
        member.rejoin_needed, member.rejoin_reason = False, ""
        self.progress.succeeded()
        self._assignment_applier.assignment = response.assignment
        self.progress.phase = RebalancePhase.SYNCED


def subscriptions_of(members: Iterable[JoinGroupResponseMember]) -> dict[str, Subscription]:
    """The decoded subscription of each member id. Raises WireError for invalid bytes."""
    return {member.member_id: read_subscription(member.metadata, member.group_instance_id) for member in members}


def withheld(group: GroupSubscription, assignment: Assignment) -> tuple[TopicPartition, ...]:
    """Owned partitions that exist and are not assigned in this rebalance: the owner must revoke them first (KIP-429)."""
    owned = {
        (topic, number)
        for subscription in group.subscriptions.values()
        for topic, number in subscription.owned_partitions
        if number < group.partitions.get(topic, 0)
    }
    return tuple(sorted(owned.difference(*assignment.values())))


def encode_assignments(assignment: Assignment) -> tuple[SyncGroupRequestAssignment, ...]:
    """Encode the assignment for SyncGroup."""
    return tuple(
        SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
        for member_id, partitions in assignment.items()
    )
