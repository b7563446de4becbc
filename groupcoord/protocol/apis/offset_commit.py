"""OffsetCommit (API key 8): request and response messages, and their Api."""

import uuid

from groupcoord.protocol.api_descriptor import (
    GROUP_ID,
    INSTANCE_ID,
    MEMBER_ID,
    TOPIC_ID,
    TOPIC_NAME,
    Api,
    ApiKey,
    RequestField,
)
from groupcoord.protocol.errors import ErrorCode
from groupcoord.protocol.message_dataclass import message


@message
class OffsetCommitRequestPartition:
    """The offset to commit for one partition. All versions."""

    partition_index: int
    committed_offset: int  # of the next record to consume
    committed_leader_epoch: int = -1  # v6+; of the last consumed record, to detect truncation (KIP-320)
    committed_metadata: str | None  # the consumer's own; null is kept as ""


@message
class OffsetCommitRequestTopic:
    """Partitions of one topic. All versions."""

    name: str = ""  # v2–9
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetCommitRequest:
    """Commit offsets: as a member, or as any client if the group has no members.

    v5 drops the retention time, v6 adds the leader epoch (KIP-320), v7 static membership (KIP-345), v8 is flexible, v9 is for
    members of KIP-848 groups too, v10 has topic ids in place of names (KIP-848).
    """

    group_id: str
    generation_id_or_member_epoch: int = -1  # -1: not as a member
    member_id: str  # "": not as a member
    group_instance_id: str | None = None  # v7+
    retention_time_ms: int = -1  # v2–4; -1: the retention of the broker
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


@message
class OffsetCommitResponsePartition:
    """The result for one offset. All versions; for the errors see OffsetCommitResponse."""

    partition_index: int
    error_code: int = 0


@message
class OffsetCommitResponseTopic:
    """Partitions of one topic. All versions."""

    name: str = ""  # v2–9
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()
    topic_id: uuid.UUID | None = None  # v10+


@message
class OffsetCommitResponse:
    """The result for each offset. v3 adds the throttle time, v8 is flexible, v10 has topic ids in place of names (KIP-848).

    Errors, always on partitions: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID (v10), OFFSET_METADATA_TOO_LARGE,
    INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID (v7+),
    GROUP_ID_NOT_FOUND (v9+), COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
    """

    topics: tuple[OffsetCommitResponseTopic, ...] = ()
    throttle_time_ms: int = 0  # v3+


def _error_response(request: OffsetCommitRequest, _version: int, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(
    key=ApiKey.OFFSET_COMMIT,
    request=OffsetCommitRequest,
    response=OffsetCommitResponse,
    min_version=2,
    max_version=10,
    summary="Commit offsets of a group",
    make_error_response=_error_response,
    groups=(GROUP_ID,),
    members=(MEMBER_ID,),
    instances=(INSTANCE_ID,),
    topics=(TOPIC_NAME, TOPIC_ID),
    partitions=(RequestField("topics[].partitions[].partition_index"),),
)
