"""The records that coordinators of groups write: typed, and as key and value bytes.

Source: ``GroupCoordinatorRecordHelpers``. Versions are those Kafka 4.3 writes.
"""

import struct
from collections.abc import Callable
from typing import Any

from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.core.effects import UNWRITABLE, LogRecord, TypedRecord
from groupcoord.protocol.codec.flexible_versions import StringTooLongError
from groupcoord.protocol.coordinator_records.commit_fast_path import plain_commit, plain_key
from groupcoord.protocol.coordinator_records.typed import (
    GROUP_METADATA_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_VERSION,
    OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    write_key,
    write_value,
)

_new = tuple.__new__  # past the constructors that NamedTuple writes in Python
_partition = struct.Struct(">i").pack


def group_metadata(group_id: str, value: GroupMetadataValue) -> TypedRecord:
    """A classic group as of one generation."""
    return typed_record(GroupMetadataKey(group=group_id), value, value, GROUP_METADATA_VALUE_VERSION)


def group_metadata_tombstone(group_id: str) -> TypedRecord:
    """The classic group is gone."""
    return typed_record(GroupMetadataKey(group=group_id))


def offset_commits(group_id: str, topic: str) -> Callable[[int, CommittedOffset], TypedRecord]:
    """Makes the record of a committed offset for a partition of ``topic``. What these have in common is encoded once.

    The one version with an expire time has neither leader epoch nor topic id.
    """
    try:
        key_bytes = plain_key(group_id, topic)
    except StringTooLongError:
        key_bytes = None

    def record(partition: int, committed: CommittedOffset) -> TypedRecord:
        offset, leader_epoch, metadata, at_ms, expires, topic_id = committed
        key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
        if key_bytes is None:
            return TypedRecord(key, committed, UNWRITABLE)
        if expires is None and not metadata and topic_id is not None:  # as most are
            data = plain_commit(offset, leader_epoch, at_ms, topic_id)
            encoded = _new(LogRecord, (key_bytes + _partition(partition), data))
            return _new(TypedRecord, (key, committed, encoded))
        value = OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata,
            commit_timestamp_ms=at_ms,
            expire_timestamp_ms=-1 if expires is None else expires,
            topic_id=topic_id,
        )
        version = OFFSET_COMMIT_VALUE_VERSION if expires is None else OFFSET_COMMIT_VALUE_WITH_EXPIRY_VERSION
        return typed_record(key, committed, value, version)

    return record


def offset_tombstone(group_id: str, topic: str, partition: int) -> TypedRecord:
    """The offset is gone."""
    return typed_record(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def typed_record(key: Key, state: Any = None, value: Value | None = None, version: int = 0) -> TypedRecord:
    """``state`` is what a state machine keeps of the record, ``value`` what is encoded."""
    try:
        data = None if value is None else write_value(value, version)
        encoded = LogRecord(key=write_key(key), value=data)
    except StringTooLongError:
        encoded = UNWRITABLE
    return TypedRecord(key, state, encoded)
