"""Builds the records of consumer groups in ``__consumer_offsets`` (``GroupCoordinatorRecordHelpers``)."""

from groupcoord.coordinator.consumer.member import ConsumerMember, Target, current_partitions
from groupcoord.coordinator.consumer.member_aggregates import ResolvedRegex
from groupcoord.coordinator.records import typed_record
from groupcoord.core.effects import TypedRecord
from groupcoord.protocol.coordinator_records.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    TargetPartitions,
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> TypedRecord:
    """ConsumerGroupMetadata: the group epoch, and the hash of the subscribed topics."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id=group_id), value)


def group_epoch_tombstone(group_id: str) -> TypedRecord:
    """The group is deleted."""
    return _record(ConsumerGroupMetadataKey(group_id=group_id))


def topics_tombstone(group_id: str) -> TypedRecord:
    """Removes the ConsumerGroupPartitionMetadata record that Kafka up to 4.0 wrote."""
    return _record(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def member_metadata(group_id: str, member: ConsumerMember) -> TypedRecord:
    """ConsumerGroupMemberMetadata: the subscription and other fields of ``member``."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstone(group_id: str, member_id: str) -> TypedRecord:
    """The member is removed."""
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def assignment_epoch(group_id: str, epoch: int, at_ms: int) -> TypedRecord:
    """ConsumerGroupTargetAssignmentMetadata: the epoch of the target assignment, computed at ``at_ms``."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp_ms=at_ms)
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def assignment_epoch_tombstone(group_id: str) -> TypedRecord:
    """The target assignment is removed."""
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def target_assignment(group_id: str, member_id: str, target: Target) -> TypedRecord:
    """ConsumerGroupTargetAssignmentMember: the target assignment of a member."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetPartitions(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in target.items()
        )
    )
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_assignment_tombstone(group_id: str, member_id: str) -> TypedRecord:
    """The target assignment of the member is removed."""
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def current_assignment(group_id: str, member: ConsumerMember) -> TypedRecord:
    """ConsumerGroupCurrentMemberAssignment: epoch, state and current assignment of ``member``."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=current_partitions(member.assigned),
        partitions_pending_revocation=current_partitions(member.revoking),
    )
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def current_assignment_tombstone(group_id: str, member_id: str) -> TypedRecord:
    """The current assignment of the member is removed."""
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> TypedRecord:
    """ConsumerGroupRegularExpression: the topics that ``expression`` matches."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)), version=resolved.version, timestamp_ms=resolved.at_ms
    )
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), value)


def regex_tombstone(group_id: str, expression: str) -> TypedRecord:
    """The resolved topics of ``expression`` are removed."""
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression))


def _record(key: ConsumerGroupKey, value: ConsumerGroupValue | None = None) -> TypedRecord:
    return typed_record(key, value, value, 0)
