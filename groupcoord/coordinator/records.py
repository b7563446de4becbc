"""Which records the coordinator writes: groups and offsets as key and value bytes.

Source: ``GroupCoordinatorRecordHelpers``. Versions are those Kafka 4.3 writes.
"""

from collections.abc import Mapping
from typing import Any

from groupcoord.coordinator.classic.group import ClassicGroup
from groupcoord.coordinator.offset_store import CommittedOffset
from groupcoord.core.effects import UNWRITABLE, LogRecord
from groupcoord.protocol.codec.primitives import StringTooLongError
from groupcoord.protocol.coordinator_records.typed import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)


def group(group: ClassicGroup, assignments: Mapping[str, bytes]) -> LogRecord:
    """``group`` as it is now, its members with ``assignments`` (member id → bytes)."""
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            subscription=member.metadata_of(group.protocol_name),
            assignment=assignments[member.member_id],
        )
        for member in group.members.values()
    )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=_since(group),
        members=members,
    )
    return _group_record(group.group_id, value)


def empty_group(group: ClassicGroup) -> LogRecord:
    """A group that has just come to be: generation 0, no type, nobody in it."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp_ms=_since(group)
    )
    return _group_record(group.group_id, value)


def _since(group: ClassicGroup) -> int:
    return -1 if group.state_since_ms is None else group.state_since_ms


def group_tombstone(group_id: str) -> LogRecord:
    """The group is gone."""
    return _record(GroupMetadataKey(group=group_id))


def offset(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> LogRecord:
    """A committed offset. The one version with an expire time has neither leader epoch nor topic id."""
    expires = committed.expire_timestamp_ms
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=committed.commit_timestamp_ms,
        expire_timestamp_ms=-1 if expires is None else expires,
        topic_id=committed.topic_id,
    )
    version = OFFSET_COMMIT_VALUE_VERSION if expires is None else OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION
    return _record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> LogRecord:
    """The offset is gone."""
    return _record(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def _group_record(group_id: str, value: GroupMetadataValue) -> LogRecord:
    return _record(GroupMetadataKey(group=group_id), value, GROUP_METADATA_VALUE_VERSION)


def _record(key: GroupMetadataKey | OffsetCommitKey, value: Any = None, version: int = 0) -> LogRecord:
    try:
        return LogRecord(key=write_key(key), value=None if value is None else write_value(value, version))
    except StringTooLongError:
        return UNWRITABLE
