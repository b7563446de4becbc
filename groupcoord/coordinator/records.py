"""The records that coordinators of groups write: typed, and as key and value bytes.

Source: ``GroupCoordinatorRecordHelpers``. Versions are those Kafka 4.3 writes.
"""

from typing import Any

from groupcoord.coordinator.offsets.store import CommittedOffset
from groupcoord.core.effects import UNWRITABLE, LogRecord, TypedRecord
from groupcoord.protocol.codec.primitives import StringTooLongError
from groupcoord.protocol.coordinator_records.typed import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    write_key,
    write_value,
)


def group_metadata(group_id: str, value: GroupMetadataValue) -> TypedRecord:
    """A classic group as of one generation."""
    return _record(GroupMetadataKey(group=group_id), value, value, GROUP_METADATA_VALUE_VERSION)


def group_metadata_tombstone(group_id: str) -> TypedRecord:
    """The classic group is gone."""
    return _record(GroupMetadataKey(group=group_id))


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> TypedRecord:
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
    return _record(OffsetCommitKey(group=group_id, topic=topic, partition=partition), committed, value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> TypedRecord:
    """The offset is gone."""
    return _record(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def _record(
    key: GroupMetadataKey | OffsetCommitKey, state: Any = None, value: Any = None, version: int = 0
) -> TypedRecord:
    """``state`` is what a state machine keeps of the record, ``value`` what is encoded."""
    try:
        encoded = LogRecord(key=write_key(key), value=None if value is None else write_value(value, version))
    except StringTooLongError:
        encoded = UNWRITABLE
    return TypedRecord(key, state, encoded)
