"""Builds the records of classic groups and offsets, typed and encoded (``GroupCoordinatorRecordHelpers``).

The versions are those that Kafka 4.3 writes.
"""

import struct
from collections.abc import Callable
from typing import Any

from groupcoord.coordinator.offsets.committed_offsets import CommittedOffset
from groupcoord.core.effects import UNWRITABLE, LogRecord, TypedRecord
from groupcoord.protocol.codec.flexible_versions import StringTooLongError
from groupcoord.protocol.coordinator_records.commit_fast_path import plain_commit, plain_key
from groupcoord.protocol.coordinator_records.group_records import (
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

_new = tuple.__new__  # faster than the constructors of NamedTuple
_partition = struct.Struct(">i").pack


def group_metadata(group_id: str, value: GroupMetadataValue) -> TypedRecord:
    """GroupMetadata: a classic group as of one generation."""
    return typed_record(GroupMetadataKey(group=group_id), value, value, GROUP_METADATA_VALUE_VERSION)


def group_metadata_tombstone(group_id: str) -> TypedRecord:
    """The classic group is deleted."""
    return typed_record(GroupMetadataKey(group=group_id))


def offset_commits(group_id: str, topic: str) -> Callable[[int, CommittedOffset], TypedRecord]:
    """Returns a function that builds OffsetCommit records for partitions of ``topic``; the common part is encoded once.

    The only value version with an expire time has neither leader epoch nor topic id.
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
        if expires is None and not metadata and topic_id is not None:  # the common case
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
    """The offset is removed."""
    return typed_record(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def typed_record(key: Key, state: Any = None, value: Value | None = None, version: int = 0) -> TypedRecord:
    """A record with its encoding; ``state`` is what the state machine stores, ``value`` what is encoded."""
    try:
        data = None if value is None else write_value(value, version)
        encoded = LogRecord(key=write_key(key), value=data)
    except StringTooLongError:
        encoded = UNWRITABLE
    return TypedRecord(key, state, encoded)
