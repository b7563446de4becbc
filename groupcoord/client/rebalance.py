"""One rebalance after the other: give up, join, lead if elected, sync, take.

Sources: ``AbstractCoordinator.joinGroupIfNeeded``, ``ConsumerCoordinator.onJoinPrepare`` and ``onJoinComplete``; KIP-429.
What the user sees of it, the callbacks, happens only while the user waits for records, so that nothing is taken from under
its hands; everything else goes on by itself.
"""

from groupcoord.assignors import (
    Assignment,
    Group,
    RebalanceProtocol,
    Subscription,
    write_subscription,
)
from groupcoord.client import actions as a
from groupcoord.client import events as e
from groupcoord.client import leading, verdicts
from groupcoord.client.errors import AssignorFailedError
from groupcoord.client.giving_up import GivingUp
from groupcoord.client.heart import Heart
from groupcoord.client.member import (
    PROTOCOL_TYPE,
    Generation,
    Member,
    MemberState,
    in_order,
    shortened,
)
from groupcoord.client.progress import Phase, Progress
from groupcoord.client.taking import Taking
from groupcoord.client.topics_view import TopicsView
from groupcoord.client.verdicts import Verdict
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from groupcoord.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN_LAPSE_MS = 5_000
"""So much longer than the group waits for its slowest member, a member waits for the group (``JOIN_GROUP_TIMEOUT_LAPSE``)."""


class Rebalance:
    """Takes a member from one assignment to the next."""

    def __init__(self, member: Member, heart: Heart) -> None:
        self._member = member
        self._heart = heart
        self.progress = Progress(member)
        self._giving_up = GivingUp(member, self.progress)
        self._taking = Taking(member, self.progress)
        self.joined_subscription: frozenset[str] | None = None
        """What the member said when it joined last."""
        self.group_topics: frozenset[str] = frozenset()
        """What all members together want, if this one leads."""
        self.assigned_from: TopicsView | None = None
        """The topics as they were when this member, as the leader, assigned them."""

    def step(self) -> bool:
        """Begin what can begin now; was there anything?"""
        member, progress = self._member, self.progress
        if member.ending:
            return False
        if progress.overtaken:
            # A heartbeat brought the news that this generation is over. What it was waiting for may never come.
            progress.stop_waiting()
            member.rejoin_needed = True
            return True
        if progress.phase is Phase.IDLE and member.rejoin_needed:
            if member.prepare_needed:
                return self._giving_up.prepare()
            return member.coordinator is not None and self._join(member.coordinator)
        if progress.phase is Phase.COMMITTED:
            return self._giving_up.give_up()
        if progress.phase is Phase.SYNCED and (member.user_present or member.state is not MemberState.STABLE):
            self._taking.complete()
            return True
        return False

    def stop(self) -> None:
        """Wait for nothing any more, but a callback that has begun."""
        if not self.progress.with_the_user:
            self.progress.stop_waiting()

    # Joining.

    def _join(self, coordinator: a.Coordinator) -> bool:
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
            protocols=tuple(
                JoinGroupRequestProtocol(
                    name=name,
                    metadata=write_subscription(
                        Subscription(
                            topics=topics,
                            user_data=assignor.subscription_user_data(topics),
                            owned_partitions=in_order(member.owned),
                            generation_id=member.generation.generation_id,
                            rack_id=settings.rack_id,
                        )
                    ),
                )
                for name, assignor in member.assignors.items()
            ),
            reason=shortened(member.rejoin_reason),
        )
        member.note(
            e.JoinSent,
            generation=member.generation.generation_id,
            protocol=member.protocol.name.lower(),
            assignors=tuple(member.assignors),
            keeps=in_order(member.owned),
            reason=member.rejoin_reason,
        )
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        self.progress.phase = Phase.JOINING
        self.progress.ticket = member.ask(
            lambda ticket: a.Send(ticket, coordinator, request, timeout_ms, parks=True),
            lambda response: self._join_answered(response, coordinator),
            lambda error: self.progress.broken("JoinGroup", error, coordinator),
        )
        return True

    def _join_answered(self, response: JoinGroupResponse, coordinator: a.Coordinator) -> None:
        member = self._member
        code = ErrorCode(response.error_code)
        if code == ErrorCode.NONE and response.protocol_type not in (None, PROTOCOL_TYPE):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        verdict = verdicts.of_join(code)
        if verdict is Verdict.TAKE_ID:
            member.generation = Generation(member_id=response.member_id)
            member.note(e.MemberIdGiven)
            member.request_rejoin(f"need to re-join with the given member-id: {response.member_id}")
            self.progress.phase = Phase.IDLE
        elif verdict is not Verdict.GO_ON:
            self.progress.refused("JoinGroup", code, verdict)
        elif member.state is not MemberState.PREPARING_REBALANCE:
            # A commit brought the news, while this was under way, that the member is none; what it joined as is nobody.
            self.progress.refused("JoinGroup", ErrorCode.UNKNOWN_MEMBER_ID, Verdict.RETRY)
        else:
            self._joined(response, coordinator)

    def _joined(self, response: JoinGroupResponse, coordinator: a.Coordinator) -> None:
        member = self._member
        member.generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        member.state = MemberState.COMPLETING_REBALANCE
        self._heart.start()
        name = response.protocol_name or ""
        member.note(
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

    def _lead(self, response: JoinGroupResponse, coordinator: a.Coordinator) -> None:
        """Find out about all topics that anybody wants, and assign them (``onLeaderElected``)."""
        member = self._member
        try:
            subscriptions = leading.subscriptions_of(response.members)
        except WireError as problem:
            member.fail(AssignorFailedError(f"a member sent a subscription that is none: {problem}"))
            return
        self.group_topics = frozenset(topic for each in subscriptions.values() for topic in each.topics)

        def learned(topics: TopicsView) -> None:
            member.topics = topics
            self.assigned_from = self.watched(topics)
            seen = topics.of(self.group_topics)
            group = Group(subscriptions=subscriptions, partitions=seen.partitions, racks=seen.racks)
            if response.skip_assignment:
                member.note(e.AssignmentSkipped)
                self._sync((), coordinator)
            else:
                self._assign(group, coordinator)

        self.progress.phase = Phase.LEARNING
        self.progress.ticket = member.ask(
            lambda ticket: a.Learn(ticket, self.group_topics),
            learned,
            lambda error: self.progress.broken("Metadata", error, None),
        )

    def watched(self, topics: TopicsView) -> TopicsView:
        """What matters of ``topics`` to an assignment of this member: when that changes, it assigns anew."""
        of_group = topics.of(self.group_topics)
        return of_group if self._member.settings.rack_id is not None else of_group.without_racks()

    def _assign(self, group: Group, coordinator: a.Coordinator) -> None:
        member = self._member
        name = str(member.generation.protocol_name)

        def answered(assignment: Assignment) -> None:
            member.note(
                e.AssignorRan,
                assignor=name,
                assignment=tuple((member_id, tuple(given)) for member_id, given in assignment.items()),
                withheld=leading.withheld(group, assignment),
            )
            self._sync(leading.written(assignment), coordinator)

        def failed(error: Exception) -> None:
            failure = AssignorFailedError(str(error))
            failure.__cause__ = error
            member.fail(failure)

        assignor = member.assignors[name]
        # Whoever says that it owns something follows the cooperative protocol, whatever this member does: so it is while a
        # group is upgraded. What it owns may go to nobody this time.
        somebody_owns = any(said.owned_partitions for said in group.subscriptions.values())
        protocol = RebalanceProtocol.COOPERATIVE if somebody_owns else member.protocol
        self.progress.phase = Phase.ASSIGNING
        self.progress.ticket = member.ask(lambda ticket: a.Assign(ticket, assignor, group, protocol), answered, failed)

    # Syncing.

    def _sync(self, assignments: tuple[SyncGroupRequestAssignment, ...], coordinator: a.Coordinator) -> None:
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
        # The coordinator waits for the leader no longer than for anybody else to join.
        timeout_ms = max(settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_LAPSE_MS)
        self.progress.phase = Phase.SYNCING
        self.progress.ticket = member.ask(
            lambda ticket: a.Send(ticket, coordinator, request, timeout_ms, parks=True),
            self._sync_answered,
            lambda error: self.progress.broken("SyncGroup", error, coordinator),
        )

    def _sync_answered(self, response: SyncGroupResponse) -> None:
        member = self._member
        code = ErrorCode(response.error_code)
        if code == ErrorCode.NONE and (
            response.protocol_type not in (None, PROTOCOL_TYPE)
            or response.protocol_name not in (None, member.generation.protocol_name)
        ):
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        verdict = verdicts.of_sync(code)
        if verdict is not Verdict.GO_ON:
            self.progress.refused("SyncGroup", code, verdict)
            return
        member.state = MemberState.STABLE
        member.rejoin_needed, member.rejoin_reason = False, ""
        self.progress.succeeded()
        self._taking.assignment = response.assignment
        self.progress.phase = Phase.SYNCED
