"""The records of consumer groups. Source: ``GroupCoordinatorRecordHelpers``."""

from groupcoord.coordinator.consumer.member import ConsumerMember, Target, current_partitions
from groupcoord.coordinator.consumer.member_aggregates import ResolvedRegex
from groupcoord.coordinator.records import typed_record
from groupcoord.core.effects import TypedRecord
from groupcoord.protocol.coordinator_records.consumer_group import (
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
    """The group is at ``epoch``, with that hash of the topics that it subscribes to."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id=group_id), value)


def group_epoch_tombstone(group_id: str) -> TypedRecord:
    """The group is gone."""
    return _record(ConsumerGroupMetadataKey(group_id=group_id))


def topics_tombstone(group_id: str) -> TypedRecord:
    """What a Kafka up to 4.0 wrote of the subscribed topics is gone."""
    return _record(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def member_metadata(group_id: str, member: ConsumerMember) -> TypedRecord:
    """What ``member`` says of itself."""
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
    """The member is gone."""
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def assignment_epoch(group_id: str, epoch: int, at_ms: int) -> TypedRecord:
    """The target assignment is the one for ``epoch``, computed at ``at_ms``."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp_ms=at_ms)
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def assignment_epoch_tombstone(group_id: str) -> TypedRecord:
    """There is no target assignment."""
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def target_assignment(group_id: str, member_id: str, target: Target) -> TypedRecord:
    """What the member is to have."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TargetPartitions(topic_id=topic_id, partitions=tuple(partitions)) for topic_id, partitions in target.items()
        )
    )
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_assignment_tombstone(group_id: str, member_id: str) -> TypedRecord:
    """The member has no target any more."""
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def current_assignment(group_id: str, member: ConsumerMember) -> TypedRecord:
    """How far ``member`` has come."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=current_partitions(member.assigned),
        partitions_pending_revocation=current_partitions(member.revoking),
    )
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def current_assignment_tombstone(group_id: str, member_id: str) -> TypedRecord:
    """The member has nothing any more."""
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def regex(group_id: str, expression: str, resolved: ResolvedRegex) -> TypedRecord:
    """What ``expression`` matches."""
    value = ConsumerGroupRegularExpressionValue(
        topics=tuple(sorted(resolved.topics)), version=resolved.version, timestamp_ms=resolved.at_ms
    )
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), value)


def regex_tombstone(group_id: str, expression: str) -> TypedRecord:
    """No member has ``expression`` any more."""
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression))


def _record(key: ConsumerGroupKey, value: ConsumerGroupValue | None = None) -> TypedRecord:
    return typed_record(key, value, value, 0)
