"""Online migration of a group with members from classic to consumer group, and back.

Sources: ``GroupMetadataManager.convertToConsumerGroup`` and ``convertToClassicGroup``, ``ConsumerGroup.fromClassicGroup``,
``ClassicGroup.fromConsumerGroup``; KIP-848.
"""

import struct
import uuid
from collections.abc import Sequence
from typing import Any

from groupcoord.config.broker_config import BrokerConfig
from groupcoord.coordinator.classic.classic_group import ClassicGroup
from groupcoord.coordinator.classic.classic_group_state import CONSUMER_PROTOCOL_TYPE, GroupState, Member
from groupcoord.coordinator.consumer import records
from groupcoord.coordinator.consumer.consumer_group_members_and_epochs import ConsumerGroupTables
from groupcoord.coordinator.consumer.member import NO_TARGET, Assigned, ConsumerMember, Target
from groupcoord.coordinator.consumer.reconciliation import FREE
from groupcoord.coordinator.error_mapping import UnexpectedBrokerError
from groupcoord.coordinator.events import GroupMigrated
from groupcoord.coordinator.group import GroupType
from groupcoord.coordinator.runtime.coordinator_shard import CoordinatorResult
from groupcoord.coordinator.topics_view import SubscribedTopics
from groupcoord.core.api_error import ApiError
from groupcoord.core.effect_collector import HandlerContext
from groupcoord.core.effects import TypedRecord
from groupcoord.core.java_hash_order import hash_map_order, uuid_hash
from groupcoord.core.java_map import copied_set, int_order
from groupcoord.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    MalformedError,
    TopicPartition,
    read_assignment,
    read_subscription,
    write_assignment,
)
from groupcoord.protocol.coordinator_records.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from groupcoord.protocol.errors import ErrorCode, WireError
from groupcoord.protocol.messages import JoinGroupResponse, SyncGroupResponse

_UPGRADES = frozenset({"upgrade", "bidirectional"})
_DOWNGRADES = frozenset({"downgrade", "bidirectional"})


def _policy(config: BrokerConfig) -> str:
    return config.group_consumer_migration_policy.lower()


def accepts_classic_members(config: BrokerConfig) -> bool:
    """Does the migration policy let members of the classic protocol join consumer groups?"""
    return _policy(config) != "disabled"


# --- to a consumer group


def require_upgrade(group: ClassicGroup) -> None:
    """Raises ApiError (GROUP_ID_NOT_FOUND) unless this classic group may become a consumer group."""
    config = group.config
    why = None
    if _policy(config) not in _UPGRADES:
        why = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        why = "the group does not use the consumer embedded protocol"
    elif len(group.members) > config.group_consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    if why is not None:
        raise _cannot_upgrade(group, f"{why}.")


def _cannot_upgrade(group: ClassicGroup, why: str) -> ApiError:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}"
    return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def upgraded(
    ctx: HandlerContext, group: ClassicGroup, made: ConsumerGroupTables
) -> tuple[list[TypedRecord], list[ConsumerMember]]:
    """Convert ``group`` to the consumer group ``made``; returns the records of the conversion, and the members.

    Waiting requests of ``group`` are answered, so that their clients join again. Raises ApiError (GROUP_ID_NOT_FOUND), and
    UnexpectedBrokerError for a group without a generation, or with a partition that is assigned to two members.
    """
    for member in group.members.values():
        code = ErrorCode.REBALANCE_IN_PROGRESS
        if member.parked_join is not None:
            response = JoinGroupResponse(error_code=code, leader="", member_id=member.member_id, members=())
            ctx.reply(member.parked_join, response)
            group.park_join(member, None)
        if member.parked_sync is not None:
            ctx.reply(member.parked_sync, SyncGroupResponse(error_code=code, assignment=b""))
            member.parked_sync = None
    if group.protocol_name is None:
        raise UnexpectedBrokerError(f"group {group.group_id} has no protocol yet")
    topics, generation = group.context.topics, group.generation_id
    for member in group.members.values():
        try:
            target = _assigned_by_leader(member.assignment, topics)
            subscription = read_subscription(member.metadata_of(group.protocol_name))
        except MalformedError as problem:
            raise _cannot_upgrade(group, "the embedded consumer protocol is malformed.") from problem
        except WireError as problem:
            raise UnexpectedBrokerError(f"what {member.member_id} said or got cannot be read: {problem}") from problem
        except _UserDataError as problem:
            raise _cannot_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
                "before re-attempting the upgrade.",
            ) from problem
        for topic_id, partitions in target.items():
            if any(made.partition_epoch(topic_id, partition) != FREE for partition in partitions):
                raise UnexpectedBrokerError(f"the leader gave a partition of {topic_id} to two members")
        made.targets.put(member.member_id, target)
        made.members.put(
            member.member_id,
            ConsumerMember(
                member_id=member.member_id,
                member_epoch=generation,
                previous_member_epoch=generation,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=frozenset(subscription.topics),
                assigned=_with_epochs(target, generation),
                classic=ClassicMemberMetadata(
                    session_timeout_ms=member.session_timeout_ms,
                    supported_protocols=tuple(
                        ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols
                    ),
                ),
            ),
        )
    made.set_epochs(group=generation, assignment=generation, metadata_hash=topics.group_hash(made.counts.topics()))
    in_order = [member for _, member in made.members.in_order()]
    group_id, epochs = group.group_id, made.epochs
    written = [
        *group.tombstones(),
        *(records.member_metadata(group_id, member) for member in in_order),
        records.group_epoch(group_id, generation, epochs.metadata_hash),
        *(records.target_assignment(group_id, member.member_id, made.target(member.member_id)) for member in in_order),
        records.assignment_epoch(group_id, generation, 0),
        *(records.current_assignment(group_id, member) for member in in_order),
    ]
    return written, in_order


class _UserDataError(Exception):
    """The conversion would lose user data of a custom assignor."""


def _assigned_by_leader(data: bytes, topics: SubscribedTopics) -> Target:
    """The leader's assignment, without deleted topics. Raises WireError, _UserDataError."""
    if not data:
        return NO_TARGET
    assignment = read_assignment(data)
    if assignment.user_data:
        raise _UserDataError
    by_topic: dict[uuid.UUID, tuple[int, ...]] = {}
    for topic in assignment.assigned_partitions:
        topic_id = topics.view.topic_id(topic.topic)
        if topic_id is not None:
            by_topic[topic_id] = tuple(copied_set(dict.fromkeys(topic.partitions)).listed())
    return {topic_id: by_topic[topic_id] for topic_id in hash_map_order(by_topic, uuid_hash)}


def _with_epochs(target: Target, epoch: int) -> Assigned:
    return {topic_id: dict.fromkeys(int_order(partitions), epoch) for topic_id, partitions in target.items()}


# --- to a classic group


def can_downgrade_without(group: ConsumerGroupTables, leaving: Sequence[ConsumerMember]) -> bool:
    """Does the group become a classic one when these members leave?"""
    left = len(group.members) - len(leaving)
    classic = group.index.classic - sum(member.is_classic for member in leaving)
    return left > 0 and classic == left and _may_downgrade(group, left)


def can_downgrade_replacing(group: ConsumerGroupTables, replaced: ConsumerMember) -> bool:
    """Does it become a classic one when a classic member replaces ``replaced``?"""
    size = len(group.members)
    return not replaced.is_classic and group.index.classic == size - 1 and _may_downgrade(group, size)


def _may_downgrade(group: ConsumerGroupTables, size: int) -> bool:
    config = group.context.config
    return _policy(config) in _DOWNGRADES and size <= config.group_max_size


def downgrade(
    ctx: HandlerContext,
    group: ConsumerGroupTables,
    *,
    leaving: Sequence[ConsumerMember] = (),
    joining: ConsumerMember | None = None,
    written: Sequence[TypedRecord] = (),
    rebalance_because: str | None = None,
    response: Any = None,
) -> CoordinatorResult:
    """Convert ``group`` to a classic group, without ``leaving``, and with ``joining`` instead of the member of its instance id.

    ``written`` are records to write before. Raises ApiError (GROUP_ID_NOT_FOUND) if that is impossible.
    """
    replaced = None if joining is None else group.static_member(joining.instance_id)
    tombstones = (
        group.tombstones()
        if joining is None or replaced is None
        else group.tombstones_but(replaced.member_id, joining.member_id)
    )
    made = ClassicGroup(group.group_id, ctx.now_ms, group.context)
    made.generation_id = group.epochs.group
    gone = {member.member_id for member in leaving}
    staying = [
        member
        for _, member in group.members.in_order()
        if member.member_id not in gone and (replaced is None or member.member_id != replaced.member_id)
    ]
    for member in (*staying, joining) if joining is not None else staying:
        made.add_member(_classic_member(made, member), None)
    made.state = made.previous_state = GroupState.STABLE
    try:
        made.protocol_name = made.select_protocol(made.votes())
        made.subscribed_topics = made.compute_subscribed_topics()
        for classic in made.members.values():
            old = replaced is not None and joining is not None and classic.member_id == joining.member_id
            target = group.target(replaced.member_id if old and replaced is not None else classic.member_id)
            classic.assignment = _serialized(target, classic.metadata_of(made.protocol_name), group.context.topics)
    except (UnexpectedBrokerError, MalformedError) as problem:
        why = f"Cannot downgrade the classic group {group.group_id}: {problem}."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, why) from problem
    assignments = {member.member_id: member.assignment for member in made.members.values()}
    all_records = [*written, *tombstones, made.metadata_record(assignments)]
    # As in Kafka, timers keep running: if a consumer joins in time, a classic member that owes a JoinGroup or SyncGroup is
    # removed.
    groups = group.context.groups
    del groups[group.group_id]
    groups[group.group_id] = made
    reason = "only members of the classic protocol are left"
    ctx.emit(GroupMigrated, group=group.group_id, to=GroupType.CLASSIC, reason=reason)
    for classic in made.members.values():
        made.restart_session(ctx, classic)
    if rebalance_because is not None:
        made.prepare_rebalance(ctx, rebalance_because)
    return CoordinatorResult(response=response, records=all_records, replay_records=False)


def _classic_member(group: ClassicGroup, member: ConsumerMember) -> Member:
    if member.classic is None:
        raise AssertionError(f"member {member.member_id} of group {group.group_id} speaks the consumer protocol")
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols),
        session_key=group.session_key(member.member_id),
    )


def _serialized(target: Target, metadata: bytes, topics: SubscribedTopics) -> bytes:
    """Encode ``target`` for a classic client, in the version of the subscription in ``metadata``. Raises WireError."""
    return serialized_assignment(
        {topic_id: list(partitions) for topic_id, partitions in target.items()}, metadata, topics
    )


def serialized_assignment(partitions: dict[uuid.UUID, list[int]], metadata: bytes, topics: SubscribedTopics) -> bytes:
    """Encode ``partitions`` for a classic client, in the version of the subscription in ``metadata``. Raises WireError."""
    if len(metadata) < _INT16.size:
        raise MalformedError("Buffer underflow while parsing consumer protocol's header")
    version: int = _INT16.unpack_from(metadata)[0]
    if version < 0:
        raise MalformedError(f"Unsupported assignment version: {version}")
    named = [(topics.view.topic_name(topic_id), of_topic) for topic_id, of_topic in partitions.items()]
    return write_assignment(
        ConsumerProtocolAssignment(
            version=min(version, 3),
            assigned_partitions=tuple(
                TopicPartition(topic=name, partitions=tuple(of_topic)) for name, of_topic in named if name is not None
            ),
        )
    )


_INT16 = struct.Struct(">h")
