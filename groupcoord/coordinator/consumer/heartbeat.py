"""The ConsumerGroupHeartbeat handler: join, heartbeat, leave. Sources: ``GroupCoordinatorService.consumerGroupHeartbeat``,
``GroupMetadataManager.consumerGroupHeartbeat`` and ``consumerGroupLeave``; KIP-848.
"""

import dataclasses
import uuid
from typing import Any

from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.consumer import member_lookup, migration, records
from groupcoord.coordinator.consumer.consumer_group import ConsumerGroup, require_consumer_group
from groupcoord.coordinator.consumer.member import AWAY_EPOCH, JOIN_EPOCH, LEAVE_EPOCH, NOTHING, ConsumerMember
from groupcoord.coordinator.consumer.member_update import MemberUpdate
from groupcoord.coordinator.consumer.reconciliation import Owned
from groupcoord.coordinator.error_mapping import emit_refusal, error_message, response_error
from groupcoord.coordinator.events import Departure, GroupCreated, GroupMigrated, StaticMemberAway
from groupcoord.coordinator.group import GroupType, serves_consumer_groups
from groupcoord.coordinator.group_coordinator_shard import GroupCoordinatorShard, GroupOperation, RuntimeShard
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import Call, TypedRecord
from groupcoord.core.java_hash_order import hash_order
from groupcoord.protocol.apis.consumer_group_heartbeat import Assignment, TopicPartitions
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

MEMBER_ID_REQUIRED_FROM = 1  # KIP-1082
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""The characters that ``String.trim`` removes."""


def consumer_group_heartbeat(
    shard: RuntimeShard, ctx: HandlerContext, call: Call, request: ConsumerGroupHeartbeatRequest
) -> None:
    """Answer ``call`` when its records are stored."""
    try:
        _require_valid(shard.machine, call, request)
    except ApiError as refusal:
        _refused(ctx, call, request, refusal)
        return
    shard.write(ctx, call, request, _OPERATION)


def _require_valid(shard: GroupCoordinatorShard, call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
    """Validate the request, in Kafka's order. Raises ApiError."""
    if not serves_consumer_groups(shard.config, shard.context.group_version()):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    epoch = request.member_epoch
    if call.version >= MEMBER_ID_REQUIRED_FROM or epoch > 0 or epoch == LEAVE_EPOCH:
        _require_text("MemberId", request.member_id)
    _require_text("GroupId", request.group_id)
    _require_text("InstanceId", request.instance_id)
    _require_text("RackId", request.rack_id)
    wrong = None
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            wrong = "RebalanceTimeoutMs must be provided in first request."
        elif request.topic_partitions is None or request.topic_partitions:
            wrong = "TopicPartitions must be empty when (re-)joining."
        elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            wrong = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == AWAY_EPOCH and request.instance_id is None:
        wrong = "InstanceId can't be null."
    elif epoch < AWAY_EPOCH:
        wrong = "MemberEpoch is invalid."
    if wrong is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, wrong)
    supported = shard.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in supported:
        names = ", ".join(hash_order(supported))
        why = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {names}."
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, why)


def _require_text(field: str, text: str | None) -> None:
    if text is not None and not text.strip(_JAVA_BLANKS):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{field} can't be empty.")


def _run(
    shard: GroupCoordinatorShard, ctx: HandlerContext, call: Call, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult:
    if request.member_epoch in (LEAVE_EPOCH, AWAY_EPOCH):
        return _leave(shard, ctx, request)
    written: list[TypedRecord] = []
    joins = request.member_epoch == JOIN_EPOCH
    group, members = _group(shard, ctx, request.group_id, written, joins=joins)
    member_lookup.require_room(group, request.member_id)
    member_id = request.member_id or member_lookup.new_member_id(shard.new_uuid)
    owned = _owned(request)
    if request.instance_id is None:
        member = member_lookup.dynamic_member(group, member_id, joins=joins)
    else:
        member = member_lookup.static_member(group, member_id, request.instance_id, written, joins=joins)
    member_lookup.require_epoch(member, request.member_epoch, owned)

    update = MemberUpdate(ctx, group, member, written)
    changed = update.subscribe(_updated(member, call, request))
    target = update.assign()
    updated = update.reconcile(target, owned, has_subscription_changed=changed)
    for migrated in members:
        group.restart_session(ctx, migrated)
    group.restart_session(ctx, updated)
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    tells_assignment = joins or is_full or updated.assigned != member.assigned
    response = ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=group.context.config_of(group.group_id).heartbeat_interval_ms,
        assignment=_assignment(updated) if tells_assignment else None,
    )
    if not written:
        return CoordinatorResult(response=response)
    is_new = request.group_id not in shard.groups

    def stored(later: HandlerContext) -> None:
        if is_new:
            later.emit(GroupCreated, group=request.group_id, simple=False)
        elif members:
            reason = f"{member_id} joined by the consumer protocol"
            later.emit(GroupMigrated, group=request.group_id, to=GroupType.CONSUMER, reason=reason)
        update.emit(later)

    return CoordinatorResult(response=response, records=written, stored=stored)


def _group(
    shard: GroupCoordinatorShard, ctx: HandlerContext, group_id: str, written: list[TypedRecord], *, joins: bool
) -> tuple[ConsumerGroup, list[ConsumerMember]]:
    """The group of the member, created or converted if it ``joins``, and the members converted from a classic group.

    A new group is in the shard only when its records are applied. Raises ApiError (GROUP_ID_NOT_FOUND).
    """
    group = shard.groups.get(group_id)
    if group is None and not joins:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if isinstance(group, ConsumerGroup) or not joins:
        return require_consumer_group(group, group_id), []
    made = ConsumerGroup(group_id, shard.context)
    if not isinstance(group, ClassicGroup):
        return made, []
    if group.is_empty:
        written += group.tombstones()
        group.on_upgraded()
        return made, []
    migration.require_upgrade(group)
    records_of_all, members = migration.upgraded(ctx, group, made)
    written += records_of_all
    group.on_upgraded()
    return made, members


def _updated(member: ConsumerMember, call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member with the fields of the request; the same object if nothing changes."""
    said = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "topics": None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
        "topic_regex": request.subscribed_topic_regex,
        "client_id": call.client_id or "",
        "client_host": call.client_host,
    }
    changes: dict[str, Any] = {
        name: value for name, value in said.items() if value is not None and value != getattr(member, name)
    }
    if member.classic is not None:
        changes["classic"] = None
    return dataclasses.replace(member, **changes) if changes else member


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return [(topic.topic_id or uuid.UUID(int=0), topic.partitions) for topic in request.topic_partitions]


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(of_topic))
            for topic_id, of_topic in member.assigned.items()
        )
    )


# --- leaving


def _leave(
    shard: GroupCoordinatorShard, ctx: HandlerContext, request: ConsumerGroupHeartbeatRequest
) -> CoordinatorResult:
    group = require_consumer_group(shard.groups.get(request.group_id), request.group_id)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        existing = group.static_member(request.instance_id)
        member = member_lookup.require_instance(existing, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is not None and request.member_epoch == AWAY_EPOCH:
        return _go_away(group, member, response, request.instance_id)
    return group.remove(ctx, [member], "it left", Departure.LEFT, response=response)


def _go_away(
    group: ConsumerGroup, member: ConsumerMember, response: ConsumerGroupHeartbeatResponse, instance_id: str
) -> CoordinatorResult:
    """A static member leaves temporarily (epoch -2): it keeps its assignment until its session expires."""
    away = dataclasses.replace(
        member,
        member_epoch=AWAY_EPOCH,
        assigned={topic_id: dict.fromkeys(of_topic, 0) for topic_id, of_topic in member.assigned.items()},
        revoking=NOTHING,
    )

    def stored(later: HandlerContext) -> None:
        later.emit(StaticMemberAway, group=group.group_id, member=member.member_id, instance_id=instance_id)

    written = (records.current_assignment(group.group_id, away),)
    return CoordinatorResult(response=response, records=written, stored=stored)


def _refused(ctx: HandlerContext, call: Call, request: ConsumerGroupHeartbeatRequest, refusal: ApiError) -> None:
    emit_refusal(ctx, call, request.group_id, request.member_id, refusal)
    response = ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=error_message(refusal))
    ctx.reply(call, response)


def _failed(ctx: HandlerContext, call: Call, _: ConsumerGroupHeartbeatRequest, error: ErrorCode) -> None:
    ctx.reply(call, ConsumerGroupHeartbeatResponse(error_code=response_error(error)))


_OPERATION = GroupOperation(_run, _refused, _failed)
