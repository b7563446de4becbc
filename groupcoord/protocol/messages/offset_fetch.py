"""OffsetFetch: versions 1–10."""

import uuid

from groupcoord.protocol.codec.message import message


@message
class OffsetFetchRequestTopic:
    """Partitions of one topic: v1–7."""

    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@message
class OffsetFetchRequestTopics:
    """Partitions of one topic: v8+."""

    name: str = ""  # v8–9
    partition_indexes: tuple[int, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetFetchRequestGroup:
    """What is asked of one group: v8+."""

    group_id: str = ""
    member_id: str | None = None  # v9+; of a KIP-848 group
    member_epoch: int = -1  # v9+; of a KIP-848 group
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()  # null: all


@message
class OffsetFetchRequest:
    """How far have these groups come?

    v2 asks for all topics with null, v5 adds the leader epoch (KIP-320), v6 is flexible, v7 can insist on offsets that no
    open transaction may change (KIP-447), v8 asks for many groups at once (KIP-709), v9 adds the member for KIP-848 groups,
    v10 has topic ids in place of names (KIP-848). What is behind the protocol looks at ``groups`` in all versions; see
    protocol.shapes.
    """

    group_id: str = ""  # v1–7
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()  # v1–7, nullable v2–7: all
    require_stable: bool = False  # v7+
    groups: tuple[OffsetFetchRequestGroup, ...] = ()  # v8+


@message
class OffsetFetchResponsePartition:
    """The offset of one partition: v1–7."""

    partition_index: int = 0
    committed_offset: int = 0  # -1: none
    committed_leader_epoch: int = -1  # v5+
    metadata: str | None = ""
    error_code: int = 0


@message
class OffsetFetchResponseTopic:
    """Partitions of one topic: v1–7."""

    name: str = ""
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


@message
class OffsetFetchResponsePartitions:
    """The offset of one partition: v8+. Errors: UNSTABLE_OFFSET_COMMIT, UNKNOWN_TOPIC_ID (v10)."""

    partition_index: int = 0
    committed_offset: int = 0  # -1: none
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


@message
class OffsetFetchResponseTopics:
    """Partitions of one topic: v8+."""

    name: str = ""  # v8–9
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetFetchResponseGroup:
    """What one group has: v8+.

    Errors: COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, and of KIP-848 groups UNKNOWN_MEMBER_ID
    and STALE_MEMBER_EPOCH. That a group does not exist is no error: it has no offsets.
    """

    group_id: str = ""
    topics: tuple[OffsetFetchResponseTopics, ...] = ()
    error_code: int = 0


@message
class OffsetFetchResponse:
    """How far the groups have come. v2 adds an error at the top, v3 the throttle time; the rest as in the request.

    What is behind the protocol fills in ``groups`` in all versions; see protocol.shapes.
    """

    topics: tuple[OffsetFetchResponseTopic, ...] = ()  # v1–7
    error_code: int = 0  # v2–7
    throttle_time_ms: int = 0  # v3+
    groups: tuple[OffsetFetchResponseGroup, ...] = ()  # v8+
