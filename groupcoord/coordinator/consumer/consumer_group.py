"""ConsumerGroup, and its handling of JoinGroup, SyncGroup, Heartbeat and LeaveGroup from members of the classic protocol.

The coordinator assigns for such members, too, and makes them join again when their assignment changes (KIP-848).
Sources: ``ConsumerGroup``; ``GroupMetadataManager``: ``classicGroupJoinToConsumerGroup``, ``classicGroupSyncToConsumerGroup``,
``classicGroupHeartbeatToConsumerGroup``, ``classicGroupLeaveToConsumerGroup``.
"""

import dataclasses
from collections.abc import Iterable

from groupcoord.coordinator.classic.classic_group_state import CONSUMER_PROTOCOL_TYPE
from groupcoord.coordinator.consumer import member_lookup, migration
from groupcoord.coordinator.consumer.consumer_group_sessions import JOIN, SYNC, ConsumerGroupSessions
from groupcoord.coordinator.consumer.member import ConsumerMember, MemberState
from groupcoord.coordinator.consumer.member_update import MemberUpdate, TargetOfMember
from groupcoord.coordinator.consumer.reconciliation import FREE, Owned
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError, emit_refusal, response_error
from groupcoord.coordinator.events import Departure, MemberIdAssigned
from groupcoord.coordinator.group import ClassicMembersGroup, Group
from groupcoord.coordinator.runtime.coordinator_shard import EMPTY_RESULT, CoordinatorResult
from groupcoord.coordinator.runtime.undo import UndoLog
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.protocol.apis.describe_groups import DescribedGroup
from groupcoord.protocol.apis.leave_group import MemberResponse
from groupcoord.protocol.consumer_protocol import ConsumerProtocolSubscription, read_subscription
from groupcoord.protocol.coordinator_records.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

MEMBER_ID_REQUIRED_FROM = 4  # KIP-394


class ConsumerGroup(ConsumerGroupSessions, ClassicMembersGroup):
    """One consumer group."""

    def describe(self) -> DescribedGroup:
        """See Group; DescribeGroups describes only classic groups."""
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    def state_before(self, pending: Iterable[UndoLog]) -> str:
        """See Group."""
        return self.snapshot(pending).state

    def join(self, ctx: HandlerContext, call: Call, request: JoinGroupRequest) -> CoordinatorResult:
        """JoinGroup: a member of the classic protocol joins or rejoins. Raises ApiError."""
        if not migration.accepts_classic_members(self.context.config):
            why = (
                f"Cannot join the consumer group {self.group_id} with the classic protocol because the group migration is "
                "disabled."
            )
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
        newcomer = not request.member_id
        member_id = request.member_id or member_lookup.new_member_id(self.context.new_uuid)
        member_lookup.require_room(self, member_id)
        names = {protocol.name for protocol in request.protocols}
        index = self.index
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not any(
            index.protocols[name] == index.classic for name in names
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
        instance_id = request.group_instance_id
        if newcomer and instance_id is None and call.version >= MEMBER_ID_REQUIRED_FROM:
            ctx.emit(MemberIdAssigned, group=self.group_id, member=member_id)
            code = ErrorCode.MEMBER_ID_REQUIRED
            ctx.reply(call, JoinGroupResponse(error_code=code, leader="", member_id=member_id, members=()))
            return EMPTY_RESULT
        written: list[TypedRecord] = []
        if instance_id is None:
            member = member_lookup.dynamic_member(self, member_id, joins=True)
        else:
            member = member_lookup.static_member(self, member_id, instance_id, written, joins=newcomer, is_classic=True)
        replaced = self.static_member(instance_id)
        downgrades = replaced is not None and migration.can_downgrade_replacing(self, replaced)
        subscription = _subscription(request)
        owned = _owned(self, subscription)
        update = MemberUpdate(ctx, self, member, written)
        changed = update.subscribe(_updated(member, call, request, subscription), is_classic_join=True)
        epochs = self.epochs
        rebalances = epochs.assignment < update.group_epoch
        if not downgrades:
            update.reconcile(update.assign(), owned, has_subscription_changed=changed)
        elif not rebalances:
            target = TargetOfMember(epochs.assignment, self.target(member_id, instance_id))
            update.reconcile(target, owned, has_subscription_changed=changed)
        updated = update.updated
        response = JoinGroupResponse(
            member_id=updated.member_id,
            generation_id=updated.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name or None,  # null for an empty name (``JoinGroupResponse``)
            leader="",
            members=(),
        )
        if downgrades:
            result = migration.downgrade(
                ctx,
                self,
                joining=updated,
                written=written,
                rebalance_because="the target assignment is not the group's latest" if rebalances else None,
                response=response,
            )
            self.cancel_timer(JOIN, updated.member_id)
            return result

        def stored(later: HandlerContext) -> None:
            update.emit(later)
            self.cancel_timer(JOIN, updated.member_id)
            self.restart_session(later, updated)
            self.start_sync_timer(later, updated.member_id, request.rebalance_timeout_ms)

        return CoordinatorResult(response=response, records=written, stored=stored)

    def sync(self, ctx: HandlerContext, call: Call, request: SyncGroupRequest) -> CoordinatorResult:
        """SyncGroup: a member of the classic protocol gets its assignment. Raises ApiError."""
        member = _classic_member(self, request.member_id, request.group_instance_id)
        _require_generation(member, request.generation_id)
        if member.classic is None:
            raise AssertionError(f"{member} has no classic metadata")
        first = member.classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
            why = f"protocol_type is {request.protocol_type!r}, the group's is {CONSUMER_PROTOCOL_TYPE!r}"
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
        if request.protocol_name not in (None, first.name):
            why = f"protocol_name is {request.protocol_name!r}, the member was told {first.name!r} in JoinGroup"
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
        if self.epochs.assignment > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.start_join_timer(ctx, member)
            why = f"there is a target assignment of epoch {self.epochs.assignment}: join again"
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, why)
        partitions = {topic_id: list(of_topic) for topic_id, of_topic in member.assigned.items()}

        def stored(later: HandlerContext) -> None:
            self.cancel_timer(SYNC, member.member_id)
            self.restart_session(later, member)
            assignment = migration.serialized_assignment(partitions, first.metadata, self.context.topics)
            later.reply(
                call,
                SyncGroupResponse(
                    protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
                ),
            )

        def failed(later: HandlerContext, error: ErrorCode) -> None:
            later.reply(call, SyncGroupResponse(error_code=response_error(error), assignment=b""))

        return CoordinatorResult(stored=stored, failed=failed)

    def heartbeat(self, ctx: HandlerContext, request: HeartbeatRequest) -> CoordinatorResult:
        """Heartbeat: renews the session; the error says whether the member must join again. Raises ApiError."""
        member = _classic_member(self, request.member_id, request.group_instance_id)
        _require_generation(member, request.generation_id)
        self.restart_session(ctx, member)
        waits = member.state is MemberState.UNRELEASED_PARTITIONS
        if (
            member.member_epoch < self.epochs.assignment
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (waits and not _waits_for_others(self, member))
        ):
            self.start_join_timer(ctx, member)
            return CoordinatorResult(response=HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return CoordinatorResult(response=HeartbeatResponse())

    def leave(self, ctx: HandlerContext, call: Call, request: LeaveGroupRequest) -> CoordinatorResult:
        """LeaveGroup: members of either protocol leave; the group epoch is bumped once, however many they are."""
        answers, leaving = [], {}
        for who in request.members:
            code = ErrorCode.NONE
            try:
                if who.group_instance_id is None:
                    member = self.member(who.member_id)
                else:
                    existing = self.static_member(who.group_instance_id)
                    named = who.member_id or (existing.member_id if existing is not None else "")
                    member = member_lookup.require_instance(existing, named, who.group_instance_id)
                leaving[member.member_id] = member
            except ApiError as refusal:
                emit_refusal(ctx, call, request.group_id, who.member_id, refusal)
                code = refusal.code
            answers.append(
                MemberResponse(member_id=who.member_id, group_instance_id=who.group_instance_id, error_code=code)
            )
        response = LeaveGroupResponse(members=tuple(answers))
        return self.remove(ctx, list(leaving.values()), "it left", Departure.LEFT, response=response)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """The subscription in the first protocol of the request. Raises UnexpectedBrokerError if it is invalid, as Kafka fails."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except WireError as problem:
        raise UnexpectedBrokerError(f"the subscription cannot be read: {problem}") from problem


def _owned(group: ConsumerGroupSessions, subscription: ConsumerProtocolSubscription) -> Owned:
    view = group.context.topics.view
    named = [(view.topic_id(topic.topic), topic.partitions) for topic in subscription.owned_partitions]
    return [(topic_id, partitions) for topic_id, partitions in named if topic_id is not None]


def _updated(
    member: ConsumerMember, call: Call, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    timeout_ms = request.rebalance_timeout_ms
    return dataclasses.replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=frozenset(subscription.topics),
        topic_regex="",
        client_id=call.client_id or "",
        client_host=call.client_host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in request.protocols
            ),
        ),
    )


def _waits_for_others(group: ConsumerGroupSessions, member: ConsumerMember) -> bool:
    """Is a partition of the member's target assignment still owned by another member?"""
    return any(
        partition not in member.assigned.get(topic_id, {}) and group.partition_epoch(topic_id, partition) != FREE
        for topic_id, partitions in group.target(member.member_id).items()
        for partition in partitions
    )


def _classic_member(group: ConsumerGroupSessions, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The classic member that sent a request. Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = member_lookup.require_instance(group.static_member(instance_id), member_id, instance_id)
    if not member.is_classic:
        why = f"Member {member.member_id} does not use the classic protocol."
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, why)
    return member


def _require_generation(member: ConsumerMember, generation_id: int) -> None:
    if member.member_epoch != generation_id:
        why = f"generation_id is {generation_id}, the member is at epoch {member.member_epoch}"
        raise ApiError(ErrorCode.ILLEGAL_GENERATION, why)


def require_consumer_group(group: Group | None, group_id: str) -> ConsumerGroup:
    """``group`` as a consumer group. Raises ApiError (GROUP_ID_NOT_FOUND) if it is None or of another type."""
    if isinstance(group, ConsumerGroup):
        return group
    what = "not found" if group is None else "is not a consumer group"
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
